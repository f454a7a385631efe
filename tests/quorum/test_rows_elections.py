"""Rows I01-I38 of the conformance cases: start-up, votes, resignation.

Where Kafka 4.3 differs from the tests the rows were taken from (pre-vote, no back-off of a
candidate), the rows are those of 4.3.
"""

from __future__ import annotations

import pytest

from minicluster.log.control import control_records
from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    VoteRequest,
)
from minicluster.protocol.records import LeaderChangeMessage
from minicluster.quorum.errors import IllegalArgument
from minicluster.quorum.state.voters import ReplicaKey
from tests.quorum.network import directory_of
from tests.quorum.probe import ELECTION_MS, Probe, data_batch, log_of

NONE = ErrorCode.NONE


def state(epoch: int, *, leader: int = -1, voted: int = -1) -> QuorumState:
    return QuorumState(leader_id=leader, leader_epoch=epoch, voted_id=voted, data_version=0)


def test_i01_a_single_voter_leads_epoch_1_at_once() -> None:
    assert Probe((1,)).where == ("Leader", 1, 1)


def test_i02_a_single_voter_that_led_epoch_2_leads_epoch_3() -> None:
    probe = Probe((1,), stored=state(2, leader=1))
    assert probe.where == ("Leader", 3, 1)
    assert probe.log.end_offset == 1
    (record,) = control_records(probe.log.batches[0])
    assert isinstance(record.message, LeaderChangeMessage) and record.message.leader_id == 1


def test_i03_a_restarted_leader_gives_no_vote_in_its_epoch() -> None:
    probe = Probe((1, 2), stored=state(2, leader=1))
    assert probe.where == ("Resigned", 2, 1)
    assert probe.vote(2, 2) == (NONE, False)
    assert probe.where == ("Resigned", 2, 1)


def test_i04_a_restarted_candidate_gives_no_vote_in_its_epoch() -> None:
    probe = Probe((1, 2), stored=state(2, voted=1))
    assert probe.vote(2, 2) == (NONE, False)
    assert probe.where == ("Candidate", 2, -1)


@pytest.mark.parametrize("stored", [state(2, leader=1), state(2, voted=1)])
def test_i05_it_votes_in_the_next_epoch(stored: QuorumState) -> None:
    probe = Probe((1, 2), stored=stored)
    assert probe.vote(3, 2) == (NONE, True)
    assert probe.where == ("Unattached", 3, -1)
    assert probe.stored is not None and probe.stored.voted_id == 2


def test_i06_a_node_that_shuts_down_still_votes() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    probe.machine.shutdown(5_000, probe.now_ms)
    end = (epoch, probe.log.end_offset)
    assert probe.vote(epoch + 1, 2, last=end) == (NONE, True)


def test_i09_end_quorum_epoch_is_repeated_until_acknowledged() -> None:
    probe = Probe(stored=state(19, leader=1))
    first, second = probe.sent(EndQuorumEpochRequest)
    assert {first.to, second.to} == {2, 3}
    probe.respond_to_epoch(first, leader=1)
    probe.machine.shutdown(60_000, probe.now_ms)  # so that it stays in its epoch
    probe.advance(2_001)
    assert [send.to for send in probe.sent(EndQuorumEpochRequest)] == [second.to]


def test_i10_resigning_fails_the_parked_fetches() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    assert probe.fetch(2, 1, epoch) is not None
    assert probe.fetch(2, 1, epoch, wait_ms=500) is None
    token = probe.last_token
    probe.machine.shutdown(5_000, probe.now_ms)
    probe.poll()
    responded = probe.responses[token].responses[0].partitions[0]
    assert responded.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert responded.current_leader.leader_id == 1


def test_i11_resigning_another_epoch_is_ignored_or_refused() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    probe.machine.resign(epoch - 1)
    probe.poll()
    assert probe.role == "Leader"
    with pytest.raises(IllegalArgument):
        probe.machine.resign(epoch + 1)
    follower = Probe()
    follower.begin(4, 2)
    with pytest.raises(IllegalArgument):
        follower.machine.resign(4)


def test_i12_a_resigned_leader_follows_the_next_one() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    probe.machine.resign(epoch)
    probe.poll()
    assert probe.where == ("Resigned", epoch, 1)
    assert probe.begin(epoch + 1, 2) is NONE
    assert probe.where == ("Follower", epoch + 1, 2)


def test_i16_a_resigned_leader_serves_nothing_and_moves_on_after_its_timeout() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    probe.machine.resign(epoch)
    probe.poll()
    refused = probe.fetch(2, 1, epoch)
    assert refused is not None and refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    probe.advance(ELECTION_MS)
    assert probe.where == ("Prospective", epoch + 1, -1)  # 4.3: pre-vote before any candidacy
    assert probe.leader_changes()[-1] == (-1, epoch + 1)


def test_i17_a_restarted_candidate_requests_both_votes_again() -> None:
    probe = Probe(stored=state(2, voted=1))
    sent = probe.sent(VoteRequest)
    assert [send.to for send in sent] == [2, 3]
    parts = [send.request.topics[0].partitions[0] for send in sent]
    assert {(part.replica_epoch, part.pre_vote) for part in parts} == {(2, False)}


def test_i21_a_begin_response_of_a_higher_epoch_deposes_the_leader() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    send = probe.sent(BeginQuorumEpochRequest)[0]
    probe.respond_to_epoch(send, error=ErrorCode.FENCED_LEADER_EPOCH, leader=3, epoch=epoch + 1)
    assert probe.where == ("Follower", epoch + 1, 3)


def test_i22_an_older_end_quorum_epoch_leaves_a_candidate_alone() -> None:
    probe = Probe(stored=state(5, voted=1))
    assert probe.end(3, 2, [1, 3]) is ErrorCode.FENCED_LEADER_EPOCH
    assert probe.where == ("Candidate", 5, -1)
    probe.advance(ELECTION_MS)
    assert probe.where == ("Prospective", 5, -1)  # 4.3: the same epoch, until pre-votes are won


def test_i23_an_older_end_quorum_epoch_leaves_a_leader_alone() -> None:
    probe = Probe(log=log_of((2, 1)))
    epoch = probe.become_leader()
    assert probe.end(epoch - 2, 2, [1]) is ErrorCode.FENCED_LEADER_EPOCH
    assert probe.role == "Leader"


def test_i26_the_second_of_the_preferred_candidates_waits_its_turn() -> None:
    probe = Probe()
    probe.begin(2, 2)
    assert probe.end(2, 2, [3, 1]) is NONE
    assert probe.where == ("Follower", 2, 2)
    assert probe.sent(FetchRequest)
    probe.advance(499)
    assert probe.role == "Follower"
    probe.advance(1)
    assert probe.where == ("Prospective", 2, 2)


def test_i26_the_first_of_the_preferred_candidates_starts_an_election_at_once() -> None:
    probe = Probe()
    probe.begin(2, 2)
    probe.end(2, 2, [1, 3])
    assert probe.where == ("Prospective", 2, 2)


def test_i26_who_is_not_preferred_waits_longest() -> None:
    probe = Probe()
    probe.begin(2, 2)
    probe.end(2, 2, [3])
    probe.advance(999)
    assert probe.role == "Follower"
    probe.advance(1)
    assert probe.role == "Prospective"


def test_i27_a_vote_request_is_repeated_after_its_timeout_and_the_late_response_is_ignored() -> (
    None
):
    from minicluster.quorum.settings import QuorumSettings

    settings = QuorumSettings(request_timeout_ms=300, append_linger_ms=0)
    probe = Probe((1, 2), settings=settings)
    (first,) = probe.become_candidate()
    probe.advance(300)
    (second,) = probe.sent(VoteRequest)
    probe.grant(first)
    assert probe.role == "Candidate"
    probe.grant(second)
    assert probe.role == "Leader"


def test_i28_a_valid_vote_is_granted_and_persisted() -> None:
    probe = Probe(stored=state(2))
    assert probe.vote(2, 2) == (NONE, True)
    assert probe.stored is not None
    assert (probe.stored.voted_id, probe.stored.leader_epoch) == (2, 2)


def test_i29_a_follower_gives_no_vote_in_its_leaders_epoch() -> None:
    probe = Probe()
    probe.begin(2, 2)
    assert probe.vote(2, 3) == (NONE, False)
    assert probe.where == ("Follower", 2, 2)


def test_i30_there_is_one_vote_per_epoch() -> None:
    probe = Probe(stored=state(2, voted=2))
    assert probe.vote(2, 3) == (NONE, False)
    assert probe.vote(2, 2) == (NONE, True)


def test_i31_a_vote_of_an_older_epoch_is_fenced() -> None:
    probe = Probe(stored=state(2))
    assert probe.vote(1, 2) == (ErrorCode.FENCED_LEADER_EPOCH, False)


def test_i32_an_observer_grants_votes() -> None:
    probe = Probe((2, 3), local=1)
    probe.begin(2, 2)
    assert probe.vote(3, 3) == (NONE, True)
    assert probe.where == ("Unattached", 3, -1)


def test_i33_leader_and_candidate_refuse_votes_of_their_epoch() -> None:
    leader = Probe()
    epoch = leader.become_leader()
    assert leader.vote(epoch, 2) == (NONE, False)
    candidate = Probe(stored=state(2, voted=1))
    assert candidate.vote(2, 2) == (NONE, False)


@pytest.mark.parametrize("last", [(0, -5), (-1, 0), (6, 0)])
def test_i34_an_impossible_log_end_is_an_invalid_request_and_changes_nothing(
    last: tuple[int, int],
) -> None:
    probe = Probe()
    probe.begin(5, 2)
    assert probe.vote(6, 3, last=last) == (ErrorCode.INVALID_REQUEST, False)
    assert probe.where == ("Follower", 5, 2)


def test_i35_a_wrong_voter_key_is_refused_after_the_epoch_has_moved() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    wrong_id = ReplicaKey(10, directory_of(10))
    end = (epoch, probe.log.end_offset)
    assert probe.vote(epoch + 1, 2, last=end, voter=wrong_id) == (
        ErrorCode.INVALID_VOTER_KEY,
        False,
    )
    assert probe.where == ("Unattached", epoch + 1, -1)
    wrong_directory = ReplicaKey(1, directory_of(10))
    assert probe.vote(epoch + 2, 2, last=end, voter=wrong_directory) == (
        ErrorCode.INVALID_VOTER_KEY,
        False,
    )
    assert probe.where == ("Unattached", epoch + 2, -1)


@pytest.mark.parametrize("cluster_id", ["", "invalid-uuid"])
def test_i36_another_clusters_requests_are_refused_as_a_whole(cluster_id: str) -> None:
    wrong = ErrorCode.INCONSISTENT_CLUSTER_ID
    probe = Probe()
    epoch = probe.become_leader()
    assert probe.vote(epoch + 1, 2, cluster_id=cluster_id) == (wrong, False)
    assert probe.begin(epoch + 1, 2, cluster_id=cluster_id) is wrong
    assert probe.end(epoch, 2, cluster_id=cluster_id) is wrong
    fetched = probe.fetch(2, 0, 0, cluster_id=cluster_id)
    assert fetched is not None and fetched.error_code == wrong
    assert probe.where == ("Leader", epoch, 1)


def test_i36_no_cluster_id_is_this_cluster() -> None:
    probe = Probe()
    epoch = probe.become_leader()
    fetched = probe.fetch(2, 0, 0, cluster_id=None)
    assert fetched is not None and fetched.error_code == NONE
    end = (epoch, probe.log.end_offset)
    assert probe.vote(epoch + 1, 2, last=end, cluster_id=None) == (NONE, True)
    assert probe.begin(epoch + 1, 2, cluster_id=None) is NONE
    assert probe.end(epoch + 1, 2, cluster_id=None) is NONE


def test_i38_a_rejected_candidate_waits_out_its_timeout() -> None:
    probe = Probe((1, 2), stored=state(1, voted=1))
    (send,) = probe.sent(VoteRequest)
    probe.grant(send, granted=False)
    probe.advance(ELECTION_MS - 1)
    assert probe.where == ("Candidate", 1, -1)
    probe.advance(1)
    assert probe.where == ("Prospective", 1, -1)


def test_i41_a_follower_fetches_from_its_log_end() -> None:
    empty = Probe(stored=state(5, leader=2))
    (send,) = empty.sent(FetchRequest)
    part = send.request.topics[0].partitions[0]
    assert (part.current_leader_epoch, part.fetch_offset, part.last_fetched_epoch) == (5, 0, 0)
    filled = Probe(stored=state(5, leader=2), log=log_of((3, 1)))
    (send,) = filled.sent(FetchRequest)
    part = send.request.topics[0].partitions[0]
    assert (part.current_leader_epoch, part.fetch_offset, part.last_fetched_epoch) == (5, 1, 3)


def test_i42_a_voter_requests_pre_votes_when_its_leader_is_silent() -> None:
    probe = Probe(stored=state(5, leader=2))
    probe.advance(1_999)
    assert probe.role == "Follower"
    probe.advance(1)
    assert probe.where == ("Prospective", 5, 2)
    sent = probe.sent(VoteRequest)
    parts = [send.request.topics[0].partitions[0] for send in sent]
    assert [(p.replica_epoch, p.pre_vote) for p in parts] == [(5, True), (5, True)]
    probe.grant(sent[0])
    assert probe.where == ("Candidate", 6, -1)


def test_i43_an_observer_never_becomes_a_candidate() -> None:
    following = Probe((2, 3), local=1, stored=state(5, leader=2))
    looking = Probe((2, 3), local=1)
    for probe in (following, looking):
        probe.sent(FetchRequest)
        probe.advance(20_000)
        assert probe.role in ("Follower", "Unattached")
        assert not probe.sent(VoteRequest)
        assert probe.sent(FetchRequest)
        assert probe.vote(9, 3, last=(0, 0)) == (NONE, True)


def test_i46_records_for_another_role_are_ignored() -> None:
    probe = Probe(stored=state(5, leader=2))
    (fetch,) = probe.sent(FetchRequest)
    probe.begin(6, 3)
    probe.respond_to_fetch(fetch, data_batch(0, 5, b"late"), leader=2, epoch=5, high_watermark=1)
    assert probe.where == ("Follower", 6, 3)
    assert probe.log.end_offset == 0

    candidate = Probe((1, 2), stored=state(5, leader=2))
    (fetch,) = candidate.sent(FetchRequest)
    candidate.become_candidate()
    candidate.respond_to_fetch(
        fetch, data_batch(0, 5, b"late"), leader=2, epoch=5, high_watermark=1
    )
    assert candidate.log.end_offset == 0


def test_i71_epochs_only_go_up() -> None:
    probe = Probe(stored=state(5))
    assert probe.vote(4, 2) == (ErrorCode.FENCED_LEADER_EPOCH, False)
    assert probe.begin(4, 2) is ErrorCode.FENCED_LEADER_EPOCH
    assert probe.vote(5, 2) == (NONE, True)
    assert probe.machine.epoch == 5


def test_i72_the_election_timer_survives_a_move_to_a_higher_epoch() -> None:
    probe = Probe(stored=state(5))
    probe.advance(600)
    probe.vote(6, 2, last=(0, 0), voter=ReplicaKey(9))  # moves the epoch, grants nothing
    assert probe.where == ("Unattached", 6, -1)
    probe.advance(ELECTION_MS - 600 - 1)
    assert probe.role == "Unattached"
    probe.advance(1)
    assert probe.where == ("Prospective", 6, -1)


def test_i73_an_observer_that_voted_never_becomes_a_candidate() -> None:
    probe = Probe((2, 3), local=1)
    assert probe.vote(3, 2) == (NONE, True)
    probe.advance(10_000)
    assert probe.where == ("Unattached", 3, -1)
