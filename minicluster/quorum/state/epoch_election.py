"""The votes of one election, or of one pre-vote.

Source:  EpochElection.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from minicluster.quorum.state.majority import majority


class Vote(Enum):
    """The vote of one voter."""

    UNRECORDED = "unrecorded"
    GRANTED = "granted"
    REJECTED = "rejected"


class EpochElection:
    """The votes of one election, over the voter set with which it began."""

    __slots__ = ("_votes",)

    def __init__(self, voter_ids: Iterable[int]) -> None:
        self._votes = dict.fromkeys(voter_ids, Vote.UNRECORDED)

    def record(self, voter_id: int, *, granted: bool) -> None:
        """Record a vote; of a node outside the set nothing is recorded."""
        if voter_id in self._votes:
            self._votes[voter_id] = Vote.GRANTED if granted else Vote.REJECTED

    def is_voter(self, voter_id: int) -> bool:
        """The id belongs to a voter of this election."""
        return voter_id in self._votes

    def vote_of(self, voter_id: int) -> Vote:
        """The vote of a voter of this election."""
        return self._votes[voter_id]

    def _with(self, vote: Vote) -> tuple[int, ...]:
        return tuple(voter for voter, recorded in self._votes.items() if recorded is vote)

    @property
    def unrecorded(self) -> tuple[int, ...]:
        """The voters without a recorded vote."""
        return self._with(Vote.UNRECORDED)

    @property
    def granting(self) -> tuple[int, ...]:
        """The voters that have granted."""
        return self._with(Vote.GRANTED)

    @property
    def is_won(self) -> bool:
        """A majority has granted."""
        return len(self.granting) >= majority(len(self._votes))

    @property
    def is_lost(self) -> bool:
        """A majority is out of reach."""
        open_or_won = len(self.granting) + len(self.unrecorded)
        return open_or_won < majority(len(self._votes))
