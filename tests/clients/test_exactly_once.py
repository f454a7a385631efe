"""Kafka's clients consume, transform and produce exactly once, and describe their transactions."""

from __future__ import annotations

from collections.abc import Iterator

import kafka.admin
import pytest

from minicluster import MiniCluster
from minicluster.protocol.topics import partition_of
from tests.clients.adapters import ConfluentKafka
from tests.clients.processors import PROCESSORS, Fenced, Make, Processor

pytestmark = pytest.mark.clients

STATIC = {
    "broker.heartbeat.interval.ms": "200ms",
    "broker.session.timeout.ms": "1500ms",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
FIRST = [str(i) for i in range(5)]
SECOND = [str(i) for i in range(5, 10)]
TRIES = 240


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(seed=5, listeners=True, config=STATIC) as built:
        yield built


def _process(processor: Processor, count: int) -> None:
    for _ in range(TRIES):
        count -= processor.step()
        if count <= 0:
            return
    raise AssertionError(f"{count} records are still not processed")


@pytest.mark.parametrize("make", PROCESSORS.values(), ids=PROCESSORS)
def test_each_record_counts_once_across_an_abort_and_the_death_of_the_coordinator(
    cluster: MiniCluster, make: Make, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    source, sink = f"{name}-source", f"{name}-sink"
    for topic in (source, sink):
        cluster.create_topic(topic, partitions=1, min_isr=2)
    client = ConfluentKafka(cluster.bootstrap_servers)
    client.produce(source, FIRST)
    processor = make(cluster.bootstrap_servers, source, sink, name)
    processor.step(abort=True)
    _process(processor, len(FIRST))
    log = cluster.topic("__transaction_state")
    coordinator = log[partition_of(name, len(log))].leader
    cluster.kill(coordinator)
    cluster.wait_until(lambda: log[partition_of(name, len(log))].leader != coordinator, "60s")
    if name == "kafka-python":  # it loses the request that waits for a connection to the dead
        cluster.restart(coordinator)
        cluster.wait_until(lambda: not coordinator.is_fenced, "60s")
    client.produce(source, SECOND)
    _process(processor, len(SECOND))
    if name != "kafka-python":
        cluster.restart(coordinator)
    client.produce(sink, ["the end"])
    seen = client.consume(sink, len(FIRST + SECOND) + 1)
    assert seen == [*(f"{value}!" for value in FIRST + SECOND), "the end"]
    processor.close()


@pytest.mark.parametrize("make", PROCESSORS.values(), ids=PROCESSORS)
def test_a_zombie_commits_nothing(
    cluster: MiniCluster, make: Make, request: pytest.FixtureRequest
) -> None:
    name = f"{request.node.callspec.id}-zombie"
    for topic in (name, f"{name}-sink"):
        cluster.create_topic(topic, partitions=1)
    servers = cluster.bootstrap_servers
    zombie = make(servers, name, f"{name}-sink", name)
    zombie.write("of the zombie")
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=servers.split(","))
    described = admin.describe_transactions([name])[name]
    assert "Ongoing" in str(described), described
    assert name in str(admin.list_transactions())
    successor = make(servers, name, f"{name}-sink", name)
    with pytest.raises(Fenced):
        zombie.commit()
    successor.write("of the successor")
    successor.commit()
    client = ConfluentKafka(servers)
    assert client.consume(f"{name}-sink", 1) == ["of the successor"]
    admin.close()
    for processor in (zombie, successor):
        processor.close()
