"""Metadata of topics that are missing: their creation, and the responses before and after it.

Kafka 4.3 responds from what it has, and creates behind the response: the topics that it creates
are UNKNOWN_TOPIC_OR_PARTITION in it, as they are without creation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.metadata.image.configs import TOPIC
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import MetadataRequest
from minicluster.protocol.uuids import ZERO_UUID
from tests.coordinator.client import exchange

LATEST = 13
ENABLE = "auto.create.topics.enable"
STATIC = {
    "num.partitions": 3,
    "default.replication.factor": 2,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 5,
    "share.coordinator.state.topic.num.partitions": 6,
    "share.coordinator.state.topic.replication.factor": 1,
}
UNKNOWN, INVALID = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION


def simulated(**more: Any) -> MiniCluster:
    return MiniCluster(controllers=1, seed=3, config={**STATIC, **more})


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with simulated() as built:
        built.create_topic("there", partitions=1, replicas=1)
        built.run_for("1s")  # until every broker has published it
        yield built


def described(
    cluster: MiniCluster, *names: str, version: int = LATEST, broker: int = 1, **more: Any
) -> dict[str, Any]:
    """The topics of a response by their names."""
    topics = tuple(MetadataRequest.MetadataRequestTopic(name=name) for name in names)
    request = MetadataRequest(topics=topics, **more)
    return {topic.name: topic for topic in exchange(cluster, broker, request, version).topics}


def errors(topics: dict[str, Any]) -> dict[str, ErrorCode]:
    return {name: ErrorCode(topic.error_code) for name, topic in topics.items()}


def created(cluster: MiniCluster) -> list[tuple[str, ...]]:
    """The names in each CreateTopics since the one of the fixture."""
    return [
        names
        for exchange in inside(cluster).recorder.exchanges
        if exchange.api == "CreateTopics"
        and (names := tuple(topic.name for topic in exchange.request.topics)) != ("there",)
    ]


@pytest.mark.parametrize("version", [1, 3, 4, LATEST])
def test_missing_topics_are_unknown_at_first_and_have_leaders_soon(
    cluster: MiniCluster, version: int
) -> None:
    names = ("orders", "bad name", "there", "bills", "orders")
    before = described(cluster, *names, version=version)
    expected = {"orders": UNKNOWN, "bad name": INVALID, "there": 0, "bills": UNKNOWN}
    assert errors(before) == expected
    for name in ("orders", "bad name", "bills"):
        topic = before[name]
        assert (topic.topic_id, topic.is_internal, topic.partitions) == (ZERO_UUID, False, ())
    cluster.run_for("2s")
    assert created(cluster) == [("orders", "bills")]
    after = described(cluster, *names, version=version)
    assert errors(after) == {**expected, "orders": 0, "bills": 0}
    for name in ("orders", "bills"):
        assert len(after[name].partitions) == 3
        for partition in after[name].partitions:
            assert partition.error_code == ErrorCode.NONE
            assert partition.leader_id in partition.replica_nodes
            assert len(partition.replica_nodes) == 2


@pytest.mark.parametrize(("enable", "allow"), [("false", True), ("true", False), ("false", False)])
def test_nothing_is_created_where_broker_or_client_forbids_it(enable: str, allow: bool) -> None:
    with simulated(**{ENABLE: enable}) as cluster:
        for _ in range(2):
            topics = described(
                cluster, "orders", "bad name", "__consumer_offsets", allow_auto_topic_creation=allow
            )
            expected = {"orders": UNKNOWN, "bad name": INVALID, "__consumer_offsets": UNKNOWN}
            assert errors(topics) == expected
            assert topics["__consumer_offsets"].is_internal
            cluster.run_for("2s")
        assert created(cluster) == []


@pytest.mark.parametrize(("topics", "version"), [((), 0), (None, 1), (None, LATEST), ((), LATEST)])
def test_a_request_that_names_no_topic_creates_none(
    cluster: MiniCluster, topics: Any, version: int
) -> None:
    exchange(cluster, 1, MetadataRequest(topics=topics), version)
    cluster.run_for("2s")
    assert created(cluster) == []


def test_a_topic_id_makes_the_names_count_for_nothing(cluster: MiniCluster) -> None:
    found = cluster.image.topics.named("there")
    assert found is not None
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(topics=(topic(name=None, topic_id=found.id), topic(name="orders")))
    response = exchange(cluster, 1, request, LATEST)
    assert [topic.name for topic in response.topics] == ["there"]
    cluster.run_for("2s")
    assert created(cluster) == []


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "cleanup_policy"),
    [
        ("__consumer_offsets", 4, 3, "compact"),
        ("__transaction_state", 5, 3, "compact"),
        ("__share_group_state", 6, 1, "delete"),
    ],
)
def test_an_internal_topic_is_created_with_configs_of_its_own(
    cluster: MiniCluster, name: str, partitions: int, replicas: int, cleanup_policy: str
) -> None:
    [before] = described(cluster, name).values()
    assert (before.error_code, before.is_internal) == (UNKNOWN, True)
    cluster.run_for("2s")
    [after] = described(cluster, name).values()
    assert (after.error_code, after.is_internal) == (ErrorCode.NONE, True)
    assert {len(each.replica_nodes) for each in after.partitions} == {replicas}
    assert len(after.partitions) == partitions
    assert cluster.image.configs.value(TOPIC, name, "cleanup.policy") == cleanup_policy


def test_a_topic_that_is_being_created_is_not_created_again(cluster: MiniCluster) -> None:
    cluster.hold("brokers", "controllers", api="CreateTopics")
    for _ in range(3):
        assert errors(described(cluster, "orders")) == {"orders": UNKNOWN}
    assert errors(described(cluster, "orders", "bills")) == {"orders": UNKNOWN, "bills": UNKNOWN}
    cluster.release()
    cluster.run_for("2s")
    assert created(cluster) == [("orders",), ("bills",)]
    assert errors(described(cluster, "orders", "bills")) == {"orders": 0, "bills": 0}


def test_two_brokers_that_create_the_same_topic_leave_one(cluster: MiniCluster) -> None:
    cluster.hold("brokers", "controllers", api="CreateTopics")
    for broker in (1, 2):
        assert errors(described(cluster, "orders", broker=broker)) == {"orders": UNKNOWN}
    cluster.release()
    cluster.run_for("2s")
    assert created(cluster) == [("orders",), ("orders",)]
    ids = {described(cluster, "orders", broker=b)["orders"].topic_id for b in (1, 2, 3)}
    assert len(ids) == 1 and ZERO_UUID not in ids


def test_without_its_brokers_a_created_topic_has_no_leader(cluster: MiniCluster) -> None:
    described(cluster, "orders")
    cluster.run_for("2s")
    first = described(cluster, "orders")["orders"].partitions[0]
    [other] = {1, 2, 3} - set(first.replica_nodes)
    for replica in first.replica_nodes:
        cluster.kill(replica)
    cluster.run_for("60s")
    topic = described(cluster, "orders", broker=other)["orders"]
    assert topic.error_code == ErrorCode.NONE
    [partition] = [each for each in topic.partitions if each.partition_index == 0]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert set(partition.offline_replicas) == set(first.replica_nodes)
