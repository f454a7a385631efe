"""The state of one node, which every rule of this room takes first, and its effects.

``machine`` is the face; the rules are functions over this value: ``transitions`` (the table of the
roles), ``polling`` (what a role does by itself), ``handlers`` (every message, to ``elections``,
``replication``, ``snapshots``, ``voter_changes``, ``joining``), ``listener_context``.

Source:  KafkaRaftClient, QuorumState.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any
from uuid import UUID

from msgspec import Struct

from minicluster.effects import Effect, FaultHit, Respond
from minicluster.faults import Faults
from minicluster.log.log import Log
from minicluster.log.quorum_state import QuorumState
from minicluster.planting import step
from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum import wire
from minicluster.quorum.effects import Flushed, Persist, SendTo, VotersChanged
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.epoch_state import EpochState, UnattachedState
from minicluster.quorum.state.raft_log import RaftLog
from minicluster.quorum.state.request_manager import RequestManager
from minicluster.quorum.state.voter_set_history import VoterSetHistory
from minicluster.quorum.state.voters import (
    Endpoints,
    Node,
    ReplicaKey,
    VersionRange,
    Voter,
    VoterSet,
    node_at,
)
from minicluster.rules import Rules
from minicluster.values import Value


class Draws(Value):
    """The source of chance; each function gets a bound and draws from 0 to bound - 1.

    Shapes:  ``election_jitter_ms`` is added to the election timeout; ``bootstrap_index`` is the
             bootstrap server that is tried first.
    """

    election_jitter_ms: Callable[[int], int]
    bootstrap_index: Callable[[int], int]


class ParkedFetch(Struct):
    """A fetch that waits for records, a new high watermark, or its time.

    Source:  ThresholdPurgatory as KafkaRaftClient uses it; KIP-1166.
    """

    token: Any
    version: int
    replica: ReplicaKey
    partition: Any
    max_bytes: int
    deadline_ms: int
    prepared: Any


class ListenerContext(Struct):
    """The progress of one listener, and the last leader that it was notified of."""

    next_offset: int = 0
    is_new: bool = True
    notified_epoch: int = 0
    notified_leader: int | None = None
    has_consumed: bool = False


class QuorumNode:
    """The state of one node."""

    def __init__(
        self,
        *,
        node_id: int,
        directory_id: UUID,
        cluster_id: str,
        log: Log,
        draws: Draws,
        static_voters: VoterSet,
        bootstrap_servers: tuple[Node, ...],
        endpoints: Endpoints,
        listener_name: str,
        persisted: QuorumState | None,
        can_become_voter: bool,
        settings: QuorumSettings,
        rules: Rules,
        faults: Faults,
    ) -> None:
        self.key = ReplicaKey(node_id, directory_id)
        self.cluster_id = cluster_id
        self.draws = draws
        self.listener_name = listener_name
        self.can_become_voter = can_become_voter
        self.settings = settings
        self.rules = rules
        self.faults = faults
        self.log = RaftLog(log)
        self.history = VoterSetHistory(self.log, static_voters, self.key)
        self.own = Voter(
            key=self.key,
            endpoints=endpoints or static_voters.endpoints_of(node_id),
            versions=VersionRange(),
        )
        self.requests = RequestManager(
            bootstrap_servers=bootstrap_servers,
            retry_backoff_ms=settings.retry_backoff_ms,
            request_timeout_ms=settings.request_timeout_ms,
            bootstrap_index=draws.bootstrap_index,
        )
        self.persisted = persisted
        self.take_role(UnattachedState(epoch=0, election_deadline_ms=None))
        self.messages: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.parked: list[ParkedFetch] = []
        self.parked_until_ms: int | None = None  # the first of them is over
        self.listeners: dict[str, ListenerContext] = {}
        self.running = False
        self.shutdown_deadline_ms: int | None = None
        self.wake_ms: int | None = None
        self.poll_again = False  # the role has more to do at once
        self.listeners_behind = False  # the high watermark or the leader is news to them
        self.leaderless_pause_until_ms = 0
        self.last_fetch: tuple[Any, Any] | None = None
        self.last_response: tuple[Any, Any] = (None, None)
        self._effects: list[Effect] = []
        self._next_correlation_id = 0

    def take_role(self, role: EpochState) -> None:
        """Enter a state of an epoch; its leader and the leader's endpoints never change."""
        self.role = role
        self.leader_node = (
            None
            if role.leader_id is None
            else node_at(role.leader_id, role.leader_endpoints, self.listener_name)
        )

    # --- effects ----------------------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        """Add an effect, behind those of the same input."""
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """The effects since the last time."""
        effects, self._effects = self._effects, []
        return effects

    def respond(self, token: Any, response: Any) -> None:
        """Respond to a request."""
        self.emit(Respond(token, response))

    def hit(self, zoo_id: str) -> None:
        """Count that a planted fault has acted."""
        self.emit(FaultHit(zoo_id))

    def persist(self, state: QuorumState) -> None:
        """Write the quorum-state file."""
        self.persisted = state
        self.emit(Persist(state))

    def send(self, to: Node, request: Any, version: int, now_ms: int) -> None:
        """Send a request to a node without an outstanding one."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        self.requests.on_sent(to.id, correlation_id, type(request), now_ms)
        timeout_ms = self.settings.request_timeout_ms
        self.emit(
            SendTo(to.id, request, version, correlation_id, timeout_ms, host=to.host, port=to.port)
        )

    # --- parked fetches ---------------------------------------------------------------------
    # ``replication`` completes them when the log or the high watermark has grown.

    def park(self, fetch: ParkedFetch) -> None:
        """Let a fetch wait."""
        deadline_ms = self.parked_until_ms
        if deadline_ms is None or fetch.deadline_ms < deadline_ms:
            self.parked_until_ms = fetch.deadline_ms
        self.parked.append(fetch)

    def fail_parked(self, error: ErrorCode) -> None:
        """Reject every parked fetch."""
        parked, self.parked, self.parked_until_ms = self.parked, [], None
        for fetch in parked:
            response = wire.fetch_response(
                self, fetch.version, error=error, log_start=self.log.start_offset
            )
            self.respond(fetch.token, response)

    def expire_parked(self, now_ms: int) -> None:
        """Respond to those whose wait is over with what was prepared when they came."""
        due = [fetch for fetch in self.parked if now_ms >= fetch.deadline_ms]
        for fetch in due:
            self.parked.remove(fetch)
            self.respond(fetch.token, fetch.prepared)
        self.parked_until_ms = min((fetch.deadline_ms for fetch in self.parked), default=None)

    # --- log --------------------------------------------------------------------------------

    @step
    def flush(self) -> None:
        """Write everything that is in the log to disk."""
        self.log.log.flush()
        self.emit(Flushed(self.log.end_offset))

    def read_control_records(self) -> None:
        """Read the voters and kraft.version that are new in the log."""
        before = self.history.state
        self.history.update()
        self.emit_voters_changed(before)

    def emit_voters_changed(self, before: tuple[VoterSet, int] | None = None) -> None:
        """Report the voters and kraft.version, if they are not those from before."""
        state = self.history.state
        if state != before:
            self.emit(VotersChanged(*state))

    # --- voter and leader -------------------------------------------------------------------

    @property
    def is_voter(self) -> bool:
        """The node is in the latest voter set."""
        return self.history.is_voter

    @property
    def is_only_voter(self) -> bool:
        """The node is the whole voter set."""
        return self.history.voters.is_only_voter(self.key)

    @property
    def epoch(self) -> int:
        """The epoch the node is in."""
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        """The leader as responses name it, -1 if none is known."""
        return -1 if self.role.leader_id is None else self.role.leader_id

    @property
    def has_remote_leader(self) -> bool:
        """Another node is known to lead."""
        return self.role.leader_id is not None and self.role.leader_id != self.key.id

    @property
    def is_shutting_down(self) -> bool:
        """A graceful shutdown has begun."""
        return self.shutdown_deadline_ms is not None

    def election_deadline(self, now_ms: int) -> int:
        """A newly drawn election timeout, as a deadline."""
        base = self.settings.election_timeout_ms
        return now_ms + base + self.draws.election_jitter_ms(base)

    def register_listener(self, name: str) -> None:
        """Add a listener, which starts at the beginning."""
        self.listeners[name] = ListenerContext()
        self.listeners_behind = True
