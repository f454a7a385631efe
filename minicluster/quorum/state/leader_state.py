"""What a leader knows of its replicas: progress, high watermark, check-quorum, voter changes.

Source:  LeaderState.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from minicluster.quorum.settings import (
    CAUGHT_UP_WITHIN_MS,
    OBSERVER_SESSION_TIMEOUT_MS,
)
from minicluster.quorum.state.batch_accumulator import BatchAccumulator
from minicluster.quorum.state.epoch_election import fetchers_needed, replicated_offset
from minicluster.quorum.state.epoch_state import EpochState
from minicluster.quorum.state.voters import Endpoints, ReplicaKey, Voter, VoterSet


@dataclass(slots=True, kw_only=True)
class ReplicaState:
    """How far one replica has come, as its fetches say; times and offsets are -1 while unknown."""

    key: ReplicaKey
    end_offset: int | None = None
    fetched_ms: int = -1
    leader_end_at_fetch: int = -1
    caught_up_ms: int = -1
    acknowledged: bool = False

    def on_fetch(self, offset: int, leader_end: int | None, now_ms: int) -> None:
        """A valid fetch asks for an offset: everything below it is flushed there."""
        if leader_end is not None:
            if offset >= leader_end:
                self.caught_up_ms = max(now_ms, self.caught_up_ms)
            elif self.leader_end_at_fetch > 0 and offset >= self.leader_end_at_fetch:
                self.caught_up_ms = max(self.fetched_ms, self.caught_up_ms)
            self.leader_end_at_fetch = leader_end
        self.fetched_ms = max(now_ms, self.fetched_ms)
        self.end_offset = offset
        self.acknowledged = True


@dataclass(slots=True, kw_only=True)
class AddVoterHandlerState:
    """An AddRaftVoter that waits for ApiVersions or for its record's commit."""

    token: Any
    voter: ReplicaKey
    endpoints: Endpoints
    ack_when_committed: bool
    deadline_ms: int
    last_offset: int | None = None
    answered: bool = False


@dataclass(slots=True, kw_only=True)
class RemoveVoterHandlerState:
    """A RemoveRaftVoter that waits for its record's commit."""

    token: Any
    last_offset: int
    deadline_ms: int


@dataclass(slots=True, kw_only=True)
class LeaderState(EpochState):
    """Leads its epoch."""

    name: ClassVar[str] = "Leader"

    key: ReplicaKey
    epoch_start_offset: int
    accumulator: BatchAccumulator
    granting: tuple[int, ...]
    check_quorum_timeout_ms: int
    check_quorum_deadline_ms: int
    begin_epoch_deadline_ms: int
    begin_epoch_interval_ms: int
    voters: dict[int, ReplicaState] = field(default_factory=dict)
    observers: dict[ReplicaKey, ReplicaState] = field(default_factory=dict)
    fetched_voters: dict[int, None] = field(default_factory=dict)
    resign_requested: bool = False
    pending_add: AddVoterHandlerState | None = None
    pending_remove: RemoveVoterHandlerState | None = None
    reported_voters: dict[int, Voter] = field(default_factory=dict)
    upgraded_version: int | None = None
    commits_early: bool = False  # the planted fault S24
    committed_early: bool = False

    def can_grant(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        """A leader grants nothing."""
        return False

    # --- replicas ---------------------------------------------------------------------------

    def progress_of(self, key: ReplicaKey) -> ReplicaState:
        """The replica's progress, kept as an observer's unless the voter set holds it."""
        progress = self.voters.get(key.id)
        if progress is not None and progress.key.stands_for(key):
            return progress
        progress = self.observers.get(key)
        if progress is None:
            progress = self.observers[key] = ReplicaState(key=key)
        return progress

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether a replica votes in the present voter set."""
        progress = self.voters.get(key.id)
        return progress is not None and progress.key.stands_for(key)

    @property
    def other_voters(self) -> tuple[int, ...]:
        """The ids of the voters besides the leader, ascending."""
        return tuple(sorted(voter for voter in self.voters if voter != self.key.id))

    def set_voters(self, voter_set: VoterSet) -> None:
        """Take up a voter set; who left goes on as an observer and may come back as it was.

        Of an id that comes back with another directory nothing is kept.
        """
        old, new = dict(self.voters), {}
        for voter in voter_set.voters:
            known = old.pop(voter.key.id, None)
            observed = self.observers.pop(voter.key, None)
            if known is None or not known.key.stands_for(voter.key):
                known = observed or ReplicaState(key=voter.key)
            known.key = voter.key
            new[voter.key.id] = known
        self.voters = new
        for progress in old.values():
            self.observers.setdefault(progress.key, progress)

    def replicas_by_descending_offset(self) -> tuple[ReplicaKey, ...]:
        """The other voters, furthest first, unknown last, then by id."""

        def order(progress: ReplicaState) -> tuple[int, int]:
            end = -1 if progress.end_offset is None else progress.end_offset
            return (-end, progress.key.id)

        others = (p for p in self.voters.values() if p.key.id != self.key.id)
        return tuple(progress.key for progress in sorted(others, key=order))

    def drop_idle_observers(self, now_ms: int) -> None:
        """Forget observers that have not fetched for five minutes."""
        self.observers = {
            key: progress
            for key, progress in self.observers.items()
            if key == self.key or now_ms - progress.fetched_ms < OBSERVER_SESSION_TIMEOUT_MS
        }

    def is_caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        """Whether an observer has been at the leader's end, and has fetched within the hour."""
        progress = self.observers.get(key)
        return progress is not None and (
            progress.caught_up_ms > 0
            and progress.fetched_ms > 0
            and progress.fetched_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    # --- high watermark ---------------------------------------------------------------------

    def on_local_end(self, end_offset: int, voter_set: VoterSet) -> bool:
        """The leader's own log has grown; -> whether the high watermark advanced."""
        own = self.progress_of(self.key)
        own.end_offset = end_offset
        self.set_voters(voter_set)
        return self._advance()

    def on_fetch(self, key: ReplicaKey, offset: int, now_ms: int) -> bool:
        """A replica's valid fetch; -> whether the high watermark advanced."""
        voter = self.voters.get(key.id)
        if voter is None or not voter.key.stands_for(key):
            voter = None
        progress = self.progress_of(key) if voter is None else voter
        progress.on_fetch(offset, self.progress_of(self.key).end_offset, now_ms)
        self._on_contact(key, voter is not None, now_ms)
        return voter is not None and self._advance()

    def _advance(self) -> bool:
        ends = [progress.end_offset for progress in self.voters.values()]
        reached = replicated_offset(ends)
        if self.commits_early:
            early = replicated_offset(ends, missing=1)
            self.committed_early = early is not None and (reached is None or early > reached)
            reached = early
        if reached is None or reached <= self.epoch_start_offset:
            return False
        if self.high_watermark is not None and reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    # --- check-quorum -----------------------------------------------------------------------

    def on_contact(self, key: ReplicaKey, now_ms: int) -> None:
        """A replica has shown that it follows; a majority of voters renews the leader's time.

        An observer is not counted, but those who were may be a majority since the last change of
        the voters, and that is looked at now.
        """
        self._on_contact(key, self.is_voter(key), now_ms)

    def _on_contact(self, key: ReplicaKey, votes: bool, now_ms: int) -> None:
        fetched = self.fetched_voters
        if votes:
            fetched[key.id] = None
        leader_votes = self.is_voter(self.key)
        if len(fetched) >= fetchers_needed(len(self.voters), leader_votes=leader_votes):
            self.fetched_voters.clear()
            self.check_quorum_deadline_ms = now_ms + self.check_quorum_timeout_ms

    def check_quorum_expired(self, now_ms: int) -> bool:
        """Whether a majority has been silent for too long; of one voter nobody asks that."""
        return len(self.voters) > 1 and now_ms >= self.check_quorum_deadline_ms

    @property
    def is_alone(self) -> bool:
        """Whether the leader is the only voter."""
        return len(self.voters) == 1 and self.is_voter(self.key)

    def silent_voters(self, now_ms: int) -> tuple[int, ...]:
        """The other voters that have not fetched for half a fetch timeout."""
        return tuple(
            voter
            for voter in self.other_voters
            if now_ms - self.voters[voter].fetched_ms >= self.begin_epoch_interval_ms
        )
