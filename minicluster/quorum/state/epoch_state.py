"""The states of a node in an epoch: what each remembers, and which votes it grants.

Times are deadlines in milliseconds; None is never. Which state follows which: the table of
``transitions``; what a state does by itself: ``polling``; the leader's own: ``leader_state``.

Source:  EpochState, NomineeState and their implementations, EpochElection; KIP-595, KIP-996.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import ClassVar

from msgspec import Struct, field

from minicluster.log.log import SnapshotId
from minicluster.quorum.errors import VoteRejection
from minicluster.quorum.state.voters import Endpoints, ReplicaKey


def majority(voters: int) -> int:
    """The number of voters that are a majority of so many."""
    return voters // 2 + 1


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


class EpochState(Struct, kw_only=True):
    """The fields that every state has."""

    name: ClassVar[str] = ""

    epoch: int
    leader_id: int | None = None
    leader_endpoints: Endpoints = ()
    voted: ReplicaKey | None = None
    high_watermark: int | None = None

    def vote_rejection(
        self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool
    ) -> VoteRejection | None:
        """The reason not to grant the candidate a vote, or pre-vote, of the present epoch.

        A state that fetches from no leader grants the first up-to-date candidate while no leader is
        known, and the same one again. A pre-vote takes nothing from others, so it is granted even
        after a vote.

        Source:  EpochState.canGrantVote, QuorumState.unattachedOrProspectiveCanGrantVote.
        """
        if not pre_vote and self.voted is not None:
            return None if self.voted.matches(candidate) else VoteRejection.VOTED_FOR_ANOTHER
        if not pre_vote and self.leader_id is not None:
            return VoteRejection.LEADER_KNOWN
        return None if up_to_date else VoteRejection.LOG_BEHIND


class UnattachedState(EpochState, kw_only=True):
    """Follows no leader: looks for one and, as a voter, waits for its election timeout."""

    name: ClassVar[str] = "Unattached"

    election_deadline_ms: int | None


class FetchingSnapshot(Struct, kw_only=True):
    """A snapshot of which some bytes have come from the leader."""

    snapshot_id: SnapshotId
    content: bytearray = field(default_factory=bytearray)


class FollowerState(EpochState, kw_only=True):
    """Fetches from a known leader."""

    name: ClassVar[str] = "Follower"

    fetch_deadline_ms: int
    update_voter_deadline_ms: int
    has_fetched_from_leader: bool = False
    has_updated_leader: bool = False
    fetching_snapshot: FetchingSnapshot | None = None

    def vote_rejection(
        self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool
    ) -> VoteRejection | None:
        """Grant a pre-vote until the leader has served a fetch.

        A leader that serves is alive, and an election would only depose it (KIP-996).
        """
        if not pre_vote:
            return VoteRejection.LEADER_KNOWN
        if self.has_fetched_from_leader:
            return VoteRejection.FETCHED_FROM_LEADER
        return None if up_to_date else VoteRejection.LOG_BEHIND

    def reset_fetch_timeout_for_successful_fetch(self, timeout_ms: int, now_ms: int) -> None:
        """The leader has served a fetch."""
        self.has_fetched_from_leader = True
        self.fetch_deadline_ms = now_ms + timeout_ms

    def reset_update_voter_period(self, period_ms: int, now_ms: int) -> None:
        """Compare this node with its entry in the voter set again after a period."""
        self.update_voter_deadline_ms = now_ms + period_ms


class ProspectiveState(EpochState, kw_only=True):
    """Requests pre-votes, to learn that it would win before it raises the epoch (KIP-996)."""

    name: ClassVar[str] = "Prospective"

    election: EpochElection
    election_deadline_ms: int


class CandidateState(EpochState, kw_only=True):
    """Requests the votes of an epoch of its own, with its own vote."""

    name: ClassVar[str] = "Candidate"

    election: EpochElection
    election_deadline_ms: int

    def vote_rejection(
        self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool
    ) -> VoteRejection | None:
        """Grant a pre-vote: this node's own vote of the epoch is taken."""
        if not pre_vote:
            return VoteRejection.IS_CANDIDATE
        return None if up_to_date else VoteRejection.LOG_BEHIND


class ResignedState(EpochState, kw_only=True):
    """Has led this epoch and announces that it does no more."""

    name: ClassVar[str] = "Resigned"

    election_deadline_ms: int
    preferred: tuple[ReplicaKey, ...]
    unacknowledged: dict[int, None]

    def vote_rejection(
        self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool
    ) -> VoteRejection | None:
        """Grant a pre-vote: a successor is wanted, in another epoch."""
        if not pre_vote:
            return VoteRejection.IS_RESIGNED
        return None if up_to_date else VoteRejection.LOG_BEHIND
