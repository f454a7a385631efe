"""Refusals that any controller gives, before the active one decides about the rest of a request.

Source:  ControllerApis; QuorumController, where a request about nothing completes at once.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from minicluster.controller.effects import ControllerRespond
from minicluster.java_order import hash_map_order, string_hash, uuid_hash
from minicluster.metadata.image.configs import BROKER, BROKER_LOGGER, TOPIC
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.records import ProducerIdsRecord, VersionedRecord
from minicluster.values import replace
from tests.controller.kit import MV, Cluster, feature_records, started

INVALID = ErrorCode.INVALID_REQUEST


def new_topic(name: str) -> m.CreateTopicsRequest.CreatableTopic:
    return m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)


# Topics.


def test_duplicates_come_last_in_the_order_of_a_hash_set() -> None:
    names = ("once", "apple", "zebra", "mango", "apple", "zebra", "mango")
    response = started(0).request(m.CreateTopicsRequest(topics=tuple(map(new_topic, names))))
    twice = hash_map_order(names[-3:], string_hash)
    assert twice != list(names[-3:])
    assert [topic.name for topic in response.topics] == ["once", *twice]
    assert [topic.error_code for topic in response.topics] == [0, INVALID, INVALID, INVALID]


def test_a_standby_responds_where_nothing_is_left_to_decide() -> None:
    standby = Cluster(active=False)
    topics = (new_topic("a"), new_topic("a"), new_topic("__cluster_metadata"))
    response = standby.request(m.CreateTopicsRequest(topics=topics))
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("a", INVALID),
        ("__cluster_metadata", INVALID),
    ]
    one_more = standby.request(m.CreateTopicsRequest(topics=(*topics, new_topic("b"))))
    assert {topic.error_code for topic in one_more.topics} == {ErrorCode.NOT_CONTROLLER}


def test_more_partitions_are_made_in_the_order_of_a_hash_set_and_duplicates_are_refused() -> None:
    cluster = started(0)
    names = ("zebra", "apple", "mango", "pear")
    for name in names:
        cluster.create(name, (0,))
    Request = m.CreatePartitionsRequest
    topics = tuple(
        Request.CreatePartitionsTopic(name=name, count=2, assignments=None)
        for name in (*names, "pear")
    )
    response = cluster.request(Request(topics=topics))
    order = hash_map_order(names, string_hash)
    assert order != list(names)
    others = [name for name in order if name != "pear"]
    assert [(r.name, r.error_code) for r in response.results] == [
        ("pear", INVALID),
        *((name, 0) for name in others),
    ]
    assert response.results[0].error_message == "Duplicate topic name."
    assert cluster.partition("pear", 0) and len(cluster.machine.image.topics.named("pear")) == 1


# Deletion.

State = m.DeleteTopicsRequest.DeleteTopicState


def delete(cluster: Cluster, *topics: Any) -> list[tuple[str | None, int, str | None]]:
    response = cluster.request(m.DeleteTopicsRequest(topics=topics))
    return [(r.name, r.error_code, r.error_message) for r in response.responses]


def test_a_name_whose_id_comes_twice_deletes_nothing() -> None:
    cluster = started(0)
    cluster.create("a", (0,))
    by_id = State(name=None, topic_id=cluster.topic_id("a"))
    assert delete(cluster, by_id, by_id, State(name="a")) == [
        (None, INVALID, "Duplicate topic id."),
        ("a", INVALID, "The provided topic name maps to an ID that was already supplied."),
    ]
    assert cluster.machine.image.topics.named("a") is not None


def test_each_entry_without_a_key_or_with_two_has_a_result() -> None:
    cluster = started(0)
    none, two = State(name=None), State(name="a", topic_id=UUID(int=5))
    assert delete(cluster, none, none, two, two) == [
        *[(None, INVALID, "Neither topic name nor id were specified.")] * 2,
        *[("a", INVALID, "You may not specify both topic name and topic id.")] * 2,
    ]


def test_topics_are_removed_in_the_order_of_a_hash_map_of_ids() -> None:
    cluster = started(0)
    names = [f"topic-{n}" for n in range(9)]
    ids = {name: cluster.create(name, (0,)).topic_id for name in names}
    records = cluster.records_of(lambda: delete(cluster, *(State(name=n) for n in names)))
    assert [record.topic_id for record in records] == hash_map_order(
        (ids[name] for name in hash_map_order(names, string_hash)), uuid_hash
    )


def test_names_are_looked_up_in_what_is_committed() -> None:
    """A topic that is being deleted has a name still, and its id is unknown by now."""
    cluster = started(0)
    cluster.create("a", (0,))
    cluster.held = True
    name = State(name="a")
    first, second = (cluster.send(m.DeleteTopicsRequest(topics=(name,))) for _ in range(2))
    unknown = delete(cluster, State(name="nowhere"))
    assert unknown[0][:2] == ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert first not in cluster.responses and second not in cluster.responses
    cluster.commit()
    codes = [cluster.responses[token].response.responses[0].error_code for token in (first, second)]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize(
    ("version", "error"), [(2, INVALID), (3, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_no_topic_is_deleted_where_that_is_disabled(version: int, error: ErrorCode) -> None:
    cluster = started(0, settings={"static_config": {"delete.topic.enable": "false"}})
    cluster.create("a", (0,))
    response = cluster.request(m.DeleteTopicsRequest(topic_names=("a", "b")), version)
    assert [r.error_code for r in response.responses] == [error, error]
    assert cluster.machine.image.topics.named("a") is not None


# Configs.

Incremental = m.IncrementalAlterConfigsRequest


def resource(kind: int, name: str, **configs: str) -> Incremental.AlterConfigsResource:
    return Incremental.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(Incremental.AlterableConfig(name=k, value=v) for k, v in configs.items()),
    )


def test_unknown_kinds_and_resources_that_come_twice_are_refused_and_loggers_come_last() -> None:
    cluster = started(0, settings={"node_id": 100})
    cluster.create("foo", (0,))
    twice = resource(TOPIC, "foo", **{"retention.ms": "1"})
    request = Incremental(
        resources=(
            resource(BROKER_LOGGER, "100", root="DEBUG"),
            resource(BROKER_LOGGER, "1", root="DEBUG"),
            resource(BROKER, "", **{"log.retention.ms": "5"}),
            twice,
            resource(3, "x"),
            twice,
            twice,
        )
    )
    results = [
        (r.resource_type, r.resource_name, r.error_code, r.error_message)
        for r in cluster.request(request, forwarded=False).responses
    ]
    assert results == [
        (3, "x", ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 3."),
        (TOPIC, "foo", INVALID, "Duplicate resource."),
        (BROKER, "", ErrorCode.NONE, None),
        (BROKER_LOGGER, "100", ErrorCode.NONE, None),
        (BROKER_LOGGER, "1", INVALID, "Unexpected node id. Expected 100, but received 1"),
    ]


LOGGER_CHANGES = [
    (0, "root", "INFO", ErrorCode.NONE),
    (0, "root", "LOUD", ErrorCode.INVALID_CONFIG),
    (0, "kafka.Nowhere", "INFO", ErrorCode.INVALID_CONFIG),
    (1, "root", None, INVALID),
    (1, "kafka.Nowhere", None, ErrorCode.INVALID_CONFIG),
    (2, "root", "INFO", INVALID),
    (9, "kafka.Nowhere", "INFO", ErrorCode.UNKNOWN_SERVER_ERROR),
]


@pytest.mark.parametrize(("operation", "logger", "level", "error"), LOGGER_CHANGES)
def test_a_standby_changes_its_own_log_levels(
    operation: int, logger: str, level: str | None, error: ErrorCode
) -> None:
    standby = Cluster(active=False, settings={"node_id": 7})
    change = Incremental.AlterableConfig(name=logger, config_operation=operation, value=level)
    loggers = Incremental.AlterConfigsResource(
        resource_type=BROKER_LOGGER, resource_name="7", configs=(change,)
    )
    response = standby.request(Incremental(resources=(loggers,)))
    assert [result.error_code for result in response.responses] == [error]


def test_loggers_are_no_resource_of_alter_configs() -> None:
    Request = m.AlterConfigsRequest
    loggers = Request.AlterConfigsResource(resource_type=BROKER_LOGGER, resource_name="0")
    (result,) = Cluster().request(Request(resources=(loggers,))).responses
    assert (result.error_code, result.error_message) == (
        INVALID,
        "Unexpected resource type BROKER_LOGGER.",
    )


def test_configs_of_a_resource_are_written_in_the_order_of_a_hash_map() -> None:
    values = {
        "retention.ms": "60000",
        "segment.ms": "10000",
        "max.message.bytes": "1000",
        "flush.ms": "100",
    }
    order = hash_map_order(values, string_hash)
    assert order != list(values)
    cluster = started(0)
    created = cluster.records_of(lambda: cluster.create("foo", (0,), configs=values))
    assert [record.name for record in created[1:-1]] == order
    cluster.create("bar", (0,))
    changed = cluster.records_of(
        lambda: cluster.request(Incremental(resources=(resource(TOPIC, "bar", **values),)))
    )
    assert [record.name for record in changed] == order


def test_cordoned_directories_are_compared_without_the_blanks_around_them() -> None:
    cluster = started(0)

    def cordon(value: str, *, forwarded: bool) -> int:
        change = resource(BROKER, "0", **{"cordoned.log.dirs": value})
        request = Incremental(resources=(change,))
        return int(cluster.request(request, forwarded=forwarded).responses[0].error_code)

    assert cordon("/a,/b", forwarded=True) == 0
    assert cordon(" /b , /a ", forwarded=False) == 0
    assert cordon(" ", forwarded=False) == 0
    assert cordon("/c", forwarded=False) == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("name", ["x", "1_0", "99999999999", ""])
def test_a_broker_is_named_by_a_number_of_java(name: str) -> None:
    cluster = started(0)
    change = resource(BROKER, name, **{"log.retention.ms": "5"})
    result = cluster.request(Incremental(resources=(change,))).responses[0]
    assert result.error_code == (INVALID if name else ErrorCode.NONE)


# Requests that come too late.

ORDERS = m.ElectLeadersRequest.TopicPartitions(topic="orders", partitions=(0,))
LATE = [
    m.CreateTopicsRequest(topics=(new_topic("a"), new_topic("b"))),
    m.DeleteTopicsRequest(topics=(m.DeleteTopicsRequest.DeleteTopicState(name="a"),)),
    m.CreatePartitionsRequest(
        topics=(m.CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=3),)
    ),
    m.ElectLeadersRequest(topic_partitions=(ORDERS,)),
    m.AlterPartitionReassignmentsRequest(
        topics=(m.AlterPartitionReassignmentsRequest.ReassignableTopic(name="a"),)
    ),
]


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize("request_", LATE, ids=[type(request).__name__ for request in LATE])
def test_a_request_whose_deadline_has_passed_is_rejected_as_a_whole(
    request_: Any, timeout_ms: int
) -> None:
    """Recorded from Kafka 4.3: also of a request that would be rejected, and to validate only."""
    cluster = started(0)
    late = replace(request_, timeout_ms=timeout_ms)
    end = cluster.end
    effects = cluster.machine.on_request("late", late, type(late).latest_version, cluster.now_ms)
    (effect,) = effects
    assert isinstance(effect, ControllerRespond)
    expected = error_response(late, ErrorCode.REQUEST_TIMED_OUT, version=type(late).latest_version)
    assert effect.response == expected
    assert cluster.end == end


def test_what_any_controller_rejects_needs_no_deadline() -> None:
    """Nothing is left for the active controller, whose queue has the deadlines."""
    twice = m.CreateTopicsRequest(topics=(new_topic("a"), new_topic("a")), timeout_ms=-1)
    response = started(0).request(twice)
    assert [topic.error_code for topic in response.topics] == [INVALID]


# Requests about nothing.

NOTHING = [
    (m.AlterClientQuotasRequest(), m.AlterClientQuotasResponse()),
    (m.AlterUserScramCredentialsRequest(), m.AlterUserScramCredentialsResponse()),
    (m.CreatePartitionsRequest(), m.CreatePartitionsResponse()),
    (m.DeleteTopicsRequest(), m.DeleteTopicsResponse()),
    (m.IncrementalAlterConfigsRequest(), m.IncrementalAlterConfigsResponse()),
    (m.AlterPartitionReassignmentsRequest(), m.AlterPartitionReassignmentsResponse()),
]


@pytest.mark.parametrize(
    ("request_", "response"), NOTHING, ids=[type(request).__name__ for request, _ in NOTHING]
)
def test_a_standby_responds_to_a_request_about_nothing(request_: Any, response: Any) -> None:
    assert Cluster(active=False).request(request_) == response


# Requests about too much.


def test_what_has_no_room_in_a_batch_is_refused_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Deletions and reassignments go as far as there is room."""
    for module in ("delete_topics", "alter_partition_reassignments"):
        place = f"minicluster.controller.operations.{module}.MAX_RECORDS_PER_USER_OP"
        monkeypatch.setattr(place, 2)
    cluster = started(0, 1)
    for name in ("a", "b", "c"):
        cluster.create(name, (0,))
    Request = m.AlterPartitionReassignmentsRequest
    to_one = (Request.ReassignablePartition(partition_index=0, replicas=(1,)),)
    topics = tuple(Request.ReassignableTopic(name=name, partitions=to_one) for name in "abc")
    moved = cluster.request(Request(topics=topics))
    codes = [topic.partitions[0].error_code for topic in moved.responses]
    assert codes == [0, 0, ErrorCode.UNKNOWN_SERVER_ERROR]
    deleted = delete(cluster, State(name="a"), State(name="b"), State(name="c"))
    assert sorted(error for _, error, _ in deleted) == [ErrorCode.UNKNOWN_SERVER_ERROR, 0, 0]
    assert len(cluster.machine.image.topics) == 1


def test_too_many_elections_and_too_many_partitions_of_a_broker_are_refused_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = started(0, 1)
    cluster.create("a", (0, 1))
    cluster.create("b", (0, 1))
    cluster.fence(0)
    cluster.heartbeat(0)
    cluster.alter("a", (0, 1))
    cluster.alter("b", (0, 1))
    monkeypatch.setattr("minicluster.controller.errors.MAX_RECORDS_PER_USER_OP", 1)
    elected = cluster.request(m.ElectLeadersRequest(topic_partitions=None))
    assert elected.error_code == ErrorCode.POLICY_VIOLATION
    gone = cluster.request(m.UnregisterBrokerRequest(broker_id=1))
    assert gone.error_code == ErrorCode.POLICY_VIOLATION
    assert cluster.machine.image.cluster.broker(1) is not None and not cluster.resigned


# Registrations.


def test_a_broker_that_needs_a_feature_that_is_off_is_refused() -> None:
    cluster = Cluster(metadata_version="4.3-IV0")
    Request = m.BrokerRegistrationRequest
    levels = (("metadata.version", 7, 30), ("no.such.feature", 1, 2))
    response = cluster.request(
        Request(
            broker_id=1,
            cluster_id="test",
            log_dirs=(UUID(int=1 << 70),),
            features=tuple(
                Request.Feature(name=n, min_supported_version=low, max_supported_version=high)
                for n, low, high in levels
            ),
        )
    )
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_controller_with_an_unknown_security_protocol_makes_the_active_one_resign() -> None:
    cluster = Cluster()
    Listener = m.ControllerRegistrationRequest.Listener
    listener = Listener(name="C", host="h", port=1, security_protocol=9)
    response = cluster.request(m.ControllerRegistrationRequest(listeners=(listener,)))
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.resigned


UNKNOWN = [
    (TOPIC, ("apple", "zebra", "mango"), "zebra"),
    (32, ("unclean.leader.election.enable", "cleanup.policy"), "unclean.leader.election.enable"),
    (32, ("cleanup.policy",), "cleanup.policy"),
]


@pytest.mark.parametrize(("kind", "names", "first"), UNKNOWN)
def test_of_several_unknown_configs_the_first_of_the_hash_map_is_named(
    kind: int, names: tuple[str, ...], first: str
) -> None:
    """A group's configs are in one map with those that brokers bound, which is a larger one."""
    cluster = started(0)
    cluster.create("foo", (0,))
    change = resource(kind, "foo", **dict.fromkeys(names, "1"))
    (result,) = cluster.request(Incremental(resources=(change,))).responses
    assert str(result.error_message).endswith(f"config name: {first}")


def test_the_last_producer_ids_are_given_and_no_more() -> None:
    cluster = Cluster(active=False)
    first_of_last = 2**63 - 1 - 1_000
    ids = ProducerIdsRecord(broker_id=0, broker_epoch=0, next_producer_id=first_of_last)
    records = (*feature_records(MV("4.3-IV0"), {}), VersionedRecord(ids, 0))
    cluster.machine.on_records(cluster.end, records, cluster.end + len(records), 0)
    cluster.end += len(records)
    cluster.take(cluster.machine.on_claim(1, cluster.end, 0))
    cluster.start(0)
    request = m.AllocateProducerIdsRequest(broker_id=0, broker_epoch=cluster.epoch(0))
    assert cluster.request(request).producer_id_start == first_of_last
    assert cluster.request(request).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not cluster.resigned


def test_a_standby_names_the_active_controller_and_one_that_loses_it_none() -> None:
    request = m.UnregisterBrokerRequest(broker_id=9)
    standby = Cluster(active=False)
    assert standby.request(request).error_message == "No controller appears to be active."
    standby.machine.latest_controller = 3
    named = standby.request(request).error_message
    assert named == "The active controller appears to be node 3."
    active = started(0)
    active.held = True
    token = active.send(m.UnregisterBrokerRequest(broker_id=0))
    active.take(active.machine.on_renounce(0))
    lost = active.responses[token].response
    assert lost.error_message == "No controller appears to be active."


def test_brokers_whose_configs_conflict_let_topics_without_configs_be_created() -> None:
    """The configs of a topic are checked with those of the brokers, unless there are none."""
    cluster = started(0)
    lags = {"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "5"}
    for name, value in lags.items():
        assert cluster.set_config(BROKER, "", name, value) == ErrorCode.NONE
    assert cluster.create("plain", (0,)).error_code == ErrorCode.NONE
    refused = cluster.create("special", (0,), configs={"retention.ms": "1"})
    assert refused.error_code == ErrorCode.INVALID_CONFIG
