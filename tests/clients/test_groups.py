"""Consumers in groups: partitions are shared, and offsets outlive members and brokers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from minicluster import MiniCluster
from minicluster.coordinator.internal_topics import partition_of
from tests.clients.adapters import ConfluentKafka
from tests.clients.members import MEMBERS, Run

pytestmark = pytest.mark.clients

STATIC = {
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
INCREMENTAL = ("confluent-kafka-cooperative", "confluent-kafka-consumer-protocol")
"""Members that keep what they go on reading in a rebalance."""


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


@pytest.mark.parametrize("name", INCREMENTAL)
def test_partitions_are_shared_on_a_join_and_come_back_on_a_death(
    cluster: MiniCluster, name: str
) -> None:
    topic = f"shared-{name}"
    cluster.create_topic(topic, partitions=2, min_isr=1)
    rounds = Rounds(cluster.bootstrap_servers, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def assigned() -> list[int]:
        """The number of partitions of each member."""
        group = admin.describe_consumer_groups([topic])[topic].result(10)
        return [len(member.assignment.topic_partitions) for member in group.members]

    with reading(cluster, MEMBERS[name], topic) as seen:
        cluster.wait_until(lambda: assigned() == [2], within="60s")
        command = [sys.executable, "-m", "tests.clients.members", name]
        with subprocess.Popen(
            [*command, cluster.bootstrap_servers, topic, topic], stdout=subprocess.PIPE, text=True
        ) as other:
            try:
                cluster.wait_until(lambda: assigned() == [1, 1], within="60s")
                values = rounds.next()
                assert other.stdout is not None
                assert other.stdout.readline().strip() in values
            finally:
                other.kill()
        cluster.wait_until(lambda: assigned() == [2], within="60s")
        values = rounds.next()
        cluster.wait_until(lambda: values <= set(seen), within="60s")


class Rounds:
    """Values for both partitions of a topic, a round at a time."""

    def __init__(self, servers: str, topic: str) -> None:
        self.producer = confluent_kafka.Producer({"bootstrap.servers": servers})
        self.topic = topic
        self.rounds = 0

    def next(self) -> set[str]:
        """Write a value to each partition; what was written."""
        self.rounds += 1
        values = {f"{self.rounds}-{partition}": partition for partition in range(2)}
        for value, partition in values.items():
            self.producer.produce(self.topic, value, partition=partition)
        self.producer.flush(30)
        return set(values)
