"""Consumers in groups: partitions are shared, and offsets outlive members and brokers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from minicluster import MiniCluster
from minicluster.protocol.topics import partition_of
from tests.clients.adapters import ConfluentKafka
from tests.clients.members import MEMBERS, Run

pytestmark = pytest.mark.clients

CONFIG = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1500",  # a coordinator fails over well within a member's session
    "group.min.session.timeout.ms": "1000",
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
SLOW = {"kafka-python-cooperative": pytest.mark.slow}
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in MEMBERS if name not in INCREMENTAL]
EAGER = ("confluent-kafka", "kafka-python", "aiokafka")
"""Members that give up all in a rebalance, with assignors of the same name."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(seed=4, listeners=True, config=CONFIG) as built:
        yield built


@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, ())) for n in MEMBERS])
def test_a_group_goes_on_after_the_death_of_its_coordinator(
    cluster: MiniCluster, name: str
) -> None:
    run = MEMBERS[name]
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


@pytest.mark.parametrize("name", [*INCREMENTAL, *OTHERS])
def test_partitions_are_shared_on_a_join_and_come_back_on_a_death(
    cluster: MiniCluster, name: str
) -> None:
    topic = f"shared-{name}"
    cluster.create_topic(topic, partitions=2, min_isr=1)
    rounds = Rounds(cluster.bootstrap_servers, topic)
    assigned = Assigned(cluster.bootstrap_servers, topic)
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


def test_members_on_three_clients_are_one_group(cluster: MiniCluster) -> None:
    """The leader, whatever its client, assigns to all; one after the other joins, then leaves."""
    cluster.create_topic("mixed", partitions=3, min_isr=1)
    rounds = Rounds(cluster.bootstrap_servers, "mixed", partitions=3)
    assigned = Assigned(cluster.bootstrap_servers, "mixed")
    with ExitStack() as members:
        seen = []
        for name, shares in zip(EAGER, ([3], [1, 2], [1, 1, 1]), strict=True):
            seen.append(members.enter_context(reading(cluster, MEMBERS[name], "mixed")))
            cluster.wait_until(lambda wanted=shares: assigned() == wanted, within="60s")
        values = rounds.next()
        cluster.wait_until(lambda: sum(map(len, seen)) >= 3, within="60s")
        assert {value for one in seen for value in one} == values
        assert [len(one) for one in seen] == [1, 1, 1]
        members.pop_all().close()  # the last that has joined leaves first
    assert assigned() == []


class Assigned:
    """The numbers of partitions that the members of a group have, in ascending order."""

    def __init__(self, servers: str, group: str) -> None:
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.group = group

    def __call__(self) -> list[int]:
        described = self.admin.describe_consumer_groups([self.group])[self.group].result(60)
        return sorted(len(one.assignment.topic_partitions) for one in described.members)


class Rounds:
    """Values for all partitions of a topic, a round at a time."""

    def __init__(self, servers: str, topic: str, partitions: int = 2) -> None:
        self.producer = confluent_kafka.Producer({"bootstrap.servers": servers})
        self.topic = topic
        self.partitions = partitions
        self.rounds = 0

    def next(self) -> set[str]:
        """Write a value to each partition; what was written."""
        self.rounds += 1
        values = {f"{self.rounds}-{index}": index for index in range(self.partitions)}
        for value, partition in values.items():
            self.producer.produce(self.topic, value, partition=partition)
        assert self.producer.flush(60) == 0
        return set(values)
