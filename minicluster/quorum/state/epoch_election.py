"""Quorum arithmetic: majorities, votes, and the offset that a majority has reached.

Source:  EpochElection, LeaderState.maybeUpdateHighWatermark, updateCheckQuorumForFollowingVoter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum


def majority(voters: int) -> int:
    """How many of that many voters are a majority."""
    return voters // 2 + 1


def fetchers_needed(voters: int, *, leader_votes: bool) -> int:
    """How many others must fetch so that, with the leader if it votes, a majority is in touch."""
    return majority(voters) - (1 if leader_votes else 0)


def replicated_offset(end_offsets: Sequence[int | None], *, missing: int = 0) -> int | None:
    """The highest offset that a majority of the voters has reached; None while unknown.

    Shapes:  ``missing`` is a planted fault: so many voters less than a majority are enough.
    """
    if not end_offsets:
        return None
    descending = sorted((-1 if end is None else end for end in end_offsets), reverse=True)
    reached = descending[max(0, len(descending) // 2 - missing)]
    return None if reached < 0 else reached


def election_backoff_ms(position: int | None, candidates: int, max_ms: int) -> int:
    """How long a preferred candidate waits before it stands: the first one not at all.

    Shapes:  position in the resigned leader's list, None if absent from it; whoever is absent comes
             behind all that are in it, so nobody waits where the list is empty (a leader that
             stopped and started again has none).
    Source:  KafkaRaftClient.endEpochElectionBackoff, strictExponentialElectionBackoffMs.
    """
    if position == 0 or candidates == 0:
        return 0
    if position is None:
        return max_ms
    return min(max_ms, (max_ms >> (candidates - 1)) << (position - 1))


class Vote(Enum):
    """What a voter said."""

    UNRECORDED = "unrecorded"
    GRANTED = "granted"
    REJECTED = "rejected"


class EpochElection:
    """The votes of one election, over the voter set with which it began."""

    __slots__ = ("_votes",)

    def __init__(self, voter_ids: Iterable[int]) -> None:
        self._votes = dict.fromkeys(voter_ids, Vote.UNRECORDED)

    def record(self, voter_id: int, granted: bool) -> None:
        """Note a voter's answer; of one outside the set nothing is noted."""
        if voter_id in self._votes:
            self._votes[voter_id] = Vote.GRANTED if granted else Vote.REJECTED

    def knows(self, voter_id: int) -> bool:
        """Whether the id belongs to a voter of this election."""
        return voter_id in self._votes

    def said(self, voter_id: int) -> Vote:
        """What a voter of this election said."""
        return self._votes[voter_id]

    def _who(self, vote: Vote) -> tuple[int, ...]:
        return tuple(voter for voter, said in self._votes.items() if said is vote)

    @property
    def unrecorded(self) -> tuple[int, ...]:
        """Who has not answered."""
        return self._who(Vote.UNRECORDED)

    @property
    def granting(self) -> tuple[int, ...]:
        """Who has granted."""
        return self._who(Vote.GRANTED)

    @property
    def is_won(self) -> bool:
        """Whether a majority has granted."""
        return len(self.granting) >= majority(len(self._votes))

    @property
    def is_lost(self) -> bool:
        """Whether a majority is out of reach."""
        open_or_won = len(self.granting) + len(self.unrecorded)
        return open_or_won < majority(len(self._votes))
