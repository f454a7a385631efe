"""Consumers in classic groups: partitions are shared, and offsets outlive members and brokers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from minicluster import MiniCluster
from minicluster.coordinator.internal_topics import partition_of
from tests.clients.adapters import ConfluentKafka
from tests.clients.members import MEMBERS, Run

pytestmark = pytest.mark.clients

STATIC = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(seed=4, listeners=True, config=STATIC) as built:
        yield built


@pytest.mark.parametrize("run", MEMBERS.values(), ids=MEMBERS)
def test_a_group_goes_on_after_the_death_of_its_coordinator(
    cluster: MiniCluster, run: Run, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    cluster.create_topic(name, min_isr=2)
    producer = ConfluentKafka(cluster.bootstrap_servers)
    producer.produce(name, ["first", "second"])
    with reading(cluster, run, name) as seen:
        cluster.wait_until(lambda: seen == ["first", "second"], within="60s")
        offsets = cluster.topic("__consumer_offsets")
        coordinator = offsets[partition_of(name, len(offsets))].leader
        cluster.kill(coordinator)
        producer.produce(name, ["third"])
        cluster.wait_until(lambda: "third" in seen, within="60s")
        cluster.restart(coordinator)
    # The group's next member goes on behind the committed offset.
    producer.produce(name, ["fourth"])
    with reading(cluster, run, name) as seen:
        cluster.wait_until(lambda: "fourth" in seen, within="60s")
    assert seen == ["fourth"]


@contextmanager
def reading(cluster: MiniCluster, run: Run, name: str) -> Iterator[list[str]]:
    """The values that one member reads until the end of the block."""
    seen: list[str] = []
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(run, cluster.bootstrap_servers, name, name, seen, stop)
        try:
            yield seen
        finally:
            stop.set()
            end.result(60)
