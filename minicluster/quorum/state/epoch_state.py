"""The roles of a node in an epoch: what each remembers, and whom it grants a vote.

    Unattached   --election timeout-->         Prospective
    Follower     --fetch timeout-->            Prospective
    Prospective  --majority of pre-votes-->    Candidate of the next epoch
    Prospective  --lost, or timeout-->         Follower (leader known) or Unattached
    Candidate    --majority of votes-->        Leader
    Candidate    --election timeout-->         Prospective
    Leader       --asked to, or no quorum-->   Resigned
    Resigned     --election timeout-->         Unattached of the next epoch
    any          --higher epoch-->             Follower (leader known) or Unattached

Times are deadlines in milliseconds; None is never. Changes of role: ``transitions``; what a role
does when polled: ``polling`` and ``leading``; the leader's own state: ``leader_state``.

Source:  EpochState and its implementations; KIP-595, KIP-996.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from minicluster.log.log import SnapshotId
from minicluster.quorum.state.epoch_election import EpochElection
from minicluster.quorum.state.voters import Endpoints, ReplicaKey


@dataclass(slots=True, kw_only=True)
class EpochState:
    """What every role has."""

    name: ClassVar[str] = ""

    epoch: int
    leader_id: int | None = None
    leader_endpoints: Endpoints = ()
    voted: ReplicaKey | None = None
    high_watermark: int | None = None

    def can_grant(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """Whether the candidate gets this node's vote in the present epoch."""
        return pre_vote and up_to_date

    def _grant_like_unattached(self, key: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        if pre_vote:
            return up_to_date
        if self.voted is not None:
            return self.voted.stands_for(key)
        return self.leader_id is None and up_to_date


@dataclass(slots=True, kw_only=True)
class UnattachedState(EpochState):
    """Follows nobody: looks for the leader and, as a voter, waits for its election timeout."""

    name: ClassVar[str] = "Unattached"

    election_deadline_ms: int | None

    def can_grant(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """The first up-to-date candidate while no leader is known, and the same one again."""
        return self._grant_like_unattached(candidate, up_to_date, pre_vote)


@dataclass(slots=True, kw_only=True)
class FetchingSnapshot:
    """A snapshot on its way from the leader."""

    snapshot_id: SnapshotId
    content: bytearray = field(default_factory=bytearray)


@dataclass(slots=True, kw_only=True)
class FollowerState(EpochState):
    """Fetches from a known leader."""

    name: ClassVar[str] = "Follower"

    fetch_deadline_ms: int
    update_voter_deadline_ms: int
    has_fetched: bool = False
    has_updated_leader: bool = False
    download: FetchingSnapshot | None = None

    def can_grant(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """A pre-vote as long as the leader has not answered a fetch (KIP-996)."""
        return pre_vote and up_to_date and not self.has_fetched


@dataclass(slots=True, kw_only=True)
class ProspectiveState(EpochState):
    """Asks whether it would win before it bumps the epoch (KIP-996)."""

    name: ClassVar[str] = "Prospective"

    tally: EpochElection
    election_deadline_ms: int

    def can_grant(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """As an unattached node does."""
        return self._grant_like_unattached(candidate, up_to_date, pre_vote)


@dataclass(slots=True, kw_only=True)
class CandidateState(EpochState):
    """Stands for election in an epoch of its own; votes for itself."""

    name: ClassVar[str] = "Candidate"

    tally: EpochElection
    election_deadline_ms: int


@dataclass(slots=True, kw_only=True)
class ResignedState(EpochState):
    """Led this epoch and tells the voters that it does no more."""

    name: ClassVar[str] = "Resigned"

    election_deadline_ms: int
    preferred: tuple[ReplicaKey, ...]
    unacknowledged: dict[int, None]
