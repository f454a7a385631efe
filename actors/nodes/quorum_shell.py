"""The shell of a quorum machine, for voters and observers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from msgspec import field

from minicluster.actors.network import Completion
from minicluster.actors.nodes.config import BROKER_RACK
from minicluster.actors.nodes.shell import NodeContext, Shell, Wakeup
from minicluster.actors.recording.raft_trace import (
    LazyCrc,
    columns_of_batch,
    columns_of_log,
    columns_of_snapshot,
    voters_text,
)
from minicluster.actors.runtime import chance
from minicluster.log.checkpoint import Snapshot, encode_snapshot
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.quorum_state import QUORUM_STATE_NAME, QuorumState
from minicluster.metadata.snapshot import image_records
from minicluster.metadata.snapshot_generator import WriteSnapshot
from minicluster.protocol.records import KRaftVersionRecord
from minicluster.quorum import effects as qx
from minicluster.quorum.errors import IllegalArgument
from minicluster.quorum.handlers import REQUEST_HANDLERS
from minicluster.quorum.machine import QuorumMachine
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.node import Draws
from minicluster.quorum.state.voters import (
    Node,
    ReplicaKey,
    VersionRange,
    Voter,
    VoterEndpoint,
    VoterSet,
)
from minicluster.security.protocols import CONTROLLER_LISTENER, LISTENER, SecurityProtocol
from minicluster.values import Value

BETWEEN_LISTENERS = 10_000  # of made-up ports
_PLAINTEXT: Mapping[str, SecurityProtocol] = {LISTENER: SecurityProtocol.PLAINTEXT}

WAKE = "quorum-wake"
CLEAN = "quorum-clean"
DISK = "quorum-disk"
CLEAN_EVERY_MS = 60_000
BOOTSTRAP_ID = -2  # Kafka counts the bootstrap servers down from here

QUORUM_REQUESTS = frozenset(REQUEST_HANDLERS)
_WRITES = frozenset({qx.Appended, qx.Persist, qx.Truncated, qx.SnapshotInstalled})


class QuorumPlan(Value, kw_only=True):
    """The quorum's plan, the same on every node.

    Shapes:  addresses: the host and port of each node that listens; others have made-up ones.
             listeners: those of brokers, by name. of_brokers: the addresses that brokers have for a
             listener, where it is not that of the node.
    """

    cluster_id: str
    controller_ids: tuple[int, ...]
    voter_ids: tuple[int, ...]  # at first, with kraft.version 1
    kraft_version: int
    settings: QuorumSettings
    addresses: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    listeners: Mapping[str, SecurityProtocol] = field(default_factory=lambda: _PLAINTEXT)
    inter_broker_listener: str = LISTENER
    controller_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    of_brokers: Mapping[str, Mapping[int, tuple[str, int]]] = field(default_factory=dict)

    def host(self, node_id: int) -> str:
        """The host of a node, made up where it does not listen."""
        return self.addresses.get(node_id, (f"node{node_id}", 0))[0]

    def port(self, node_id: int) -> int:
        """The port of a node, made up where it does not listen."""
        return self.addresses.get(node_id, ("", 9_090 + node_id))[1]

    def broker_address(self, node_id: int, listener: str | None = None) -> tuple[str, int]:
        """The address with which a broker registers a listener, by default that between brokers."""
        name = listener or self.inter_broker_listener
        given = self.of_brokers.get(name, {}).get(node_id)
        place = list(self.listeners).index(name)
        made_up = self.host(node_id), self.port(node_id) + place * BETWEEN_LISTENERS
        return made_up if given is None else given

    def broker_addresses(self, node_id: int) -> dict[str, tuple[str, int]]:
        """The addresses with which a broker registers, by listener."""
        return {name: self.broker_address(node_id, name) for name in self.listeners}

    def controller_address(self, node_id: int) -> dict[str, tuple[str, int]]:
        """The address of a controller's listener."""
        return {CONTROLLER_LISTENER: (self.host(node_id), self.port(node_id))}

    @property
    def protocols(self) -> str:
        """``listener.security.protocol.map``."""
        every = {**self.listeners, CONTROLLER_LISTENER: self.controller_protocol}
        return ",".join(f"{name}:{protocol}" for name, protocol in every.items())

    def endpoint(self, node_id: int) -> VoterEndpoint:
        """The endpoint of a controller."""
        return VoterEndpoint(CONTROLLER_LISTENER, self.host(node_id), self.port(node_id))

    @property
    def static_voters(self) -> VoterSet:
        """The voters of a quorum whose voters never change (kraft.version 0)."""
        return _static_voters(
            tuple((node_id, self.endpoint(node_id)) for node_id in self.voter_ids)
        )

    def bootstrap_checkpoint(self, directories: Mapping[int, UUID]) -> bytes:
        """The checkpoint 0-0 that the first voters of a dynamic quorum are formatted with.

        Shapes:  the directory id of each voter -> the file's bytes.
        Source:  KIP-853; Formatter.writeBoostrapSnapshot.
        """
        voters = VoterSet.of(
            Voter(
                key=ReplicaKey(node_id, directories[node_id]),
                endpoints=(self.endpoint(node_id),),
                versions=VersionRange(0, 1),
            )
            for node_id in self.voter_ids
        )
        version = KRaftVersionRecord(version=0, kraft_version=self.kraft_version)
        snapshot = Snapshot(
            records=(), last_contained_log_timestamp=0, control=(version, voters.to_record())
        )
        return encode_snapshot(snapshot, epoch=0, timestamp_ms=0)


@lru_cache(maxsize=16)
def _static_voters(endpoints: tuple[tuple[int, VoterEndpoint], ...]) -> VoterSet:
    """One object for all nodes of a cluster, and for the next cluster of the same shape."""
    return VoterSet.of(
        Voter(key=ReplicaKey(node_id), endpoints=(endpoint,)) for node_id, endpoint in endpoints
    )


def static_configs(
    context: NodeContext, plan: QuorumPlan, role: str, addresses: Mapping[str, tuple[str, int]]
) -> dict[str, str]:
    """The configs of a node's properties file.

    Shapes:  addresses: those of its listeners, by name.
    """
    config, node_id = context.config, str(context.node_id)
    rack = config.rack_of(context.node_id)
    here = ",".join(f"{name}://{host}:{port}" for name, (host, port) in addresses.items())
    places = {voter: f"{plan.host(voter)}:{plan.port(voter)}" for voter in plan.voter_ids}
    voters = ",".join(f"{voter}@{place}" for voter, place in places.items())
    quorum = (
        {"controller.quorum.bootstrap.servers": ",".join(places.values())}
        if plan.kraft_version
        else {"controller.quorum.voters": voters}
    )
    return {
        "process.roles": role,
        "node.id": node_id,
        "broker.id": node_id,
        "listeners": here,
        "advertised.listeners": here,
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": plan.protocols,
        **quorum,
        "log.dirs": ",".join(config.log_dirs),
        **config.static,
        **({} if rack is None else {BROKER_RACK: rack}),
    }


class QuorumShell(Shell):
    """A shell with a quorum machine. Subclasses take its commits and changes of leader."""

    __slots__ = (
        "_bootstrap",
        "_disk",
        "_draw_key",
        "_draws",
        "_messages_after_write",
        "_unwritten",
        "_wake_ms",
        "plan",
        "quorum",
    )

    def __init__(self, context: NodeContext, plan: QuorumPlan) -> None:
        super().__init__(context)
        self.plan = plan
        self._disk = disk = context.disk
        self._draw_key = chance.key(self.rt.seed, f"quorum/{self.node_id}")
        self._draws = 0
        self._wake_ms: int | None = None
        self._unwritten: list[Any] = []
        self._messages_after_write: deque[Any] = deque()
        is_controller = self.node_id in plan.controller_ids
        self._bootstrap = {(plan.host(peer), plan.port(peer)): peer for peer in plan.controller_ids}
        self.quorum = QuorumMachine(
            node_id=self.node_id,
            directory_id=disk.directory_ids[0],
            cluster_id=plan.cluster_id,
            log=disk.log(METADATA_DIRECTORY),
            draws=Draws(election_jitter_ms=self._draw, bootstrap_index=self._draw),
            voters=None if plan.kraft_version else plan.static_voters,
            bootstrap_servers=tuple(
                Node(BOOTSTRAP_ID - index, plan.host(voter), plan.port(voter))
                for index, voter in enumerate(plan.controller_ids)
            ),
            endpoints=(plan.endpoint(self.node_id),) if is_controller else (),
            listener_name=CONTROLLER_LISTENER,
            persisted=disk.read(QUORUM_STATE_NAME),
            can_become_voter=is_controller,
            settings=plan.settings,
            rules=context.rules,
            faults=context.faults,
        )

    def _draw(self, bound: int) -> int:
        self._draws += 1
        return chance.draw(self._draw_key, self._draws) % bound if bound > 0 else 0

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            qx.SendTo: self._send_to,
            qx.Persist: self._persist,
            qx.Began: self._began,
            qx.Appended: self._appended,
            qx.Flushed: self._flushed,
            qx.Truncated: self._truncated,
            qx.SnapshotInstalled: self._snapshot_installed,
            qx.VotersChanged: self._voters_changed,
            qx.HighWatermarkChanged: self._high_watermark_changed,
            qx.Deposed: self._deposed,
            qx.Voted: self._voted,
            qx.VoteRejected: self._vote_rejected,
            qx.RequestInvalid: self._request_invalid,
            qx.Commit: self.on_commit,
            qx.LoadSnapshot: self.on_load_snapshot,
            qx.LoadBootstrap: self.on_load_bootstrap,
            qx.LeaderChange: self.on_leader_change,
            qx.ShutDown: lambda _: None,
        }

    # For subclasses.

    def on_commit(self, commit: qx.Commit) -> None:
        """Apply batches that have become committed."""
        raise NotImplementedError

    def on_load_snapshot(self, snapshot: qx.LoadSnapshot) -> None:
        """Start over from a snapshot."""
        raise NotImplementedError

    def on_load_bootstrap(self, bootstrap: qx.LoadBootstrap) -> None:
        """The log begins with a bootstrap checkpoint."""

    def on_leader_change(self, change: qx.LeaderChange) -> None:
        """Follow a change of the epoch or of its leader."""
        raise NotImplementedError

    # Inputs of the machine.

    def on_start(self) -> None:
        """Start the machine from the persisted state."""
        self.drive(self.quorum.start(self.now()))

    def drive(self, effects: list[Any]) -> None:
        """Perform the quorum machine's effects and set the timer of its next wake-up."""
        write_ms = self._disk.write_ms
        if write_ms and any(type(effect) in _WRITES for effect in effects):
            self._wait_for_the_disk(effects, write_ms)
            return
        if effects:
            self.perform(effects)
        self._rearm()

    # A slow disk: the thread that writes handles no message until the write is done.

    def _wait_for_the_disk(self, effects: list[Any], write_ms: int) -> None:
        self._unwritten = effects
        self.on_receive = self._while_writing  # type: ignore[method-assign]
        self.set_timer(DISK, self.now() + write_ms)

    def _while_writing(self, message: Any) -> Any:
        if isinstance(message, Wakeup) and message.name == DISK:
            del self.on_receive
            self._timers.pop(DISK, None)
            effects, self._unwritten = self._unwritten, []
            self.perform(effects)
            self._rearm()
            while self._messages_after_write and not self._unwritten:
                self.on_receive(self._messages_after_write.popleft())
        else:
            self._messages_after_write.append(message)

    def _rearm(self) -> None:
        wake_ms = self.quorum.next_wake_ms()
        if wake_ms is not None and (self._wake_ms is None or wake_ms < self._wake_ms):
            self._wake_ms = wake_ms
            self.set_timer(WAKE, wake_ms)

    def on_wakeup(self, name: str) -> None:
        if name == WAKE:
            self._wake()
        elif name == CLEAN:
            self._clean()
        else:
            self.on_machine_timer(name)

    def on_machine_timer(self, name: str) -> None:
        """Handle a timer of the node's other machines."""
        raise NotImplementedError(f"{self.name} has no timer {name}")

    def _wake(self) -> None:
        """Poll the machine when it is due; its deadline may have moved since the timer was set."""
        self._wake_ms = None
        wake_ms = self.quorum.next_wake_ms()
        if wake_ms is not None and wake_ms <= self.now():
            self.drive(self.quorum.poll(self.now()))
        else:
            self._rearm()

    def on_quorum_request(self, token: Any, request: Any, version: int) -> None:
        """Handle a request of a peer or an admin."""
        self.drive(self.quorum.on_request(token, request, version, self.now()))

    def on_response(self, completion: Completion) -> None:
        """Handle a peer's response or a disconnect; the machine counts request timeouts itself."""
        exchange = completion.exchange
        number = exchange.correlation_id
        if exchange.context is not WAKE:
            self.on_machine_response(completion)
        elif completion.failure is None:
            self.drive(self.quorum.on_response(number, completion.response, self.now()))
        elif completion.failure == "disconnected":
            self.drive(self.quorum.on_failure(number, self.now()))

    def on_machine_response(self, completion: Completion) -> None:
        """Handle the end of a request of the node's other machines."""
        raise NotImplementedError(f"{self.name} sends no requests but the quorum's")

    # Snapshots.

    def write_snapshot(self, wanted: WriteSnapshot) -> bool:
        """Store a snapshot, and clean up old ones every minute from then on."""
        try:
            written = self.quorum.create_snapshot(
                wanted.snapshot_id,
                tuple(image_records(wanted.image, self.context.rules)),
                self.now(),
                last_contained_log_timestamp=wanted.last_contained_log_timestamp,
            )
        except IllegalArgument as refusal:  # the log has moved on to another snapshot meanwhile
            self.log.info("snapshot.refused", reason=str(refusal))
            return False
        if written:
            self.recorder.event("snapshot", self.node_id, *wanted.snapshot_id)
            if CLEAN not in self._timers:
                self.set_timer(CLEAN, self.now() + CLEAN_EVERY_MS)
        return written

    def _clean(self) -> None:
        """Delete old snapshots and the log before them, as the retention allows."""
        config, now_ms = self.context.config, self.now()
        self.quorum.clean(config.metadata_retention_bytes, config.metadata_retention_ms, now_ms)
        if len(self.quorum.log.snapshots) >= 2:
            self.set_timer(CLEAN, now_ms + CLEAN_EVERY_MS)

    # The machine's effects.

    def _send_to(self, send: qx.SendTo) -> None:
        to = send.to if send.to >= 0 else self._bootstrap[(send.host, send.port)]
        self.network.request(
            src=self.node_id,
            dst=to,
            body=send.request,
            version=send.version,
            caller=self,
            context=WAKE,
            correlation_id=send.correlation_id,
            timeout_ms=None,  # the machine has a timeout of its own
        )

    def _persist(self, persist: qx.Persist) -> None:
        state: QuorumState = persist.state
        before: QuorumState | None = self.context.disk.read(QUORUM_STATE_NAME)
        self.context.disk.write(QUORUM_STATE_NAME, state)
        if before is None or before.leader_epoch != state.leader_epoch:
            self._raft_event("epoch", epoch=state.leader_epoch, leader=state.leader_id)
        if state.leader_id == self.node_id and (
            before is None
            or (before.leader_id, before.leader_epoch) != (state.leader_id, state.leader_epoch)
        ):
            self._raft_event("elected", epoch=state.leader_epoch, leader=state.leader_id)

    def _began(self, began: qx.Began) -> None:
        end = began.end_offset
        columns = columns_of_log(self.quorum.log, end)
        self._raft_event("begin", epoch=began.last_epoch, offset=end, **columns)

    def _appended(self, appended: qx.Appended) -> None:
        batch = appended.batch
        self._raft_event(
            "append",
            epoch=batch.leader_epoch,
            offset=batch.last_offset,
            crc=LazyCrc(batch),
            **columns_of_batch(batch),
        )

    def _flushed(self, flushed: qx.Flushed) -> None:
        self._raft_event("flush", epoch=self.quorum.epoch, offset=flushed.end_offset)

    def _truncated(self, truncated: qx.Truncated) -> None:
        self._raft_event("truncate", epoch=truncated.last_epoch, offset=truncated.end_offset)

    def _snapshot_installed(self, installed: qx.SnapshotInstalled) -> None:
        end, epoch = installed.snapshot_id
        content = self.quorum.log.snapshots.get(installed.snapshot_id)
        columns = {} if content is None else columns_of_snapshot(content)
        self._raft_event("begin", epoch=epoch, offset=end, **columns)

    def _voters_changed(self, changed: qx.VotersChanged) -> None:
        self._raft_event(
            "voters",
            epoch=self.quorum.epoch,
            voters=voters_text(changed.voters),
            kraft_version=changed.kraft_version,
        )

    def _voted(self, voted: qx.Voted) -> None:
        self._raft_event("voted", epoch=voted.epoch, voted_for=voted.candidate_id)

    def _vote_rejected(self, rejected: qx.VoteRejected) -> None:
        self.log.info(
            "vote.rejected",
            epoch=rejected.epoch,
            candidate=rejected.candidate_id,
            pre_vote=rejected.pre_vote,
            reason=rejected.reason.value,
        )

    def _request_invalid(self, invalid: qx.RequestInvalid) -> None:
        self.log.info("request.invalid", reason=invalid.reason.value)

    def _deposed(self, deposed: qx.Deposed) -> None:
        self._raft_event("resign", epoch=deposed.epoch, leader=self.node_id)

    def _high_watermark_changed(self, changed: qx.HighWatermarkChanged) -> None:
        voters = changed.voters  # of a leader: the voters whose majority counts
        columns = {} if voters is None else {"voters": voters_text(voters)}
        self._raft_event("hw", epoch=self.quorum.epoch, offset=changed.high_watermark, **columns)

    def _raft_event(self, kind: str, **values: Any) -> None:
        self.recorder.trace(
            "raft_event",
            {"node": self.node_id, "incarnation": self._incarnation, "kind": kind, **values},
        )
