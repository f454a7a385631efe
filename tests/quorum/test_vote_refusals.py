"""A Vote that is not granted carries the reason that Kafka logs: one for each state."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchRequest
from minicluster.quorum.effects import VoteRejected
from minicluster.quorum.state.epoch_state import VoteRefusal
from tests.quorum.probe import Probe, log_of


def stored(epoch: int, *, leader: int = -1, voted: int = -1) -> QuorumState:
    return QuorumState(leader_id=leader, leader_epoch=epoch, voted_id=voted, data_version=0)


def with_a_longer_log() -> Probe:
    return Probe(log=log_of((3, 2)), stored=stored(5))


def with_a_vote_for_another() -> Probe:
    return Probe(stored=stored(5, voted=3))


def following() -> Probe:
    return Probe(stored=stored(5, leader=3))


def fetching_from_a_leader() -> Probe:
    probe = following()
    (send,) = probe.sent(FetchRequest)
    probe.answer_fetch(send, leader=3, epoch=5)
    return probe


def leading() -> Probe:
    return Probe((1,), stored=stored(4))


def standing() -> Probe:
    return Probe(stored=stored(5, voted=1))


def resigned() -> Probe:
    return Probe(stored=stored(5, leader=1))


REFUSALS: dict[VoteRefusal, tuple[Callable[[], Probe], bool]] = {
    VoteRefusal.LOG_BEHIND: (with_a_longer_log, False),
    VoteRefusal.VOTED_FOR_ANOTHER: (with_a_vote_for_another, False),
    VoteRefusal.LEADER_KNOWN: (following, False),
    VoteRefusal.FETCHED_FROM_LEADER: (fetching_from_a_leader, True),
    VoteRefusal.IS_LEADER: (leading, True),
    VoteRefusal.IS_CANDIDATE: (standing, False),
    VoteRefusal.IS_RESIGNED: (resigned, False),
}


@pytest.mark.parametrize("reason", VoteRefusal)
def test_a_vote_that_is_not_granted_has_its_reason(reason: VoteRefusal) -> None:
    """Source: EpochState.canGrantVote, "Rejecting Vote request … since …"."""
    make, pre_vote = REFUSALS[reason]
    probe = make()
    assert probe.machine.epoch == 5
    assert probe.vote(5, 2, pre=pre_vote) == (ErrorCode.NONE, False)
    rejected = [effect for effect in probe.effects if isinstance(effect, VoteRejected)]
    assert rejected == [VoteRejected(5, 2, pre_vote, reason)]


def test_a_granted_vote_has_no_refusal() -> None:
    probe = Probe(stored=stored(5))
    assert probe.vote(5, 2) == (ErrorCode.NONE, True)
    assert not [effect for effect in probe.effects if isinstance(effect, VoteRejected)]


def test_a_pre_vote_for_a_shorter_log_is_refused_in_every_state() -> None:
    for make in (with_a_vote_for_another, following, standing, resigned):
        probe = make()
        probe.log.append(log_of((5, 1)).batches[0])
        assert probe.vote(5, 2, pre=True) == (ErrorCode.NONE, False)
        assert probe.effects[-2] == VoteRejected(5, 2, True, VoteRefusal.LOG_BEHIND)
