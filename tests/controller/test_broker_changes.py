"""Conformance group C: broker state changes, elections and reassignments at the controller."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from minicluster.controller import periodic_tasks as timers
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.metadata.image.directory_id import MIGRATING, UNASSIGNED
from minicluster.metadata.image.partition import RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from minicluster.rules import Rules
from minicluster.values import replace
from tests.controller.applying import apply_record
from tests.controller.kit import Cluster, dir_id, led, started

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def elect(cluster: Cluster, kind: int, *wanted: tuple[str, int]) -> list[ErrorCode]:
    Request = m.ElectLeadersRequest
    topics = [Request.TopicPartitions(topic=topic, partitions=(index,)) for topic, index in wanted]
    response = cluster.request(Request(election_type=kind, topic_partitions=tuple(topics)))
    return [
        ErrorCode(part.error_code)
        for topic in response.replica_election_results
        for part in topic.partition_result
    ]


def reassign(
    cluster: Cluster, *wanted: tuple[str, int, tuple[int, ...] | None], **fields: Any
) -> list[ErrorCode]:
    Request = m.AlterPartitionReassignmentsRequest
    topics = [
        Request.ReassignableTopic(
            name=name,
            partitions=(Request.ReassignablePartition(partition_index=index, replicas=replicas),),
        )
        for name, index, replicas in wanted
    ]
    response = cluster.request(Request(topics=tuple(topics), **fields))
    return [ErrorCode(p.error_code) for topic in response.responses for p in topic.partitions]


def ongoing(cluster: Cluster) -> list[tuple[str, int, Any, Any, Any]]:
    response = cluster.request(m.ListPartitionReassignmentsRequest())
    return [
        (topic.name, p.partition_index, p.removing_replicas, p.adding_replicas, p.replicas)
        for topic in response.topics
        for p in topic.partitions
    ]


def task(cluster: Cluster, name: str) -> list[Any]:
    """The records of one run of a background task."""
    return cluster.records_of(lambda: cluster.take(cluster.machine.on_timer(name, cluster.now_ms)))


def test_C01_fencing_takes_every_leadership_away() -> None:
    cluster = started(0, 1, 2, 3)
    cluster.create("foo", (0, 1, 2), (1, 2, 3), (2, 3, 0), (0, 2, 1))
    indexes = cluster.machine.state.indexes
    assert [cluster.partition("foo", i).leader for i in range(4)] == [0, 1, 2, 0]
    assert indexes.has_leaderships(0)
    cluster.fence(0)
    assert not indexes.has_leaderships(0)
    assert cluster.machine.state.check_indexes() == ()


def preferred_fixture() -> Cluster:
    """Broker 0 is fenced, 1 shuts down; foo is created with both out of its ISRs."""
    cluster = started(1, 2, 3, 4)
    cluster.register(0)
    cluster.create("bait", (1, 2))
    cluster.heartbeat(1, want_shut_down=True)
    cluster.create("foo", (1, 2, 3), (2, 3, 4), (0, 2, 1))
    return cluster


def test_C08_C09_preferred_elections() -> None:
    cluster = preferred_fixture()
    wanted = [("foo", 0), ("foo", 1), ("foo", 2), ("bar", 0), ("bar", 1)]
    responses: list[list[ErrorCode]] = []
    assert cluster.records_of(lambda: responses.append(elect(cluster, 0, *wanted))) == []
    unknown, unavailable = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    )
    not_needed = ErrorCode.ELECTION_NOT_NEEDED
    assert responses[0] == [unavailable, not_needed, unavailable, unknown, unknown]
    cluster.now_ms += 10_000
    for broker_id in (2, 3, 4):
        cluster.heartbeat(broker_id)
    cluster.register(1, number=1)
    for broker_id in (1, 0):
        cluster.heartbeat(broker_id)
    cluster.propose("foo", (1, 2, 3), 0)
    cluster.propose("foo", (0, 2, 1), 2)
    records = cluster.records_of(lambda: responses.append(elect(cluster, 0, *wanted)))
    none = ErrorCode.NONE
    assert responses[1] == [none, not_needed, none, unknown, unknown]
    topic_id = cluster.topic_id("foo")
    assert records == [
        PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=1),
        PartitionChangeRecord(topic_id=topic_id, partition_id=2, leader=0),
    ]


def test_C10_C11_balancing_gives_leadership_back_to_the_preferred() -> None:
    cluster = started(2, 3, 4)
    for broker_id in (0, 1):
        cluster.register(broker_id)
    cluster.create("foo", (1, 2, 3), (2, 3, 4), (0, 2, 1))
    indexes = cluster.machine.state.indexes
    assert indexes.imbalanced.content() == {(cluster.topic_id("foo"), i) for i in (0, 2)}
    cluster.heartbeat(1)
    response = cluster.propose("foo", (1, 2, 3), 0)
    assert (response.leader_id, response.leader_epoch, response.partition_epoch) == (2, 0, 1)
    records = task(cluster, timers.BALANCE)
    assert [(r.partition_id, r.leader) for r in records] == [(0, 1)]
    assert indexes.imbalanced
    cluster.heartbeat(0)
    cluster.propose("foo", (0, 2, 1), 2)
    assert [(r.partition_id, r.leader) for r in task(cluster, timers.BALANCE)] == [(2, 0)]
    assert not indexes.imbalanced


@pytest.mark.parametrize(
    "how", ["none", "static", "dynamic_cluster", "dynamic_node", "dynamic_topic"]
)
def test_C12_C13_C14_when_an_unclean_election_is_held(how: str) -> None:
    settings: dict[str, Any] = {"node_id": 0}
    if how == "static":
        settings["static_config"] = {UNCLEAN: "true"}
    cluster = started(0, 1, 2, 3, 4, settings=settings)
    cluster.create("foo", (1, 2, 4), (1, 3, 4), (0, 2, 4))
    cluster.fence(0, 1, 2, 3, 4)
    assert [led(cluster.partition("foo", i)) for i in range(3)] == [(-1, (4,))] * 3
    cluster.heartbeat(2)
    elected = [(2, (2,)), (-1, (4,)), (2, (2,))]
    if how == "static":  # C13: at once
        assert [led(cluster.partition("foo", i)) for i in range(3)] == elected
        assert task(cluster, timers.ELECT_UNCLEAN) == []
        return
    assert [led(cluster.partition("foo", i)) for i in range(3)] == [(-1, (4,))] * 3
    resource = {
        "none": None,
        "dynamic_cluster": (BROKER, ""),
        "dynamic_node": (BROKER, "0"),
        "dynamic_topic": (TOPIC, "foo"),
    }[how]
    if resource is None:  # C12
        assert task(cluster, timers.ELECT_UNCLEAN) == []
        return
    assert cluster.set_config(*resource, UNCLEAN, "true") == 0
    assert len(task(cluster, timers.ELECT_UNCLEAN)) == 2  # C14
    assert [led(cluster.partition("foo", i)) for i in range(3)] == elected
    assert cluster.partition("foo", 0).leader_recovery_state == RECOVERING


def test_C15_controlled_shutdown_is_recorded_and_hands_over() -> None:
    cluster = started(0, 1, 2, metadata_version="3.3-IV3")
    cluster.create("foo", (0, 1, 2))
    before = cluster.end
    cluster.heartbeat(0, want_shut_down=True, current_metadata_offset=0)
    records = [cluster.log[offset] for offset in range(before, cluster.end)]
    assert [record.version for record in records] == [1, 0]
    epoch = cluster.epoch(0)
    assert records[0].record == BrokerRegistrationChangeRecord(
        broker_id=0, broker_epoch=epoch, in_controlled_shutdown=1
    )
    change = records[1].record
    assert isinstance(change, PartitionChangeRecord)
    assert (change.isr, change.leader) == ((1, 2), 1)


def test_C16_below_3_3_iv3_only_the_partitions_show_it() -> None:
    cluster = started(0, 1, 2, metadata_version="3.3-IV2", rules=Rules.KAFKA_3_9)
    cluster.create("foo", (0, 1, 2))
    records = cluster.records_of(
        lambda: cluster.heartbeat(0, want_shut_down=True, current_metadata_offset=0)
    )
    assert [type(record) for record in records] == [PartitionChangeRecord]
    assert (records[0].isr, records[0].leader) == ((1, 2), 1)


def test_C18_C19_reassign_list_and_cancel() -> None:
    cluster = started(0, 1, 2, 3)
    cluster.create("foo", (1, 2, 3), (3, 2, 1))
    cluster.create("bar", (1, 2, 3))
    none, unknown = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    requested = [("foo", 0, (3, 2, 1)), ("foo", 1, (0, 2, 1)), ("foo", 2, (0, 2, 1))]
    assert reassign(cluster, *requested) == [none, none, unknown]
    assert ongoing(cluster) == [("foo", 1, (3,), (0,), (0, 2, 1, 3))]
    responses: list[Any] = []
    cancels = [("foo", 0, None), ("foo", 1, None), ("foo", 2, None), ("bar", 0, None)]
    records = cluster.records_of(lambda: responses.extend(reassign(cluster, *cancels)))
    idle = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert responses == [idle, none, unknown, idle]
    assert len(records) == 1
    assert (records[0].replicas, records[0].leader) == ((2, 1, 3), 3)
    assert (records[0].removing_replicas, records[0].adding_replicas) == ((), ())


def test_C26_to_C29_a_second_reassignment_replaces_the_first() -> None:
    cluster = started(0, 1, 2, 3, 4, 5)
    cluster.create("foo", (0, 1))
    assert reassign(cluster, ("foo", 0, (2, 3))) == [ErrorCode.NONE]
    assert ongoing(cluster) == [("foo", 0, (0, 1), (2, 3), (2, 3, 0, 1))]  # C26
    response = cluster.propose("foo", (0, 1, 2))
    assert response.isr == (0, 1, 2) and ongoing(cluster)  # C27
    assert elect(cluster, 0, ("foo", 0)) == [ErrorCode.NONE]
    assert cluster.partition("foo").leader == 2
    assert reassign(cluster, ("foo", 0, (4, 5))) == [ErrorCode.NONE]
    assert ongoing(cluster) == [("foo", 0, (0, 1, 2, 3), (4, 5), (4, 5, 0, 1, 2, 3))]  # C28
    assert cluster.partition("foo").leader == 2
    last = cluster.alter("foo", (0, 1, 2, 3, 4, 5)).topics[0].partitions[0]
    assert last.error_code == ErrorCode.NEW_LEADER_ELECTED  # C29
    assert cluster.partition("foo").leader == 4
    assert ongoing(cluster) == []


@pytest.mark.parametrize("shipped", [True, False])
def test_an_adding_list_that_is_not_needed_goes(shipped: bool) -> None:
    rules = Rules.KAFKA_4_3.as_shipped() if shipped else Rules.KAFKA_4_3
    cluster = started(0, 1, 2, 3, rules=rules)
    cluster.create("foo", (0, 1))
    reassign(cluster, ("foo", 0, (2, 3)))
    reassign(cluster, ("foo", 0, (0, 1, 2)))
    partition = cluster.partition("foo")
    assert partition.adding_replicas == ((2, 3) if shipped else (2,))
    assert bool(set(partition.adding_replicas) & set(partition.removing_replicas)) == shipped


def test_the_replication_factor_can_be_held_fast() -> None:
    cluster = started(0, 1, 2)
    cluster.create("foo", (0, 1))
    fast = {"allow_replication_factor_change": False}
    bad = ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(cluster, ("foo", 0, (0, 1, 2)), **fast) == [bad]
    assert reassign(cluster, ("foo", 0, (0, 2)), **fast) == [ErrorCode.NONE]
    assert reassign(cluster, ("foo", 0, (1,)), **fast) == [bad]
    unregistered = reassign(cluster, ("foo", 0, (0, 9, 1)), **fast)
    assert unregistered == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]


def test_cancelling_into_an_unclean_election_needs_the_topic_to_allow_it() -> None:
    cluster = started(0, 1, 2)
    cluster.create("foo", (0,))
    reassign(cluster, ("foo", 0, (1, 2)))
    cluster.propose("foo", (0, 1))
    cluster.fence(0)
    assert cluster.partition("foo").isr == (1,)
    assert reassign(cluster, ("foo", 0, None)) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    cluster.set_config(TOPIC, "foo", UNCLEAN, "true")
    assert reassign(cluster, ("foo", 0, None)) == [ErrorCode.NONE]
    assert led(cluster.partition("foo")) == (-1, (0,))


def test_C40_only_who_keeps_beating_stays() -> None:
    cluster = Cluster(settings={"broker_session_timeout_ms": 1_000})
    cluster.start(1, 2, 3, 4, 5)
    cluster.create("foo", *[(1, 2, 3, 4, 5)[i:] + (1, 2, 3, 4, 5)[:i] for i in range(5)])
    for _ in range(20):
        cluster.run(cluster.now_ms + 500)
        cluster.heartbeat(1)
    brokers = cluster.machine.image.cluster.brokers
    assert [broker.id for broker in brokers.values() if broker.fenced] == [2, 3, 4, 5]
    assert {led(cluster.partition("foo", i)) for i in range(5)} == {(1, (1,))}
    assert cluster.machine.state.indexes.imbalanced


def test_C41_register_heartbeat_create_and_unregister() -> None:
    """Amended by 4.3: with ELR in the bootstrap records the first epoch is 6."""
    cluster = Cluster(elr=True, settings={"default_replication_factor": 1})
    assert cluster.register(0).broker_epoch == 6
    foo = m.CreateTopicsRequest.CreatableTopic(name="foo", num_partitions=1, replication_factor=1)
    refused = cluster.create_topic(foo)
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.error_message is not None
    assert refused.error_message.startswith(
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced"
    )
    response = cluster.heartbeat(0, current_metadata_offset=100_000)
    assert (response.is_caught_up, response.is_fenced, response.should_shut_down) == (
        True,
        False,
        False,
    )
    assert cluster.create_topic(foo).error_code == 0
    records = cluster.records_of(lambda: cluster.request(m.UnregisterBrokerRequest(broker_id=0)))
    assert isinstance(records[-1], UnregisterBrokerRecord)
    assert cluster.partition("foo").leader == -1


def test_C45_a_failed_directory_takes_its_replicas_out() -> None:
    cluster = Cluster()
    d1, d2, d3, d4 = dir_id(1, 1), dir_id(1, 2), dir_id(2, 3), dir_id(2, 4)
    cluster.start(101, dirs=(d1, d2))
    cluster.start(102, dirs=(d3, d4))
    for name in ("a", "b"):
        cluster.create(name, (101, 102), (101, 102))
    for broker_id, even, odd in ((101, d1, d2), (102, d3, d4)):
        for index, directory in ((0, even), (1, odd)):
            for name in ("a", "b"):
                cluster.assign_dir(broker_id, directory, name, index)
    responses: list[Any] = []
    records = cluster.records_of(
        lambda: responses.append(cluster.heartbeat(101, offline_log_dirs=(d1, d3)))
    )
    assert not responses[0].is_fenced
    assert len(records) == 3
    assert records[-1] == BrokerRegistrationChangeRecord(
        broker_id=101, broker_epoch=cluster.epoch(101), log_dirs=(d2,)
    )
    for name in ("a", "b"):
        assert led(cluster.partition(name, 0)) == (102, (102,))
        assert led(cluster.partition(name, 1)) == (101, (101, 102))


def test_a_replica_in_a_directory_that_is_not_online_leaves_the_isr() -> None:
    cluster = started(1, 2, 3)
    cluster.create("foo", (1, 2))
    lost = dir_id(1, 99)
    records = cluster.records_of(lambda: cluster.assign_dir(1, lost, "foo", 0))
    assert [r.directories is not None for r in records] == [True, False]
    assert led(cluster.partition("foo")) == (2, (2,))
    assert cluster.assign_dir(3, dir_id(3), "foo", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.assign_dir(1, dir_id(1), "foo", 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("shipped", [True, False])
def test_a_broker_that_lost_its_last_directory(shipped: bool) -> None:
    rules = Rules.KAFKA_4_3.as_shipped() if shipped else Rules.KAFKA_4_3
    cluster = started(1, 2, rules=rules)
    cluster.create("foo", (1, 2))
    response = cluster.heartbeat(1, offline_log_dirs=(dir_id(1),))
    broker = cluster.machine.image.cluster.brokers[1]
    assert broker.log_dirs == (dir_id(1),)  # an empty list in a change record means "unchanged"
    assert broker.fenced is response.should_shut_down is (not shipped)
    assert led(cluster.partition("foo")) == (2, (2,))


@pytest.mark.parametrize("shipped", [True, False])
def test_a_late_heartbeat_elects_no_broker_that_has_shut_down(shipped: bool) -> None:
    """Found by seed 300433 of the campaign, which sends heartbeats of a former process again."""
    rules = Rules.KAFKA_4_3.as_shipped() if shipped else Rules.KAFKA_4_3
    cluster = started(1, 2, rules=rules)
    cluster.create("foo", (1,))
    cluster.heartbeat(1, want_shut_down=True)
    cluster.heartbeat(2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(1)
    broker = cluster.machine.image.cluster.brokers[1]
    assert broker.in_controlled_shutdown and not broker.fenced
    assert cluster.partition("foo").leader == (1 if shipped else -1)


@pytest.mark.parametrize("shipped", [True, False])
def test_a_heartbeat_that_unfences_a_broker_elects_nobody_in_a_directory_that_it_calls_lost(
    shipped: bool,
) -> None:
    cluster = Cluster(rules=replace(Rules.KAFKA_4_3, unfencing_ignores_lost_dirs=shipped))
    cluster.start(1, dirs=(dir_id(1, 1), dir_id(1, 2)))
    cluster.create("foo", (1,))
    cluster.assign_dir(1, dir_id(1, 1), "foo", 0)
    cluster.fence(1)
    cluster.heartbeat(1, offline_log_dirs=(dir_id(1, 1),))
    assert cluster.partition("foo").leader == (1 if shipped else -1)


def test_C46_the_default_directory_and_who_is_usable() -> None:
    cluster = Cluster(metadata_version="3.6-IV2")
    cluster.start(1)
    state = cluster.machine.state
    assert state.default_dir(1) == MIGRATING
    cluster = Cluster()
    cluster.start(2)
    cluster.start(3, dirs=(dir_id(3, 1), dir_id(3, 2)))
    state = cluster.machine.state
    assert [state.default_dir(b) for b in (2, 3, 4)] == [dir_id(2), UNASSIGNED, UNASSIGNED]


def test_C47_a_live_topic_cannot_come_a_second_time() -> None:
    cluster = started(1)
    cluster.create("foo", (1,))
    same, other = cluster.topic_id("foo"), UUID(int=99)
    for topic_id in (same, other):
        record = VersionedRecord(TopicRecord(name="foo", topic_id=topic_id), 0)
        with pytest.raises(ReplayError):
            apply_record(cluster.machine.state, record, cluster.end)


def test_C49_unfencing_comes_before_the_elections_it_allows() -> None:
    cluster = started(1, 2)
    cluster.create("foo", (1,))
    cluster.create("bar", (1, 2))
    cluster.fence(1)
    assert cluster.partition("foo").leader == -1
    records = cluster.records_of(lambda: cluster.heartbeat(1))
    assert isinstance(records[0], BrokerRegistrationChangeRecord) and records[0].fenced == -1
    assert [(r.partition_id, r.leader) for r in records[1:]] == [(0, 1)]
    assert cluster.partition("bar").isr == (2,)


def test_C50_a_fenced_broker_that_wants_to_go_is_fenced_once_more() -> None:
    cluster = started(1)
    cluster.fence(1)
    records = cluster.records_of(lambda: cluster.heartbeat(1, want_shut_down=True))
    assert [record.fenced for record in records] == [1]


def test_an_entry_that_comes_twice_has_two_results() -> None:
    """ReplicationControlManager.electLeaders: the topics of the request are no set.

    A node of Apache Kafka 4.3.0 answered so (ElectLeadersRequestData: a multi-collection).
    """
    cluster = Cluster()
    cluster.start(1)
    cluster.create("foo", (1,))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(cluster, 1, ("bar", 0), ("bar", 0)) == [unknown, unknown]
    assert elect(cluster, 0, ("foo", 0), ("foo", 0)) == [ErrorCode.ELECTION_NOT_NEEDED] * 2
