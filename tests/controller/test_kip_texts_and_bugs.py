"""Where Kafka's controller and the texts of its KIPs part, and old bugs: both sides of each."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.metadata.image.partition import NO_LEADER
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from minicluster.values import replace
from tests.controller.applying import apply_record
from tests.controller.kit import Cluster, dir_id

BOTH = pytest.mark.parametrize("on", [True, False])


def started(*brokers: int, elr: bool = False, **fields: Any) -> Cluster:
    cluster = Cluster(rules=replace(Rules.KAFKA_4_3, **fields), elr=elr)
    cluster.start(*brokers)
    return cluster


@BOTH
def test_kip_841_the_last_member_of_an_isr(on: bool) -> None:
    """Invariant 1 of the text, and why Kafka does not keep it: there is no clean way back."""
    cluster = started(1, 2, allow_empty_isr_without_elr=on)
    cluster.create("foo", (1, 2))
    cluster.fence(2, 1)
    partition = cluster.partition("foo")
    assert (partition.leader, partition.isr) == (NO_LEADER, () if on else (1,))
    cluster.heartbeat(1)
    cluster.heartbeat(2)
    assert cluster.partition("foo").leader == (NO_LEADER if on else 1)


def send_for_both(cluster: Cluster, version: int) -> tuple[ErrorCode, ...]:
    """One request: a member that is fenced for foo-0, a plain shrink for bar-0."""
    Request = m.AlterPartitionRequest
    topics = []
    for name, isr in (("foo", (1, 2)), ("bar", (1,))):
        state = cluster.partition(name)
        members = tuple(Request.BrokerState(broker_id=b, broker_epoch=-1) for b in isr)
        part = Request.PartitionData(
            partition_index=0,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            new_isr=isr if version < 3 else (),
            new_isr_with_epochs=members if version >= 3 else (),
        )
        topics.append(
            Request.TopicData(topic_name=name, topic_id=cluster.topic_id(name), partitions=(part,))
        )
    requested = Request(broker_id=1, broker_epoch=cluster.epoch(1), topics=tuple(topics))
    response = cluster.request(requested, version)
    return tuple(ErrorCode(t.partitions[0].error_code) for t in response.topics)


@BOTH
@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INELIGIBLE_REPLICA), (1, ErrorCode.OPERATION_NOT_ATTEMPTED)],
)
def test_kip_841_how_much_an_ineligible_member_refuses(
    on: bool, version: int, error: ErrorCode
) -> None:
    cluster = started(1, 2, 3, ineligible_member_refuses_all_partitions=on)
    cluster.create("foo", (1, 2))
    cluster.create("bar", (1, 3))
    cluster.fence(2)
    before = cluster.end
    assert send_for_both(cluster, version) == (error, error if on else ErrorCode.NONE)
    assert cluster.end - before == (0 if on else 1)
    assert cluster.partition("bar").isr == ((1, 3) if on else (1,))


@BOTH
def test_kip_841_which_change_reports_a_new_leader(on: bool) -> None:
    """The leader's own directory is offline: its ISR change elects another (1.6)."""
    cluster = started(1, 2, new_leader_elected_by_reassignment_only=on)
    cluster.create("foo", (1, 2))
    state = cluster.machine.state
    partition = cluster.partition("foo")
    lost = replace(partition, directories=(dir_id(1, 9), partition.directories[1]))
    topic = state.image.topics.by_id[cluster.topic_id("foo")]
    assert partition.leader == 1
    record = lost.to_record(topic.id, 0, state.gates.metadata_version, False, state.rules)
    apply_record(state, record, cluster.end)
    response = cluster.propose("foo", (1, 2))
    assert cluster.partition("foo").leader == 2
    if on:
        assert (response.error_code, response.leader_id) == (0, 2)
    else:
        assert response.error_code == ErrorCode.NEW_LEADER_ELECTED


@BOTH
def test_kip_841_a_finished_reassignment_reports_a_new_leader_either_way(on: bool) -> None:
    cluster = started(1, 2, 3, new_leader_elected_by_reassignment_only=on)
    cluster.create("foo", (1, 2))
    Request = m.AlterPartitionReassignmentsRequest
    part = Request.ReassignablePartition(partition_index=0, replicas=(3,))
    cluster.request(Request(topics=(Request.ReassignableTopic(name="foo", partitions=(part,)),)))
    assert cluster.propose("foo", (1, 2, 3)).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert cluster.partition("foo").replicas == (3,)


@BOTH
def test_kip_841_registering_again_in_controlled_shutdown(on: bool) -> None:
    cluster = started(1, 2, amend_ends_controlled_shutdown=on)
    cluster.create("foo", (1, 2))
    cluster.heartbeat(1, want_shut_down=True)
    broker = cluster.machine.image.cluster.broker(1)
    assert broker is not None and broker.in_controlled_shutdown
    cluster.register(1)
    broker = cluster.machine.image.cluster.broker(1)
    assert broker is not None and broker.in_controlled_shutdown != on


@BOTH
def test_a_last_known_leader_that_is_fenced(on: bool) -> None:
    """KAFKA-19522: the test of whether it lives was the wrong way round and decided nothing."""
    cluster = started(1, 2, elr=True, fenced_last_known_leader_is_elected=on)
    cluster.create("foo", (1, 2), configs={"min.insync.replicas": "2"})
    cluster.fence(2, 1)
    cluster.run(cluster.now_ms + 20_000)
    for broker in (1, 2):  # both have lost their logs, so both leave the ELR
        cluster.register(broker, number=1)
    partition = cluster.partition("foo")
    registration = cluster.machine.image.cluster.broker(1)
    assert registration is not None and registration.fenced
    assert (partition.leader, partition.elr) == (1 if on else NO_LEADER, ())
    assert partition.last_known_elr == (() if on else (1,))
    cluster.heartbeat(1)
    assert cluster.partition("foo").leader == 1, "alive it is elected, uncleanly"
    assert cluster.partition("foo").is_recovering


@BOTH
def test_the_directory_of_a_replica_and_the_elr(on: bool) -> None:
    cluster = started(elr=True, assigned_directory_empties_elr=on)
    for broker in (1, 2):
        cluster.start(broker, dirs=(dir_id(broker, 1), dir_id(broker, 2)))
    cluster.create("foo", (1, 2), configs={"min.insync.replicas": "2"})
    cluster.fence(2)
    assert cluster.partition("foo").elr == (2,)
    assert cluster.assign_dir(1, dir_id(1, 1), "foo", 0) == ErrorCode.NONE
    assert cluster.partition("foo").elr == (() if on else (2,))


def test_as_shipped_has_the_bugs_of_its_own_release_only() -> None:
    old, new = Rules.KAFKA_3_9.as_shipped(), Rules.KAFKA_4_3.as_shipped()
    assert old.fenced_last_known_leader_is_elected and old.assigned_directory_empties_elr
    assert not new.fenced_last_known_leader_is_elected and not new.assigned_directory_empties_elr
    assert old.reassignment_keeps_old_lists and new.reassignment_keeps_old_lists


@BOTH
@pytest.mark.parametrize("version", [3, 1])
def test_kip_858_a_replica_in_a_failed_directory_is_proposed_once_more(
    on: bool, version: int
) -> None:
    """Its fetch was under way when the directory failed, so its leader takes it for in sync.

    Source:  ReplicationControlManager.ineligibleReplicasForIsr, which looks at no directory.
    """
    cluster = Cluster(rules=replace(Rules.KAFKA_4_3, replica_in_failed_dir_may_join=on))
    cluster.start(1, 2)
    cluster.start(3, dirs=(dir_id(3, 0), dir_id(3, 1)))
    cluster.create("foo", (1, 2, 3))
    cluster.assign_dir(3, dir_id(3, 0), "foo", 0)
    cluster.heartbeat(3, offline_log_dirs=(dir_id(3, 0),))
    assert cluster.partition("foo").isr == (1, 2)
    end = cluster.end
    response = cluster.alter("foo", (1, 2, 3), version=version).topics[0].partitions[0]
    if on:
        assert response.error_code == 0 and cluster.partition("foo").isr == (1, 2, 3)
        cluster.heartbeat(3, offline_log_dirs=(dir_id(3, 0),))
        assert cluster.partition("foo").isr == (1, 2, 3), "it is lost only once"
    else:
        error = ErrorCode.INELIGIBLE_REPLICA if version > 1 else ErrorCode.OPERATION_NOT_ATTEMPTED
        assert response.error_code == error
        assert cluster.end == end and cluster.partition("foo").isr == (1, 2)
    assert cluster.propose("foo", (1,)).isr == (1,)
