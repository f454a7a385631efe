"""A log directory fails: KIP-589 as its text has it, and KIP-858 as Kafka shipped it.

The story is the same each time: brokers 1 to 3 with two log directories each, partition orders-0
on all of them, and the directory breaks in which it lies.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from minicluster.broker.lifecycle import BrokerState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages.kip_texts.kip_589 import AlterReplicaStateRequest
from minicluster.replica.to_controller.replica_state_reports import GATHER_MS
from minicluster.rules import FailedReplicas, Rules
from tests.replica.whole import CONTROLLER, Whole

KIP_858 = Rules.KAFKA_4_3
KIP_589 = replace(KIP_858, failed_replicas_reported_by=FailedReplicas.ALTER_REPLICA_STATE)
LAG_MS = 30_000
STOPS_UNHEARD_MS = 30_000


def started(rules: Rules, metadata_version: str | None = None) -> Whole:
    whole = Whole(rules=rules, metadata_version=metadata_version, directories=2)
    whole.advance(100)
    assert whole.all_running()
    whole.create_topic()
    whole.advance(3_000)
    assert sorted(whole.partition().isr) == [1, 2, 3]
    return whole


def break_replica(whole: Whole, broker: int) -> None:
    """Fail the directory in which the broker keeps orders-0."""
    known = whole.brokers[broker].replicas.state.store.partition_file("orders-0")
    assert known is not None
    whole.fail_directory(broker, whole.disks[broker].directory_ids.index(known.directory))


def repair(whole: Whole, broker: int) -> None:
    store = whole.brokers[broker].replicas.state.store
    for directory in store.directory_ids:
        store.repair_directory(directory)


def reports(whole: Whole) -> list[AlterReplicaStateRequest]:
    return [r for r in whole.controller_requests if isinstance(r, AlterReplicaStateRequest)]


@pytest.mark.parametrize("rules", [KIP_858, KIP_589], ids=["KIP-858", "KIP-589"])
def test_another_replica_leads_and_the_broker_stays(rules: Rules) -> None:
    whole = started(rules)
    leader = whole.partition().leader
    break_replica(whole, leader)
    whole.advance(1_000)
    after = whole.partition()
    assert after.leader not in (leader, -1) and leader not in after.isr
    assert not whole.is_fenced(leader)
    produce = whole.produce(after.leader, b"a")
    whole.advance(20)
    assert whole.produced(produce) == ErrorCode.NONE
    assert bool(reports(whole)) == (rules is KIP_589)


@pytest.mark.parametrize("rules", [KIP_858, KIP_589], ids=["KIP-858", "KIP-589"])
def test_after_repair_and_restart_the_replica_comes_back(rules: Rules) -> None:
    whole = started(rules)
    broken = whole.partition().leader
    break_replica(whole, broken)
    whole.advance(1_000)
    whole.crash(broken)
    for name in list(whole.disks[broken].files):
        if name == "offline-directories":
            del whole.disks[broken].files[name]
    whole.start(broken)
    whole.advance(30_000)
    assert whole.all_running()
    assert sorted(whole.partition().isr) == [1, 2, 3]


@pytest.mark.parametrize("rules", [KIP_858, KIP_589], ids=["KIP-858", "KIP-589"])
def test_a_broker_that_starts_with_a_failed_directory_keeps_that_replica_out(rules: Rules) -> None:
    whole = started(rules)
    broken = whole.partition().leader
    break_replica(whole, broken)
    whole.advance(1_000)
    whole.crash(broken)
    whole.start(broken)
    whole.advance(30_000)
    assert whole.all_running()
    assert broken not in whole.partition().isr


def test_below_3_7_the_controller_learns_of_it_by_alter_replica_state_alone() -> None:
    by_heartbeat, by_report = (
        started(replace(Rules.KAFKA_3_9, failed_replicas_reported_by=how), "3.6-IV2")
        for how in (FailedReplicas.HEARTBEAT, FailedReplicas.ALTER_REPLICA_STATE)
    )
    for whole in (by_heartbeat, by_report):
        leader = whole.partition().leader
        break_replica(whole, leader)
        whole.advance(1_000)
        moved = whole.partition().leader != leader
        assert moved == (whole is by_report)


def test_failures_of_one_moment_go_in_one_request() -> None:
    whole = Whole(rules=KIP_589, directories=3)
    whole.advance(100)
    for name in ("a", "b", "c", "d"):
        whole.create_topic(name, (1,))
        whole.advance(50)
    whole.advance(1_000)
    for index in (0, 1):
        whole.fail_directory(1, index)
        whole.advance(GATHER_MS // 4)
    assert not reports(whole)
    whole.advance(GATHER_MS)
    (request,) = reports(whole)
    assert sorted(topic.topic for topic in request.topics) == ["a", "b", "d"]
    assert request.event_type == 1 and request.event_reason


def test_mode_1_an_unreachable_follower_leaves_the_isr_because_it_lags() -> None:
    whole = started(KIP_589)
    leader = whole.partition().leader
    follower = next(b for b in (1, 2, 3) if b != leader)
    whole.drop_to_controller = {(follower, AlterReplicaStateRequest)}
    break_replica(whole, follower)
    whole.produce(leader, b"a", acks=1)
    whole.advance(1_000)
    assert follower in whole.partition().isr
    whole.advance(2 * LAG_MS)
    assert follower not in whole.partition().isr
    assert not whole.is_fenced(follower)


def test_mode_2_an_unreachable_leader_stays_leader_until_its_broker_restarts() -> None:
    whole = started(KIP_589)
    leader = whole.partition().leader
    whole.drop_to_controller = {(leader, AlterReplicaStateRequest)}
    break_replica(whole, leader)
    whole.advance(3 * LAG_MS)
    assert whole.partition().leader == leader
    assert whole.brokers[leader].lifecycle.state is BrokerState.RUNNING
    produce = whole.produce(leader, b"a")
    whole.advance(20)
    assert whole.produced(produce) == ErrorCode.KAFKA_STORAGE_ERROR
    whole.crash(leader)
    whole.advance(20_000)
    assert whole.partition().leader not in (leader, -1)


def test_mode_2_ends_when_a_report_comes_through() -> None:
    whole = started(KIP_589)
    leader = whole.partition().leader
    whole.drop_to_controller = {(leader, AlterReplicaStateRequest)}
    break_replica(whole, leader)
    whole.advance(2 * LAG_MS)
    whole.drop_to_controller = set()
    whole.advance(LAG_MS + 1_000)
    assert whole.partition().leader not in (leader, -1)


def test_mode_3_everything_is_reported_to_the_next_controller() -> None:
    whole = started(KIP_589)
    leader = whole.partition().leader
    whole.after_response = whole.fail_over  # it responds, and fails before it acts
    break_replica(whole, leader)
    whole.advance(GATHER_MS + 10)
    assert whole.partition().leader == leader
    assert whole.after_response is None and len(reports(whole)) == 1
    whole.advance(1_000)
    assert len(reports(whole)) == 2
    assert whole.partition().leader not in (leader, -1)


def test_a_leader_whose_failure_is_not_reported_stops_itself_as_shipped() -> None:
    """KIP-858: log.dir.failure.timeout.ms, where KIP-589 has a leader that nobody can use."""
    whole = started(KIP_858)
    leader = whole.partition().leader
    whole.cuts.add((leader, CONTROLLER))
    break_replica(whole, leader)
    whole.advance(STOPS_UNHEARD_MS + 1_000)
    assert whole.states[leader][-1] is BrokerState.SHUTTING_DOWN
    assert leader not in whole.brokers
    assert whole.partition().leader not in (leader, -1)


def test_a_deleted_topic_needs_no_report() -> None:
    whole = started(KIP_589)
    leader = whole.partition().leader
    states = whole.brokers[leader].replicas.state.replica_states
    whole.drop_to_controller = {(leader, AlterReplicaStateRequest)}
    break_replica(whole, leader)
    whole.advance(1_000)
    assert states.pending
    whole.delete_topic()
    whole.advance(100)
    assert not states.pending
