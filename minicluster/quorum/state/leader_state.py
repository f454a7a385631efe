"""A leader's state: the state of its replicas, high watermark, check-quorum, voter changes.

**Replicas.** Each has a state by (id, directory id). A voter's end offset counts towards the high
watermark; any other replica is an observer, of which nothing counts. A replica that joins or leaves
the voters keeps its state, so what it has fetched counts at once.

**Check-quorum** (KIP-835). The voters that have fetched are collected; when they are, with the
leader if it votes, a majority, the deadline is set again and the collection starts over. So the
leader resigns one timeout after the last such majority was complete, and a voter that fetches often
does not stand in for one that is silent.

Source:  LeaderState; its maybeUpdateHighWatermark, updateCheckQuorumForFollowingVoter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Struct, field

from minicluster.quorum.errors import VoteRejection
from minicluster.quorum.settings import (
    CAUGHT_UP_WITHIN_MS,
    OBSERVER_SESSION_TIMEOUT_MS,
)
from minicluster.quorum.state.batch_accumulator import BatchAccumulator
from minicluster.quorum.state.epoch_state import EpochState, majority
from minicluster.quorum.state.voters import Endpoints, ReplicaKey, Voter, VoterSet


class ReplicaState(Struct, kw_only=True):
    """The state of one replica, as its fetches show; times are -1 while unknown."""

    key: ReplicaKey
    end_offset: int | None = None
    fetched_ms: int = -1
    leader_end_at_fetch: int = -1
    caught_up_ms: int = -1
    acknowledged: bool = False

    def on_fetch(self, offset: int, leader_end: int | None, now_ms: int) -> bool:
        """A valid fetch of an offset: everything below it is flushed at the replica.

        Shapes:  -> the replica's end is another one than before.
        Source:  LeaderState.ReplicaState.updateFollowerState.
        """
        # A replica that asks now for what was the end at its previous fetch had all of it then.
        # Otherwise, under a steady load, none would ever be seen at the end, and none added.
        if leader_end is not None:
            if offset >= leader_end:
                self.caught_up_ms = max(now_ms, self.caught_up_ms)
            elif self.leader_end_at_fetch > 0 and offset >= self.leader_end_at_fetch:
                self.caught_up_ms = max(self.fetched_ms, self.caught_up_ms)
            self.leader_end_at_fetch = leader_end
        self.fetched_ms = max(now_ms, self.fetched_ms)
        self.acknowledged = True
        moved = offset != self.end_offset
        self.end_offset = offset
        return moved


class AddVoterHandlerState(Struct, kw_only=True):
    """An AddRaftVoter that waits for ApiVersions or for its record's commit."""

    token: Any
    voter: ReplicaKey
    endpoints: Endpoints
    ack_when_committed: bool
    deadline_ms: int
    last_offset: int | None = None
    is_completed: bool = False


class RemoveVoterHandlerState(Struct, kw_only=True):
    """A RemoveRaftVoter that waits for its record's commit."""

    token: Any
    last_offset: int
    deadline_ms: int


class LeaderState(EpochState, kw_only=True):
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
    voter_set: VoterSet | None = None  # the one that ``voters`` are of
    voters: dict[int, ReplicaState] = field(default_factory=dict)
    observers: dict[ReplicaKey, ReplicaState] = field(default_factory=dict)
    fetched_voters: dict[int, None] = field(default_factory=dict)
    fetchers_needed: int = 0  # of the present voters
    is_only_voter: bool = False
    local_end: int | None = None
    resign_requested: bool = False
    pending_add: AddVoterHandlerState | None = None
    pending_remove: RemoveVoterHandlerState | None = None
    reported_voters: dict[int, Voter] = field(default_factory=dict)
    upgraded_version: int | None = None

    def vote_rejection(
        self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool
    ) -> VoteRejection | None:
        """Grant nothing, not even a pre-vote: check-quorum ends a leader without a majority."""
        return VoteRejection.IS_LEADER

    # --- replicas ---------------------------------------------------------------------------

    def state_of(self, key: ReplicaKey) -> ReplicaState:
        """The replica's state, kept as an observer's unless the voter set holds it."""
        state = self.voters.get(key.id)
        if state is not None and state.key.matches(key):
            return state
        state = self.observers.get(key)
        if state is None:
            state = self.observers[key] = ReplicaState(key=key)
        return state

    def is_voter(self, key: ReplicaKey) -> bool:
        """The replica is in the present voter set."""
        state = self.voters.get(key.id)
        return state is not None and state.key.matches(key)

    @property
    def other_voters(self) -> tuple[int, ...]:
        """The ids of the voters besides the leader, ascending."""
        return tuple(sorted(voter for voter in self.voters if voter != self.key.id))

    def set_voters(self, voter_set: VoterSet) -> None:
        """Replace the voters; who left stays as an observer and may come back as it was."""
        if voter_set is self.voter_set:
            return
        self.voter_set = voter_set
        old, new = dict(self.voters), {}
        for voter in voter_set.voters:
            known = old.pop(voter.key.id, None)
            observed = self.observers.pop(voter.key, None)
            # Otherwise, if an id came back with another directory, the end of the disk that it lost
            # would count towards the majority.
            if known is None or not known.key.matches(voter.key):
                known = observed or ReplicaState(key=voter.key)
            known.key = voter.key
            new[voter.key.id] = known
        self.voters = new
        for state in old.values():
            self.observers.setdefault(state.key, state)
        leader_votes = self.is_voter(self.key)
        self.fetchers_needed = fetchers_needed(len(new), leader_votes=leader_votes)
        self.is_only_voter = leader_votes and len(new) == 1

    def voters_by_descending_offset(self) -> tuple[ReplicaKey, ...]:
        """The other voters, furthest first, unknown last, then by id."""

        def order(state: ReplicaState) -> tuple[int, int]:
            end = -1 if state.end_offset is None else state.end_offset
            return (-end, state.key.id)

        others = (p for p in self.voters.values() if p.key.id != self.key.id)
        return tuple(state.key for state in sorted(others, key=order))

    def drop_idle_observers(self, now_ms: int) -> None:
        """Forget observers that have not fetched for five minutes."""
        self.observers = {
            key: state
            for key, state in self.observers.items()
            if key == self.key or now_ms - state.fetched_ms < OBSERVER_SESSION_TIMEOUT_MS
        }

    def is_caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        """The observer has reached the leader's end, and has fetched within the hour."""
        state = self.observers.get(key)
        return state is not None and (
            state.caught_up_ms > 0
            and state.fetched_ms > 0
            and state.fetched_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    # --- high watermark ---------------------------------------------------------------------

    def on_local_end(self, end_offset: int, voter_set: VoterSet) -> bool:
        """The leader's own log has grown; -> whether the high watermark advanced."""
        self.local_end = self.state_of(self.key).end_offset = end_offset
        self.set_voters(voter_set)
        return self.advance_to(replicated_offset(self.end_offsets))

    def on_fetch(self, key: ReplicaKey, offset: int, now_ms: int) -> bool:
        """A replica's valid fetch; -> whether the high watermark advanced.

        It can advance only where the end of a voter has moved: an idle quorum sorts nothing.
        """
        voter = self.voters.get(key.id)
        votes = voter is not None and voter.key.matches(key)
        state = voter if voter is not None and votes else self.state_of(key)
        moved = state.on_fetch(offset, self.local_end, now_ms)
        self._on_contact(key, votes, now_ms)
        return moved and votes and self.advance_to(replicated_offset(self.end_offsets))

    @property
    def end_offsets(self) -> list[int | None]:
        """The end offsets of the voters, the leader's own among them if it votes."""
        return [state.end_offset for state in self.voters.values()]

    def advance_to(self, reached: int | None) -> bool:
        """Advance the high watermark to an offset that a majority has; -> it was below.

        Records of earlier epochs are committed only with one of this epoch: a majority that has
        them does not keep a leader of another epoch from truncating them (Raft, 5.4.2). Of three
        voters, what is below 5 being committed::

            epoch 2   1 leads and writes offset 5, which nobody fetches before 1 stops
            epoch 3   3 leads by the vote of 2, writes its LeaderChange at 5, and stops as well
            epoch 4   1 leads again, by the vote of 2; LeaderChange is at 6, where epoch 4 starts
                      2 fetches from 6, so 1 and 2, a majority, have offset 5 of epoch 2

        Were 5 committed by that, and did 1 stop now: 3, whose log ends with epoch 3, would get the
        vote of 2, whose log ends with epoch 2, and would have 2 truncate what was committed. Once 2
        fetches from 7 its log ends with epoch 4, and it gives 3 no vote any more: both are safe.

        Source:  LeaderState.maybeUpdateHighWatermark.
        """
        if reached is None or reached <= self.epoch_start_offset:
            return False
        if self.high_watermark is not None and reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    # --- check-quorum -----------------------------------------------------------------------

    def on_contact(self, key: ReplicaKey, now_ms: int) -> None:
        """A replica has shown that it follows; a majority of voters renews the leader's time."""
        self._on_contact(key, self.is_voter(key), now_ms)

    def _on_contact(self, key: ReplicaKey, votes: bool, now_ms: int) -> None:
        fetched = self.fetched_voters
        if votes:
            fetched[key.id] = None
        # Also after an observer's fetch. Otherwise, when the removal of a voter has made those who
        # fetched a majority, the leader could resign before one of them fetches again.
        if len(fetched) >= self.fetchers_needed:
            fetched.clear()
            self.check_quorum_deadline_ms = now_ms + self.check_quorum_timeout_ms

    def check_quorum_expired(self, now_ms: int) -> bool:
        """A majority has been silent for too long; a single voter is its own majority."""
        return len(self.voters) > 1 and now_ms >= self.check_quorum_deadline_ms

    def voters_without_recent_fetch(self, now_ms: int) -> tuple[int, ...]:
        """The other voters that have not fetched for half a fetch timeout."""
        return tuple(
            voter
            for voter in self.other_voters
            if now_ms - self.voters[voter].fetched_ms >= self.begin_epoch_interval_ms
        )


def fetchers_needed(voters: int, *, leader_votes: bool) -> int:
    """The number of others whose fetches show, with a leader that votes, a majority."""
    return majority(voters) - (1 if leader_votes else 0)


def replicated_offset(end_offsets: Sequence[int | None]) -> int | None:
    """The highest offset that a majority of the voters has reached; None while unknown."""
    if not end_offsets:
        return None
    ascending = sorted([-1 if end is None else end for end in end_offsets])
    reached = ascending[len(ascending) - majority(len(ascending))]
    return None if reached < 0 else reached
