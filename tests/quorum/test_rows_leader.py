"""Rows I39-I69 of the conformance cases: replication, high watermark, listeners, check-quorum."""

from __future__ import annotations

import pytest

from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
)
from minicluster.quorum.effects import Commit, ShutDown
from minicluster.quorum.errors import VoteRejection
from minicluster.quorum.state.batch_accumulator import BatchAccumulator
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.voters import ReplicaKey, VoterSet
from tests.quorum.network import directory_of, voter_of
from tests.quorum.probe import Probe, data_batch, log_of

NONE = ErrorCode.NONE


def following(leader: int = 2, epoch: int = 5, **kwargs: object) -> Probe:
    stored = QuorumState(leader_id=leader, leader_epoch=epoch, data_version=0)
    return Probe(stored=stored, **kwargs)  # type: ignore[arg-type]


def test_i39_what_a_leader_wrote_is_committed_when_a_majority_has_it() -> None:
    probe = Probe((1, 2))
    epoch = probe.become_leader()
    probe.fetch(2, 1, epoch)
    assert probe.machine.high_watermark == 1
    assert probe.append(b"a", b"b", b"c") == 3
    assert probe.log.end_offset == 4
    probe.fetch(2, 1, epoch)
    assert probe.machine.high_watermark == 1
    probe.fetch(2, 4, epoch)
    assert probe.machine.high_watermark == 4
    assert probe.committed == [b"a", b"b", b"c"]


def test_replicas_that_lack_the_same_records_get_one_response_until_something_changes() -> None:
    probe = Probe((1, 2, 3))
    epoch = probe.become_leader()
    probe.append(b"a")
    second, third = probe.fetch(2, 1, epoch), probe.fetch(3, 1, epoch)
    assert second is third
    assert second is not None
    assert [batch.base_offset for batch in second.records.batches] == [1]  # type: ignore[union-attr]
    ahead = probe.fetch(3, 2, epoch)
    assert ahead is not None
    assert (ahead.high_watermark, bool(ahead.records)) == (2, False)
    again = probe.fetch(2, 1, epoch)
    assert again is not None
    assert (again.high_watermark, again.records) == (2, second.records)


def test_i40_a_leader_responds_at_once_where_the_logs_diverge() -> None:
    probe = Probe((1, 2), log=log_of((1, 3), (3, 3), (5, 3)))
    probe.become_leader()
    fetched = probe.fetch(2, 6, 2, wait_ms=500)
    assert fetched is not None
    assert (fetched.diverging_epoch.epoch, fetched.diverging_epoch.end_offset) == (1, 3)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "epoch", "wait_ms", "error"),
    [
        (-5, 1, 0, 0, ErrorCode.INVALID_REQUEST),
        (0, -1, 0, 0, ErrorCode.INVALID_REQUEST),
        (0, 2, 0, 0, ErrorCode.INVALID_REQUEST),
        (0, 0, 1, 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (0, 0, 0, -1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_i44_an_impossible_fetch_is_refused(
    offset: int, last_epoch: int, epoch: int, wait_ms: int, error: ErrorCode
) -> None:
    probe = Probe((1, 2))
    led = probe.become_leader()
    fetched = probe.fetch(2, offset, last_epoch, epoch=led + epoch, wait_ms=wait_ms)
    assert fetched is not None and fetched.error_code == error
    assert fetched.high_watermark == -1


def test_i48_a_followers_high_watermark_is_bounded_by_its_own_log() -> None:
    probe = following()

    def respond(high_watermark: int, *values: bytes) -> int:
        (send,) = probe.sent(FetchRequest)
        batches = [data_batch(probe.log.end_offset, 5, *values)] if values else []
        probe.respond_to_fetch(send, *batches, leader=2, epoch=5, high_watermark=high_watermark)
        return probe.machine.high_watermark

    assert respond(0) == 0
    assert respond(0, b"a", b"b") == 0
    assert respond(2) == 2
    assert respond(9) == 2
    assert probe.committed == [b"a", b"b"]


def test_i50_a_fetch_acknowledges_the_leader() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    assert {send.to for send in probe.sent(BeginQuorumEpochRequest)} == {2, 3}
    probe.advance(500)
    probe.fetch(2, 1, epoch)
    probe.advance(1_499)  # both requests are still in flight at 1000 ms and free again at 2000 ms
    assert probe.sent(BeginQuorumEpochRequest) == []
    probe.advance(1)
    assert {send.to for send in probe.sent(BeginQuorumEpochRequest)} == {2, 3}
    probe.fetch(2, 1, epoch)
    probe.fetch(3, 1, epoch)
    probe.advance(999)
    assert probe.sent(BeginQuorumEpochRequest) == []


def test_i52_a_leader_is_notified_of_itself_after_all_that_came_before() -> None:
    stored = QuorumState(leader_epoch=4, data_version=0)
    probe = Probe(stored=stored, log=log_of((1, 3), (1, 3), (2, 3)))
    epoch = probe.become_leader()
    assert epoch == 5 and probe.log.end_offset == 10
    assert probe.leader_changes()[-1] == (-1, 5)
    probe.fetch(2, 3, 1)
    assert probe.machine.high_watermark == -1
    assert probe.leader_changes()[-1] == (-1, 5)
    probe.fetch(2, 10, 5)
    assert probe.machine.high_watermark == 10
    assert probe.leader_changes()[-1] == (1, 5)
    calls = [e for e in probe.effects if isinstance(e, Commit)]
    assert sum(len(call.batches) for call in calls) == 4


def test_i53_a_late_listener_catches_up_and_one_that_left_gets_nothing() -> None:
    probe = Probe((1, 2))
    epoch = probe.become_leader()
    probe.append(b"a")
    probe.fetch(2, 2, epoch)
    probe.machine.node.register_listener("late")
    probe.poll()
    late = [e for e in probe.effects if isinstance(e, Commit) and e.listener == "late"]
    assert [b.base_offset for e in late for b in e.batches] == [0, 1]
    assert probe.leader_changes("late") == [(1, epoch)]
    probe.machine.node.listeners.pop("late")
    probe.append(b"b")
    probe.fetch(2, 3, epoch)
    late = [e for e in probe.effects if isinstance(e, Commit) and e.listener == "late"]
    assert [b.base_offset for e in late for b in e.batches] == [0, 1]
    assert probe.committed == [b"a", b"b"]


def test_i54_commits_are_reported_in_any_role() -> None:
    probe = Probe(log=log_of((1, 9)))
    epoch = probe.become_leader()
    probe.fetch(2, 10, epoch)
    assert probe.machine.high_watermark == 10
    probe.vote(epoch + 1, 2, last=(epoch, 10))
    assert probe.where == ("Unattached", epoch + 1, -1)
    probe.machine.node.register_listener("second")
    probe.poll()
    seen = [e for e in probe.effects if isinstance(e, Commit) and e.listener == "second"]
    assert seen[-1].batches[-1].last_offset == 9
    assert probe.leader_changes("second") == [(-1, epoch + 1)]


def test_i55_a_listener_is_notified_of_epochs_and_leaders_but_of_no_resignation() -> None:
    unattached = Probe(stored=QuorumState(leader_epoch=7, data_version=0))
    assert unattached.leader_changes() == [(-1, 7)]
    unattached.begin(7, 2)
    assert unattached.leader_changes() == [(-1, 7), (2, 7)]
    assert following(2, 7).leader_changes() == [(2, 7)]
    resigned = Probe(stored=QuorumState(leader_id=1, leader_epoch=7, data_version=0))
    assert resigned.role == "Resigned" and resigned.leader_changes() == []


def test_i57_end_quorum_epoch_prefers_who_has_fetched_most() -> None:
    probe = Probe(log=log_of((1, 3)))
    epoch = probe.become_leader()
    probe.fetch(2, 1, 1)
    probe.fetch(3, 3, 1)
    probe.machine.shutdown(5_000, probe.now_ms)
    probe.poll()
    sends = probe.sent(EndQuorumEpochRequest)
    assert {send.to for send in sends} == {2, 3}
    for send in sends:
        part = send.request.topics[0].partitions[0]
        assert part.leader_epoch == epoch
        assert [each.candidate_id for each in part.preferred_candidates] == [3, 2]


def test_i58_a_graceful_shutdown_gives_up_after_its_timeout() -> None:
    probe = Probe()
    probe.become_leader()
    probe.machine.shutdown(5_000, probe.now_ms)
    probe.advance(4_999)
    assert probe.machine.is_running
    probe.advance(1)
    assert not probe.machine.is_running
    assert probe.effects[-1] == ShutDown(timed_out=True)


# --- the leader's arithmetic: rows of LeaderStateTest -------------------------------------------


def leader(*voters: int, start: int, local: int = 1) -> LeaderState:
    role = LeaderState(
        epoch=5,
        leader_id=local,
        key=ReplicaKey(local, directory_of(local)),
        epoch_start_offset=start,
        accumulator=BatchAccumulator(epoch=5, next_offset=start, linger_ms=0),
        granting=(),
        check_quorum_timeout_ms=3_000,
        check_quorum_deadline_ms=3_000,
        begin_epoch_deadline_ms=0,
        begin_epoch_interval_ms=1_000,
    )
    role.set_voters(voter_set(*voters))
    return role


def voter_set(*ids: int) -> VoterSet:
    return VoterSet.of(voter_of(i, dynamic=True) for i in ids)


def key(node: int) -> ReplicaKey:
    return ReplicaKey(node, directory_of(node))


def test_i59_a_quorum_of_one_commits_by_itself_beyond_the_epoch_start() -> None:
    role = leader(1, start=15)
    role.on_local_end(15, voter_set(1))
    assert role.high_watermark is None
    role.on_local_end(16, voter_set(1))
    assert role.high_watermark == 16


def test_i60_a_quorum_of_two_commits_what_both_have() -> None:
    role = leader(1, 2, start=10)
    role.on_local_end(13, voter_set(1, 2))
    marks = []
    for offset in (10, 11, 13):
        role.on_fetch(key(2), offset, 0)
        marks.append(role.high_watermark)
    assert marks == [None, 11, 13]


def test_i61_a_quorum_of_three_commits_what_two_have() -> None:
    role = leader(1, 2, 3, start=10)
    role.on_local_end(15, voter_set(1, 2, 3))
    marks = []
    for step in ((2, 10), (3, 10), (3, 15), (1, 20), (2, 20)):
        if step[0] == 1:
            role.on_local_end(step[1], voter_set(1, 2, 3))
        else:
            role.on_fetch(key(step[0]), step[1], 0)
        marks.append(role.high_watermark)
    assert marks == [None, None, 15, 15, 20]


def test_i62_a_new_voter_can_raise_the_high_watermark() -> None:
    role = leader(1, 2, start=5)
    role.on_local_end(15, voter_set(1, 2))
    role.on_fetch(key(2), 10, 0)
    assert role.high_watermark == 10
    role.on_fetch(key(3), 15, 0)
    assert role.high_watermark == 10
    role.on_local_end(15, voter_set(1, 2, 3))
    assert role.high_watermark == 15


def test_i63_a_new_voter_never_lowers_the_high_watermark() -> None:
    role = leader(1, 2, start=5)
    role.on_local_end(15, voter_set(1, 2))
    role.on_fetch(key(2), 15, 0)
    role.on_fetch(key(3), 10, 0)
    role.on_local_end(16, voter_set(1, 2, 3))
    assert role.high_watermark == 15
    for offset, mark in ((13, 15), (13, 15), (16, 16)):
        role.on_fetch(key(3), offset, 0)
        assert role.high_watermark == mark


def test_i64_removing_a_follower_or_the_leader_never_lowers_the_high_watermark() -> None:
    role = leader(1, 2, 3, start=10)
    role.on_local_end(15, voter_set(1, 2, 3))
    role.on_fetch(key(2), 15, 0)
    role.on_fetch(key(3), 10, 0)
    assert role.high_watermark == 15
    role.on_local_end(16, voter_set(1, 3))  # 2 is removed
    assert role.high_watermark == 15
    role.on_fetch(key(3), 16, 0)
    assert role.high_watermark == 16

    role = leader(1, 2, 3, start=10)
    role.on_local_end(15, voter_set(1, 2, 3))
    role.on_fetch(key(2), 15, 0)
    role.on_fetch(key(3), 10, 0)
    role.on_local_end(16, voter_set(2, 3))  # the leader itself is removed
    assert role.high_watermark == 15
    role.on_fetch(key(2), 16, 0)
    assert role.high_watermark == 15
    role.on_fetch(key(3), 16, 0)
    assert role.high_watermark == 16


def test_i65_a_follower_that_goes_back_does_not_take_the_high_watermark_along() -> None:
    role = leader(1, 2, start=5)
    role.on_local_end(10, voter_set(1, 2))
    role.on_fetch(key(2), 10, 0)
    role.on_fetch(key(2), 5, 0)
    assert role.high_watermark == 10


def test_i67_check_quorum_wants_a_majority_of_voters() -> None:
    role = leader(1, 2, 3, 4, 5, start=0)
    role.on_fetch(key(2), 0, 1_500)
    role.on_fetch(key(3), 0, 1_500)
    assert not role.check_quorum_expired(4_499)
    role.on_fetch(key(2), 0, 4_000)
    role.on_fetch(key(9), 0, 4_000)  # an observer
    assert role.check_quorum_expired(4_500)


def test_i68_check_quorum_follows_the_voter_set() -> None:
    role = leader(1, 2, 3, start=0)
    role.on_fetch(key(2), 0, 1_500)
    assert role.check_quorum_deadline_ms == 4_500
    role.set_voters(voter_set(1, 2, 3, 4))
    role.on_fetch(key(2), 0, 3_000)
    assert role.check_quorum_deadline_ms == 4_500
    role.on_fetch(key(3), 0, 3_000)
    assert role.check_quorum_deadline_ms == 6_000
    role.set_voters(voter_set(2, 3, 4))
    role.on_fetch(key(3), 0, 4_500)
    assert role.check_quorum_deadline_ms == 6_000
    role.on_fetch(key(2), 0, 4_500)
    assert role.check_quorum_deadline_ms == 7_500


@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize("up_to_date", [False, True])
def test_i69_a_leader_grants_no_vote_of_any_kind(up_to_date: bool, pre_vote: bool) -> None:
    refusal = leader(1, 2, 3, start=0).vote_rejection(key(2), up_to_date, pre_vote)
    assert refusal is VoteRejection.IS_LEADER
