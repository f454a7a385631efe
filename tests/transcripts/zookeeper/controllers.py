"""One controller of a run: its machine, what waits for it, and what it has sent.

Kafka's queue takes events in the order of their arrival, which no recording has: a watch and a
request that arrive at about the same time may have gone either way. So events wait here until
ZooKeeper's log, or a recorded response, shows that they were processed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from minicluster.effects import Effect, Respond
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.zookeeper.controller.context import Context
from minicluster.zookeeper.controller.effects import ControlRequest, RequestZooKeeper
from minicluster.zookeeper.controller.machine import ZooKeeperControllerMachine
from minicluster.zookeeper.controller.settings import (
    ReleaseRules,
    ZooKeeperControllerSettings,
)
from minicluster.zookeeper.server.operations import (
    Code,
    Exists,
    GetChildren,
    GetData,
    Request,
    Result,
)
from minicluster.zookeeper.znodes.cluster import BrokerRegistration
from tests.transcripts.zookeeper.recording import Recorded, Recording, Transaction
from tests.transcripts.zookeeper.znodes import Znodes

Inject = Callable[[ZooKeeperControllerMachine], list[Effect]]


@dataclass(frozen=True, slots=True)
class SeenChildren:
    """The children of a znode, each time after its watch has fired."""

    path: str
    states: list[tuple[str, ...]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that has arrived, and the time by which it was processed for certain."""

    name: str
    inject: Inject
    arrived_ms: int
    deadline_ms: int
    recorded: Recorded | None = None
    """A request that the controller decides; None for a watch, a response or a config."""
    seen: SeenChildren | None = None
    """What a watch of children may have let the controller read."""


@dataclass(slots=True)
class Trial:
    """Requests and responses of a machine since its event began."""

    sent: list[ControlRequest] = field(default_factory=list)
    responses: dict[Any, Any] = field(default_factory=dict)


class Controller:
    """A broker that is the controller in one epoch."""

    def __init__(
        self,
        recording: Recording,
        znodes: Znodes,
        broker: int,
        session: int,
        new_id: Callable[[], UUID],
    ) -> None:
        self.broker, self.session = broker, session
        self.machine = machine_of(recording, broker, new_id)
        self.expired = False  # its session is gone
        self.ended = False  # and its machine has learned of it
        self.elected_epoch = self.elected_ms = 0
        self.waiting: list[Waiting] = []
        self.sent: list[ControlRequest] = []
        self.sent_ms: list[int] = []  # of each request
        self.responses: dict[Any, Any] = {}
        self.requested: list[Request] = []
        self.results: dict[int, Result] = {}
        self.seen: dict[str, tuple[str, ...]] = {}  # children that an event read before they grew
        self._znodes = znodes

    @property
    def epoch(self) -> int:
        """Its controller epoch; 0 once it has resigned."""
        return self.machine.state.context.epoch

    @property
    def waits_for_write(self) -> bool:
        """Its event has sent ZooKeeper writes that the recording has not shown yet."""
        return bool(self.requested)

    def comes_first(self, place: int) -> bool:
        """No earlier request of its sender waits whose response had come before it was sent."""
        this = self.waiting[place].recorded
        return this is None or not any(
            (one.client, one.api) == (this.client, this.api)
            and one.response is not None
            and one.ms <= this.received_ms
            for one in (event.recorded for event in self.waiting[:place])
            if one is not None
        )

    def pump(self, effects: list[Effect], now_ms: int) -> None:
        """Carry effects out; reads are done at once, writes wait for the recording."""
        self.elected_epoch = max(self.elected_epoch, self.epoch)
        for effect in effects:
            match effect:
                case ControlRequest():
                    self.sent.append(effect)
                    self.sent_ms.append(now_ms)
                case Respond():
                    self.responses[effect.token] = effect.response
        for effect in effects:
            if isinstance(effect, RequestZooKeeper):
                self._submit(effect, now_ms)

    def _submit(self, effect: RequestZooKeeper, now_ms: int) -> None:
        if self.expired:
            gone = [Result(Code.SESSIONEXPIRED)] * len(effect.requests)
            self.pump(self.machine.on_zookeeper(gone, now_ms), now_ms)
        elif all(isinstance(one, GetData | Exists | GetChildren) for one in effect.requests):
            results = [
                self._read(one)
                for one in effect.requests
                if isinstance(one, GetData | Exists | GetChildren)
            ]
            self.pump(self.machine.on_zookeeper(results, now_ms), now_ms)
        else:
            self.requested, self.results = list(effect.requests), {}

    def _read(self, request: GetData | Exists | GetChildren) -> Result:
        if isinstance(request, GetChildren) and request.path in self.seen:
            return Result(children=self.seen[request.path])
        return self._znodes.read(request, self.session)

    def take(self, transaction: Transaction) -> bool:
        """Match a recorded transaction with one of the writes that wait."""
        for place, request in enumerate(self.requested):
            if place in self.results:
                continue
            result = self._znodes.result_of(request, transaction)
            if result is not None:
                self.results[place] = result
                return True
        return False

    def go_on(self, now_ms: int) -> None:
        """Go on with the event, if all of its writes have been recorded."""
        if self.requested and len(self.results) == len(self.requested):
            results = [self.results[place] for place in range(len(self.requested))]
            self.requested, self.results = [], {}
            self.pump(self.machine.on_zookeeper(results, now_ms), now_ms)

    def would_take(self, transaction: Transaction) -> bool:
        """One of the writes that wait looks like the transaction."""
        return any(
            place not in self.results and self._znodes.looks_like(request, transaction)
            for place, request in enumerate(self.requested)
        )

    def snapshot(self) -> tuple[Any, ...]:
        """The machine and its outbox between two events."""
        assert not self.requested
        state = self.machine.state
        return (
            _copied(state.context),
            state.active_controller,
            dict(state.watched_nodes),
            dict(state.watched_children),
            list(self.waiting),
            len(self.sent),
            dict(self.responses),
        )

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Back to a snapshot, which stays usable."""
        context, active, nodes, children, waiting, sent, responses = snapshot
        state = self.machine.state
        state.context, state.active_controller = _copied(context), active
        state.watched_nodes, state.watched_children = dict(nodes), dict(children)
        state.queue.clear()
        self.machine._process, self.machine._waits = None, False
        self.waiting, self.responses = list(waiting), dict(responses)
        del self.sent[sent:], self.sent_ms[sent:]
        self.requested, self.results = [], {}


def _copied(context: Context) -> Context:
    """A context that shares nothing that changes with the other one."""
    copied = copy.copy(context)
    for name, value in vars(context).items():
        if isinstance(value, dict):
            inner = {
                key: one.copy() if isinstance(one, dict | set) else one
                for key, one in value.items()
            }
            setattr(copied, name, inner)
        elif isinstance(value, set):
            setattr(copied, name, set(value))
    return copied


def machine_of(
    recording: Recording, broker: int, new_id: Callable[[], UUID] = lambda: ZERO_UUID
) -> ZooKeeperControllerMachine:
    """The machine of a broker, with the settings of the run and the rules of its release."""
    settings = recording.summary["settings"]

    def config(name: str, default: Any) -> Any:
        value = settings.get(name, default)
        return value == "true" if isinstance(default, bool) and isinstance(value, str) else value

    protocol = InterBrokerProtocol.parse(recording.summary["inter.broker.protocol.version"])
    interval = int(config("leader.imbalance.check.interval.seconds", 300))
    return ZooKeeperControllerMachine(
        settings=ZooKeeperControllerSettings(
            broker_id=broker,
            protocol=protocol,
            release=ReleaseRules.of(recording.release_of(broker)),
            unclean_leader_election_enable=config("unclean.leader.election.enable", False),
            auto_leader_rebalance_enable=config("auto.leader.rebalance.enable", True),
            leader_imbalance_check_interval_ms=interval * 1_000,
            leader_imbalance_per_broker_percentage=int(
                config("leader.imbalance.per.broker.percentage", 10)
            ),
        ),
        registration=BrokerRegistration(endpoints=(), timestamp_ms=0),
        new_topic_id=new_id,
    )
