"""Conformance group D: topics and partitions."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.controller.state.broker_heartbeat_manager import replay_registration
from minicluster.faults import Faults
from minicluster.metadata.image.configs import TOPIC
from minicluster.metadata.image.directory_id import UNASSIGNED
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    TopicRecord,
    VersionedRecord,
)
from minicluster.protocol.topics import invalid_name_reason
from minicluster.rules import Rules
from tests.controller.applying import apply_record
from tests.controller.kit import Cluster, dir_id, started

Topic = m.CreateTopicsRequest.CreatableTopic
MIN_ISR = "min.insync.replicas"


def auto(name: str, partitions: int = -1, factor: int = -1, **fields: Any) -> Topic:
    return Topic(name=name, num_partitions=partitions, replication_factor=factor, **fields)


def configs(**values: str | None) -> tuple[m.CreateTopicsRequest.CreatableTopicConfig, ...]:
    return tuple(
        m.CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
        for name, value in values.items()
    )


def fenced_message(result: Any) -> str:
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    return str(result.error_message)


def test_D01_without_brokers_nothing_can_be_placed() -> None:
    cluster = Cluster(rules=Rules.KAFKA_3_9, metadata_version="3.9-IV0")
    assert fenced_message(cluster.create_topic(auto("foo"))) == (
        "Unable to replicate the partition 3 time(s): All brokers are currently fenced."
    )


def test_D02_brokers_that_shut_down_cannot_be_in_an_isr() -> None:
    cluster = started(0)
    for broker_id in (1, 2):
        cluster.register(broker_id)
    shut_down_record(cluster, 0)
    result = cluster.create_topic(auto("foo", 1, 3))
    assert fenced_message(result).endswith(
        "All brokers are currently fenced or in controlled shutdown."
    )


def shut_down_record(cluster: Cluster, broker_id: int) -> None:
    """A controlled shutdown that only the log shows, as a new controller finds it."""
    record = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=cluster.epoch(broker_id), in_controlled_shutdown=1
    )
    state = cluster.machine.state
    apply_record(state, VersionedRecord(record, 1), cluster.end)
    assert state.heartbeats is not None
    replay_registration(state.heartbeats, record, state.image, cluster.now_ms)


def test_D03_placement_leads_with_kafkas_own_numbers() -> None:
    cluster = started(0, 1, 2)
    result = cluster.create_topic(auto("foo"))
    assert (result.num_partitions, result.replication_factor) == (1, 3)
    partition = cluster.partition("foo")
    assert partition.replicas == partition.isr == (1, 2, 0)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 0)
    again = cluster.create_topic(auto("foo"))
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert again.error_message == "Topic 'foo' already exists."


def test_D05_a_config_is_written_between_the_topic_and_its_partitions() -> None:
    cluster = started(0, 1, 2, settings={"validates_configs": False})
    topic = auto("foo", 1, 1, configs=configs(foo="notNull"))
    records = cluster.records_of(lambda: cluster.create_topic(topic))
    assert [type(record) for record in records] == [TopicRecord, ConfigRecord, PartitionRecord]


def test_D06_a_null_config_is_refused() -> None:
    cluster = started(0, 1, 2)
    result = cluster.create_topic(auto("foo", 1, 1, configs=configs(foo=None)))
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert result.error_message == "Null value not supported for topic configs: foo"


def test_D07_each_topic_succeeds_or_fails_by_itself() -> None:
    cluster = started(0, 1, 2)
    responses: list[Any] = []
    request = m.CreateTopicsRequest(topics=(auto("good", 1, 3), auto("bad", 1, -2)))
    records = cluster.records_of(lambda: responses.append(cluster.request(request)))
    assert [t.error_code for t in responses[0].topics] == [0, ErrorCode.INVALID_REPLICATION_FACTOR]
    assert [type(record) for record in records] == [TopicRecord, PartitionRecord]


def test_D09_validate_only_responds_and_writes_nothing() -> None:
    cluster = started(0, 1, 2)
    for topic, error in ((auto("a", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR), (auto("b"), 0)):
        request = m.CreateTopicsRequest(topics=(topic,), validate_only=True)
        before = cluster.end
        assert cluster.request(request).topics[0].error_code == error
        assert cluster.end == before


def test_D10_a_policy_can_refuse_a_topic() -> None:
    def policy(name: str, partitions: int, configs: Any) -> str | None:
        return None if configs.get("foo") == "notNull" else "no foo"

    cluster = started(0, settings={"topic_policy": policy, "validates_configs": False})
    refused = cluster.create("a", (0,))
    assert refused.error_code == ErrorCode.POLICY_VIOLATION
    assert cluster.create("a", (0,), configs={"foo": "notNull"}).error_code == 0


@pytest.mark.parametrize(
    ("name", "good"),
    [("", False), (".", False), ("..", False), ("woo", True), ("a" * 250, False), ("a/b", False)],
)
def test_D12_topic_names(name: str, good: bool) -> None:
    assert (invalid_name_reason(name) is None) == good


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    cluster = started(0)
    assert cluster.create("a.b", (0,)).error_code == 0
    assert cluster.create("a_b", (0,)).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert cluster.create("ab", (0,)).error_code == 0
    assert cluster.create("a.b", (0,)).error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_name_that_comes_twice_is_refused_without_the_others() -> None:
    cluster = started(0)
    topics = tuple(auto(name, 1, 1) for name in ("a", "b", "a"))
    response = cluster.request(m.CreateTopicsRequest(topics=topics))
    assert {t.name: t.error_code for t in response.topics} == {
        "b": 0,
        "a": ErrorCode.INVALID_REQUEST,
    }


def test_more_than_ten_thousand_partitions_refuse_the_whole_request() -> None:
    cluster = started(0)
    request = m.CreateTopicsRequest(topics=(auto("a", 6_000, 1), auto("b", 4_001, 1)))
    response = cluster.request(request)
    assert [t.error_code for t in response.topics] == [ErrorCode.POLICY_VIOLATION] * 2
    assert len(cluster.machine.image.topics) == 0


def test_a_config_value_can_be_too_long() -> None:
    cluster = started(0, settings={"validates_configs": False})
    result = cluster.create_topic(auto("foo", 1, 1, configs=configs(foo="x" * 32_768)))
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert (
        cluster.create_topic(auto("foo", 1, 1, configs=configs(foo="x" * 32_767))).error_code == 0
    )


def grow(
    cluster: Cluster, name: str, count: int, *assignments: tuple[int, ...]
) -> m.CreatePartitionsResponse.CreatePartitionsTopicResult:
    Request = m.CreatePartitionsRequest
    topic = Request.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=tuple(Request.CreatePartitionsAssignment(broker_ids=a) for a in assignments)
        or None,
    )
    result = cluster.request(Request(topics=(topic,))).results[0]
    assert isinstance(result, m.CreatePartitionsResponse.CreatePartitionsTopicResult)
    return result


def test_D15_D16_more_partitions() -> None:
    cluster = started(0, 1, 3)
    for name, count in (("foo", 3), ("bar", 4), ("quux", 2)):
        assert cluster.create_topic(auto(name, count, 2)).error_code == 0
    assert grow(cluster, "foo", 5).error_code == 0
    fewer = grow(cluster, "bar", 3)
    assert fewer.error_code == ErrorCode.INVALID_PARTITIONS
    assert fewer.error_message == (
        "The topic bar currently has 4 partition(s); 3 would not be an increase."
    )
    assert grow(cluster, "baz", 3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    same = grow(cluster, "quux", 2)
    assert (same.error_code, same.error_message) == (
        ErrorCode.INVALID_PARTITIONS,
        "Topic already has 2 partition(s).",
    )
    assert grow(cluster, "foo", 6, (1, 3)).error_code == 0
    bad = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, "bar", 5, (1,)).error_code == bad
    wrong_number = grow(cluster, "quux", 4, (1, 0))
    assert wrong_number.error_code == bad
    assert wrong_number.error_message == (
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."
    )
    assert grow(cluster, "quux", 3, (2, 0)).error_code == bad


def test_D17_directories_of_new_replicas() -> None:
    cluster = Cluster()
    cluster.start(1, dirs=(dir_id(1, 1), dir_id(1, 2)))
    cluster.start(3)
    cluster.create("foo", (1, 3))
    assert cluster.partition("foo").directories == (UNASSIGNED, dir_id(3))


def test_D18_D19_partitions_need_one_replica_that_is_active() -> None:
    cluster = started(0, 1, 2)
    cluster.create("foo", (0, 1))
    cluster.fence(1, 2)
    assert grow(cluster, "foo", 2).error_code == 0
    partition = cluster.partition("foo", 1)
    assert (partition.isr, partition.leader, partition.leader_epoch) == ((0,), 0, 0)
    shut_down_record(cluster, 0)
    refused = grow(cluster, "foo", 3)
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.error_message == (
        "Unable to replicate the partition 2 time(s): All brokers are currently fenced or in "
        "controlled shutdown."
    )


@pytest.mark.parametrize("shipped", [True, False])
def test_a_refused_request_writes_nothing(shipped: bool) -> None:
    rules = Rules.KAFKA_4_3.as_shipped() if shipped else Rules.KAFKA_4_3
    cluster = started(0, 1, rules=rules)
    cluster.create("foo", (0,))
    shut_down_record(cluster, 0)
    records = cluster.records_of(lambda: grow(cluster, "foo", 9))
    assert bool(records) == shipped


def test_D20_D21_manual_assignments_need_an_active_replica() -> None:
    cluster = started(0, 1, 2)
    for broker_id in (3, 4, 5):
        cluster.register(broker_id)
    bad = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert cluster.create("foo", (3, 4, 5)).error_code == bad
    cluster.create("foo", (0, 1, 2))
    assert grow(cluster, "foo", 2, (3, 4, 5)).error_code == bad
    assert grow(cluster, "foo", 2, (2, 4, 5)).error_code == 0
    partition = cluster.partition("foo", 1)
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 4, 5), (2,), 2)


@pytest.mark.parametrize(
    ("assignments", "words"),
    [
        ([()], "empty replica list"),
        ([(1, 2, 3)], "includes broker 3, but no such broker is registered"),
        ([(1, 2, 2)], "includes the broker 2 more than once"),
        ([(1, 2), (1,)], "not consistent with previous partitions, which have 2 replica(s)"),
    ],
    ids=["D22-empty", "D22-unknown", "D22-twice", "D22-factor"],
)
def test_D22_bad_manual_assignments(assignments: list[tuple[int, ...]], words: str) -> None:
    result = started(1, 2).create("foo", *assignments)
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert words in str(result.error_message)


def test_topics_are_deleted_by_id_or_name_and_their_configs_go_with_them() -> None:
    cluster = started(0)
    cluster.create("a", (0,), configs={MIN_ISR: "1"})
    cluster.create("b", (0,))
    Request = m.DeleteTopicsRequest
    by_name = cluster.request(Request(topic_names=("b", "nope")), 5)
    codes = {result.name: result.error_code for result in by_name.responses}
    assert codes == {"b": 0, "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    old_id = cluster.topic_id("a")
    state = Request.DeleteTopicState(topic_id=old_id)
    assert cluster.request(Request(topics=(state,))).responses[0].error_code == 0
    again = cluster.request(Request(topics=(state,))).responses[0]
    assert again.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert cluster.machine.image.configs.of(TOPIC, "a") == {}
    cluster.create("a", (0,))
    assert cluster.topic_id("a") != old_id


def test_with_elr_a_minimum_given_at_creation_clears_what_was_never_there() -> None:
    cluster = started(0, 1, elr=True)
    records = cluster.records_of(lambda: cluster.create("foo", (0, 1), configs={MIN_ISR: "2"}))
    kinds = [type(record) for record in records]
    assert kinds == [TopicRecord, ConfigRecord, ClearElrRecord, PartitionRecord]


def test_z05_fenced_replicas_enter_the_first_isr_and_the_hit_is_counted() -> None:
    cluster = started(0, 1, 2, faults=Faults.of(["Z05"]))
    cluster.create("calm", (0, 1, 2))
    assert cluster.hits == []
    cluster.fence(2)
    cluster.create("foo", (0, 1, 2))
    assert cluster.partition("foo").isr == (0, 1, 2)
    assert cluster.hits == ["Z05"]


def test_a_broker_with_all_directories_cordoned_gets_nothing_new() -> None:
    cluster = started(0, 1)
    cluster.heartbeat(1, cordoned_log_dirs=(dir_id(1),))
    result = cluster.create_topic(auto("foo", 1, 2))
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "cordoned" in str(result.error_message)
    assert cluster.create("manual", (0, 1)).error_code == 0
    cluster.heartbeat(1, cordoned_log_dirs=())
    assert cluster.create_topic(auto("foo", 1, 2)).error_code == 0


def test_of_two_names_that_collide_the_first_of_kafkas_hash_set_is_named() -> None:
    """Both were created by one request; a third name collides with both."""
    for one, other in (("a.b.c", "a_b.c"), ("x.y.z", "x_y.z"), ("k.l.m", "k_l.m")):
        cluster = started(0)
        make = m.CreateTopicsRequest.CreatableTopic
        topics = tuple(make(name=n, num_partitions=1, replication_factor=1) for n in (one, other))
        response = cluster.request(m.CreateTopicsRequest(topics=topics))
        assert [topic.error_code for topic in response.topics] == [0, 0]
        third = one.replace(".", "_")
        refused = cluster.create(third, (0,))
        assert refused.error_message == f"Topic '{third}' collides with existing topic: {other}"


def test_a_duplicate_is_not_deleted_and_neither_is_a_topic_by_name_and_id() -> None:
    cluster = started(0)
    for name in ("a", "b", "c"):
        cluster.create(name, (0,))
    state = m.DeleteTopicsRequest.DeleteTopicState
    topics = (
        state(name="a"),
        state(name="a"),
        state(name="b"),
        state(name=None, topic_id=cluster.topic_id("b")),
        state(name="c"),
    )
    response = cluster.request(m.DeleteTopicsRequest(topics=topics))
    results = [(r.name, r.error_code, r.error_message) for r in response.responses]
    invalid = ErrorCode.INVALID_REQUEST
    assert results == [
        ("a", invalid, "Duplicate topic name."),
        ("b", invalid, "The provided topic name maps to an ID that was already supplied."),
        ("c", 0, None),
    ]
    assert [topic.name for topic in cluster.machine.image.topics] == ["a", "b"]
