"""Apache Kafka's own nodes start from a run: three controllers and three brokers, with its data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.export.kafka_folder import Exported
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.coordinator_records.framing import (
    GROUP_RECORDS,
    CoordinatorRecord,
    decode_coordinator_record,
)
from minicluster.protocol.coordinator_records.groups import OffsetCommitKey, OffsetCommitValue
from tests.kafka.clients import LIMIT_S, consumed, produced
from tests.kafka.process import JavaProgram, free_ports, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

START_NODES = Path(__file__).with_name("java") / "StartNodes.java"
UP_WITHIN_S = 240.0
CONFIG = {
    "log.dirs": "d0,d1",
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}


class Story:
    """A cluster that has ended, and Apache Kafka on what it left."""

    def __init__(self, folder: Path, kraft_version: int) -> None:
        config = {**CONFIG, "kraft.version": kraft_version}
        self.kafka = folder / "kafka"
        with MiniCluster(brokers=3, controllers=3, seed=21, config=config) as cluster:
            orders = cluster.create_topic(
                "orders", partitions=3, replicas=3, min_isr=2, configs={"retention.ms": "86400000"}
            )
            before = cluster.produce(orders, count=30)
            cluster.transaction(orders, transactional_id="t", count=6)
            cluster.transaction(orders, transactional_id="t", count=3, end="abort")
            cluster.consume(orders, group="g", count=12)
            killed = cluster.brokers[0]
            cluster.kill(killed)
            cluster.wait_until(lambda: killed.is_fenced, within="20s")
            cluster.restart(killed)
            cluster.wait_until(orders.fully_in_sync, within="100s")
            cluster.snapshot(cluster.controllers)
            cluster.fail_over()
            after = cluster.produce(orders, count=9)
            assert all(outcome.ok for outcome in [*before, *after])
            self.image: MetadataImage = cluster.image
            read = cluster.consume(orders, group="all", count=45, isolation="read_committed")
            self.values = sorted((record.value or b"").decode() for record in read)
            self.committed = committed_here(cluster, "g")
            self.exported: Exported = cluster.export(self.kafka, port=free_ports(6))

    @property
    def servers(self) -> str:
        return self.exported.bootstrap_servers


@pytest.fixture(params=[0, 1], ids=["static-voters", "voters-in-the-log"])
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Story]:
    built = Story(tmp_path, request.param)
    nodes = JavaProgram(START_NODES, *map(str, built.exported.properties), folder=tmp_path)
    try:
        wait_for(lambda: len(nodes.lines("started ")) == 6, UP_WITHIN_S, nodes.log_lines)
        yield built
    finally:
        print(nodes.log_lines())  # shown where a test failed
        nodes.kill()


def test_it_comes_up_with_the_metadata_and_the_data_of_the_run(story: Story) -> None:
    admin = AdminClient({"bootstrap.servers": story.servers})

    def in_sync() -> bool:
        return all(sorted(each.isrs) == [1, 2, 3] for each in partitions(admin).values())

    wait_for(in_sync, UP_WITHIN_S, lambda: str(partitions(admin)))

    topic = story.image.topics.named("orders")
    assert topic is not None
    for index, partition in partitions(admin).items():
        ours = topic.partitions[index]
        assert tuple(partition.replicas) == ours.replicas
    cluster = admin.describe_cluster().result(LIMIT_S)
    assert sorted(node.id for node in cluster.nodes) == [1, 2, 3]
    resource = confluent_kafka.admin.ConfigResource("TOPIC", "orders")
    (described,) = admin.describe_configs([resource]).values()
    configs = described.result(LIMIT_S)
    assert configs["retention.ms"].value == "86400000"
    assert configs["min.insync.replicas"].value == "2"

    assert sorted(consumed(story.servers, "orders", 3, 45)) == story.values
    assert committed_there(story.servers, "g") == story.committed
    produced(story.servers, "orders", 3, ["after the export"] * 3)
    more = consumed(story.servers, "orders", 3, 48)
    assert sorted(more) == sorted([*story.values, *["after the export"] * 3])


def committed_here(cluster: MiniCluster, group: str) -> dict[int, int]:
    """The committed offsets of orders, from the log of the group's coordinator."""
    found = {}
    topic = cluster.image.topics.named("__consumer_offsets")
    assert topic is not None
    for index in topic.partitions:
        partition = inside(cluster).leading("__consumer_offsets", index)
        assert partition is not None
        for batch in partition.replica_log.log.batches:
            for record in batch.records:
                read = decode_coordinator_record(GROUP_RECORDS, record.key, record.value)
                match read:
                    case CoordinatorRecord(
                        OffsetCommitKey(group=name, partition=part),
                        OffsetCommitValue(offset=offset),
                    ) if name == group:
                        found[part] = offset
    return found


def committed_there(servers: str, group: str) -> dict[int, int]:
    """The same as Apache Kafka has them."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": group})
    try:
        places = [confluent_kafka.TopicPartition("orders", index) for index in range(3)]
        return {
            place.partition: place.offset
            for place in consumer.committed(places, timeout=LIMIT_S)
            if place.offset >= 0
        }
    finally:
        consumer.close()


def partitions(admin: AdminClient) -> dict[int, confluent_kafka.admin.PartitionMetadata]:
    found = admin.list_topics("orders", timeout=LIMIT_S).topics["orders"].partitions
    return dict(found)
