"""A network of quorum machines in virtual time, with a seed for everything that is chance."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import minicluster.zoo  # noqa: F401  (the faults that tests plant)
from minicluster.effects import Effect, Respond
from minicluster.faults import Faults
from minicluster.log.log import Log
from minicluster.log.quorum_state import QuorumState
from minicluster.protocol import decode, encode
from minicluster.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from minicluster.quorum.effects import (
    Commit,
    LeaderChange,
    LoadBootstrap,
    LoadSnapshot,
    Persist,
    SendTo,
)
from minicluster.quorum.machine import QuorumMachine
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.node import Draws
from minicluster.quorum.state.voters import Node, ReplicaKey, Voter, VoterEndpoint, VoterSet
from minicluster.rules import Rules
from tests.driving import Driving
from tests.quorum.checks import Checks

CLUSTER_ID = "cluster"
LISTENER = "CONTROLLER"


def directory_of(node_id: int, life: int = 0) -> UUID:
    """The directory id of a node; a wiped node has another one."""
    return UUID(int=(life << 64) | (1000 + node_id))


def endpoints_of(node_id: int) -> tuple[VoterEndpoint, ...]:
    return (VoterEndpoint(LISTENER, f"node{node_id}", 9090 + node_id),)


def voter_of(node_id: int, *, dynamic: bool) -> Voter:
    key = ReplicaKey(node_id, directory_of(node_id) if dynamic else None)
    return Voter(key=key, endpoints=endpoints_of(node_id))


def api_versions() -> ApiVersionsResponse:
    """The levels of kraft.version that a node's shell reports as supported."""
    feature = ApiVersionsResponse.SupportedFeatureKey(
        name="kraft.version", min_version=0, max_version=1
    )
    return ApiVersionsResponse(supported_features=(feature,))


@dataclass
class Member:
    """One node, alive or down, with what it keeps on disk and what its state machine saw."""

    id: int
    directory: UUID
    log: Log = field(default_factory=Log)
    stored: QuorumState | None = None
    machine: QuorumMachine | None = None
    life: int = 0
    committed: list[tuple[int, bytes | None]] = field(default_factory=list)
    leader_changes: list[tuple[int, int]] = field(default_factory=list)
    loads: list[tuple[int, int]] = field(default_factory=list)
    wake: int | None = None

    @property
    def up(self) -> QuorumMachine:
        assert self.machine is not None, f"node {self.id} is down"
        return self.machine


class Network(Driving):
    """Machines, links that delay and lose in either direction, and a clock that jumps."""

    def __init__(
        self,
        voters: Iterable[int],
        observers: Iterable[int] = (),
        *,
        seed: int = 0,
        dynamic: bool = False,
        settings: QuorumSettings | None = None,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        delay_ms: tuple[int, int] = (1, 5),
        wire: bool = False,
    ) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.settings = settings or QuorumSettings(append_linger_ms=0)
        self.rules = rules
        self.faults = faults
        self.delay_ms = delay_ms
        self.wire = wire
        self.dynamic = dynamic
        self.voter_ids = tuple(sorted(voters))
        ids = [*self.voter_ids, *sorted(observers)]
        self.members = {i: Member(i, directory_of(i)) for i in ids}
        self.cuts: set[tuple[int, int]] = set()
        self.admin: dict[object, Any] = {}
        self.trace: list[str] = []
        self.checks = Checks()
        if dynamic:
            for member in self.members.values():
                self.format(member)
        for i in ids:
            self.start(i)

    # --- nodes ------------------------------------------------------------------------------

    @property
    def voter_set(self) -> VoterSet:
        return VoterSet.of(voter_of(i, dynamic=self.dynamic) for i in self.voter_ids)

    def format(self, member: Member) -> None:
        from tests.quorum.bootstrap import bootstrap_checkpoint

        if member.id in self.voter_ids:
            member.log.snapshots[(0, 0)] = bootstrap_checkpoint(self.voter_set)

    def start(self, node_id: int) -> None:
        member = self.members[node_id]
        member.life += 1
        rng = random.Random(self.random.getrandbits(32))
        member.committed, member.leader_changes = [], []
        member.machine = QuorumMachine(
            node_id=node_id,
            directory_id=member.directory,
            cluster_id=CLUSTER_ID,
            log=member.log,
            draws=self.draws(node_id, rng),
            voters=None if self.dynamic else self.voter_set,
            # Where voters change, any member may be the one that has to name the leader.
            bootstrap_servers=[
                Node(i, f"node{i}", 9090 + i)
                for i in (self.members if self.dynamic else self.voter_ids)
            ],
            endpoints=endpoints_of(node_id),
            persisted=member.stored,
            settings=self.settings,
            rules=self.rules,
            faults=self.faults,
        )
        self._perform(member, member.machine.start(self.now_ms))

    def draws(self, node_id: int, rng: random.Random) -> Draws:
        return Draws(rng.randrange, rng.randrange)

    def kill(self, node_id: int, *, lossy: bool = False) -> None:
        member = self.members[node_id]
        member.machine = None
        member.life += 1
        if lossy:
            member.log.lose_unflushed()

    def wipe(self, node_id: int) -> None:
        member = self.members[node_id]
        assert member.machine is None
        member.log, member.stored = Log(), None
        self.checks.forget(node_id)
        if self.dynamic:
            member.directory = directory_of(node_id, member.life)

    # --- running ----------------------------------------------------------------------------

    def describe(self) -> str:
        lines = []
        for member in self.members.values():
            machine = member.machine
            if machine is None:
                lines.append(f"{member.id}: down")
            else:
                lines.append(
                    f"{member.id}: {machine.role} epoch {machine.epoch} leader {machine.leader_id}"
                    f" hw {machine.high_watermark} end {machine.log.end_offset}"
                )
        return "\n".join(lines)

    # --- looking ----------------------------------------------------------------------------

    def leaders(self) -> list[int]:
        return [i for i, m in self.members.items() if m.machine and m.machine.is_leader]

    def leader(self) -> int:
        """The one leader that a majority of the running voters follows, else -1."""
        best = max((m.machine.epoch, i) for i, m in self.members.items() if m.machine is not None)[
            0
        ]
        led = [i for i in self.leaders() if self.members[i].up.epoch == best]
        return led[0] if led else -1

    def has_leader(self) -> bool:
        leader = self.leader()
        return leader >= 0 and all(
            m.machine.leader_id == leader
            for m in self.members.values()
            if m.machine is not None and self.is_connected(m.id, leader)
        )

    def is_connected(self, one: int, other: int) -> bool:
        return (one, other) not in self.cuts and (other, one) not in self.cuts

    def wait_for_leader(self, within_ms: int = 30_000) -> int:
        self.run_until(self.has_leader, within_ms)
        return self.leader()

    # --- links ------------------------------------------------------------------------------

    def cut(self, sources: Iterable[int], targets: Iterable[int], *, both: bool = True) -> None:
        for source in sources:
            for target in targets:
                if source != target:
                    self.cuts.add((source, target))
                    if both:
                        self.cuts.add((target, source))

    def isolate(self, node_id: int) -> None:
        self.cut([node_id], [i for i in self.members if i != node_id])

    def heal(self) -> None:
        self.cuts.clear()

    # --- appends and requests ---------------------------------------------------------------

    def append(self, node_id: int, *values: bytes) -> int:
        machine = self.members[node_id].up
        offset = machine.append(machine.epoch, list(values), self.now_ms)
        self._perform(self.members[node_id], machine.poll(self.now_ms))
        return offset

    def request(self, node_id: int, request: Any, version: int) -> object:
        """Send an admin client's request; ``admin`` will have the response by this token."""
        token = ("admin", len(self.admin))
        self.admin[token] = None
        member = self.members[node_id]
        effects = member.up.on_request(token, request, version, self.now_ms)
        self._perform(member, effects)
        return token

    def do(self, node_id: int, effects: list[Effect]) -> None:
        self._perform(self.members[node_id], effects)

    # --- inside -----------------------------------------------------------------------------

    def _perform(self, member: Member, effects: list[Effect]) -> None:
        for effect in effects:
            self.checks.on_effect(self, member, effect)
            if isinstance(effect, Persist):
                member.stored = effect.state
            elif isinstance(effect, SendTo):
                self._send(member, effect)
            elif isinstance(effect, Respond):
                self._respond(member, effect)
            elif isinstance(effect, Commit):
                member.committed.extend(
                    (record.offset, None if batch.is_control else record.value)
                    for batch in effect.batches
                    for record in batch.records
                )
            elif isinstance(effect, LoadSnapshot):
                member.loads.append(effect.snapshot_id)
                member.committed = []
            elif isinstance(effect, LoadBootstrap):
                member.loads.append(effect.snapshot_id)
            elif isinstance(effect, LeaderChange):
                member.leader_changes.append((effect.leader_id, effect.epoch))
                self.trace.append(f"{self.now_ms} {member.id} {effect.leader_id} {effect.epoch}")
        self._schedule(member)

    def _schedule(self, member: Member) -> None:
        machine = member.machine
        wake = None if machine is None else machine.next_wake_ms()
        if wake is None or wake == member.wake:
            return
        member.wake = wake
        life = member.life

        def poll() -> None:
            if member.life == life and member.machine is not None and member.wake == wake:
                member.wake = None
                self._perform(member, member.machine.poll(self.now_ms))

        self.at(max(wake, self.now_ms), poll)

    def _carry(self, message: Any, version: int) -> Any:
        """A message as it arrives: with ``wire`` it travels as Kafka's bytes."""
        if not self.wire:
            return message
        return decode(type(message), encode(message, version), version)

    def _delay(self) -> int:
        return self.random.randint(*self.delay_ms)

    def _send(self, member: Member, send: SendTo) -> None:
        target = self.members.get(send.to)
        if target is None and send.host.startswith("node"):
            target = self.members.get(int(send.host.removeprefix("node")))
        life = member.life
        if target is None or (member.id, target.id) in self.cuts:
            return
        token = ("peer", member.id, life, send.correlation_id, send.version)

        def arrive() -> None:
            if (member.id, target.id) in self.cuts:
                return
            if target.machine is None:
                self.later(self._delay(), refuse)
                return
            if isinstance(send.request, ApiVersionsRequest):
                self._respond(target, Respond(token, api_versions()))
                return
            effects = target.machine.on_request(
                token, self._carry(send.request, send.version), send.version, self.now_ms
            )
            self._perform(target, effects)

        def refuse() -> None:
            if member.life == life and member.machine is not None:
                effects = member.machine.on_failure(send.correlation_id, self.now_ms)
                self._perform(member, effects)

        self.later(self._delay(), arrive)

    def _respond(self, member: Member, respond: Respond) -> None:
        token = respond.token
        if token[0] == "admin":
            self.admin[token] = respond.response
            return
        _, source_id, life, correlation_id, version = token
        response = self._carry(respond.response, version)
        source = self.members[source_id]

        def arrive() -> None:
            if (member.id, source_id) in self.cuts:
                return
            if source.life == life and source.machine is not None:
                effects = source.machine.on_response(correlation_id, response, self.now_ms)
                self._perform(source, effects)

        self.later(self._delay(), arrive)
