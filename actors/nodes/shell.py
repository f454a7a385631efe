"""The shell around a machine: messages in, effects out.

    inbox ──▶ machine.on_…(now_ms, …) ──▶ effects ──▶ Network, timers, recorder, other actors

A shell decides nothing about the protocol. It routes a message to its machine with the time, and
performs the effects that the machine returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol
from uuid import UUID

from msgspec import Struct

from minicluster import effects as fx
from minicluster.actors.exchange import Exchange
from minicluster.actors.links import Packet
from minicluster.actors.network import Completion, Network
from minicluster.actors.nodes.authorization import access_of
from minicluster.actors.nodes.clock import NodeClock
from minicluster.actors.nodes.config import ClusterConfig
from minicluster.actors.nodes.disk import Disk
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.faults import Faults
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.metadata.supported_features import UNSTABLE_APIS, supported_features
from minicluster.rules import Rules
from minicluster.security.authorizer import NeverDecided, StandardAuthorizer
from minicluster.security.protocols import LISTENER
from minicluster.security.screening import CLOSES, Access, Asked, Rejected, Screened
from minicluster.values import Value


class NodeContext(Value, kw_only=True):
    """The context that the actors of one process of a node share. A restart makes a new one."""

    node_id: int
    incarnation: UUID
    network: Network
    recorder: Recorder
    disk: Disk
    clock: NodeClock
    config: ClusterConfig
    rules: Rules
    faults: Faults
    log: Any  # a structlog logger bound to the node
    exited: Callable[[int, str], None]  # the process ends by itself; the reason, if halted
    folds: SharedFolds  # of the cluster
    authorizer: StandardAuthorizer | None = None  # of the node; None: everything is allowed
    listener: str = LISTENER  # between brokers
    continued_epoch: int = -1  # of the registration that a broker continues; -1: it registers

    def features(self) -> dict[str, tuple[int, int]]:
        """The feature levels that the node supports, by its release and its configs."""
        return supported_features(self.rules, unstable=self.config.unstable_feature_versions)

    def features_of_controller_listener(self) -> dict[str, tuple[int, int]]:
        """The features that a controller shows clients, by another config than those it registers.

        Source:  SimpleApiVersionManager, ControllerServer.startup.
        """
        return supported_features(self.rules, unstable=self.config.enables(UNSTABLE_APIS))


class Requester(Protocol):
    """A machine that sends requests."""

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[fx.Effect]: ...

    def on_failure(self, correlation_id: int, now_ms: int) -> list[fx.Effect]: ...


class Wakeup(Struct, eq=False):
    """A timer that a machine has set, and the message of its firing."""

    actor: Shell | None  # None: cancelled
    name: str
    at_ms: int

    def fire(self) -> None:
        """Come to the actor, unless the timer was cancelled before."""
        if self.actor is not None:
            self.actor.deliver(self)


class ClockChanged:
    """The node's clock has jumped or changed its rate."""

    __slots__ = ()


class Shell(ClusterActor):
    """The base of the node's actors. Subclasses fill ``on_packet``, ``on_response``, ``on_wakeup``
    and ``on_message``. The effects of their own machines are in ``interpreters``.
    """

    # Beyond 30 attributes in its dictionary, an instance shares no keys with the others of its
    # class, and CPython looks each of its methods up by name; so those of the bases have slots.
    __slots__ = (
        "_drifting",
        "_incarnation",
        "_inputs",
        "_interpreters",
        "_timers",
        "clock",
        "context",
        "log",
        "network",
        "node_id",
        "recorder",
    )

    def __init__(self, context: NodeContext) -> None:
        super().__init__()
        self.context = context
        self.node_id = context.node_id
        self.clock = context.clock
        self.network = context.network
        self.recorder = context.recorder
        self.log = context.log.bind(actor=self.name)
        self._incarnation = str(context.incarnation)
        self._timers: dict[str, Wakeup] = {}
        # Requests that were sent while the clock drifted, and when they expire by that clock.
        self._drifting: list[tuple[Exchange, int]] = []
        self._interpreters: dict[type, Callable[[Any], None]] = {
            fx.Send: self._send,
            fx.Forward: self._forward,
            fx.Respond: self._respond,
            fx.SetTimer: self._set_timer,
            fx.CancelTimer: self._cancel_timer,
            fx.Trace: self._trace,
            fx.FaultHit: self._fault_hit,
            **self.interpreters(),
        }
        self._inputs: dict[type, Callable[[Any], None]] = {
            Packet: self._packet,
            Completion: self.on_response,
            Wakeup: self._wakeup,
            ClockChanged: self._clock_changed,
        }

    def now(self) -> int:
        """The node's clock in milliseconds."""
        clock = self.clock
        return self.rt.now_ms if clock.is_true else clock.now_ms

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        """The handler of each effect of this shell's own machines."""
        return {}

    def on_packet(self, packet: Packet) -> None:
        """Handle a request; the packet is the token of its response."""
        raise NotImplementedError(f"{self.name} takes no requests, got {packet!r}")

    def authorize(self, asked: Asked) -> Screened | Rejected:
        """Take out of a client's request what it may not ask, by this node's image."""
        return Screened(asked.request)

    def on_response(self, completion: Completion) -> None:
        """Handle the response to a request of this node, or its failure."""
        raise NotImplementedError(f"{self.name} sends no requests")

    def on_wakeup(self, name: str) -> None:
        """Handle a timer that has fired."""
        raise NotImplementedError(f"{self.name} sets no timers")

    def on_message(self, message: Any) -> None:
        """Handle a message of another actor of this node."""
        raise NotImplementedError(f"{self.name} does not understand {message!r}")

    def on_receive(self, message: Any) -> Any:
        handler = self._inputs.get(type(message))
        if handler is not None:
            handler(message)
        else:
            self.on_message(message)

    def complete(self, machine: Requester, completion: Completion) -> list[fx.Effect]:
        """End the request of a machine: with its response, or with any failure."""
        correlation_id = completion.exchange.correlation_id
        if completion.failure is None:
            return machine.on_response(correlation_id, completion.response, self.now())
        return machine.on_failure(correlation_id, self.now())

    def perform(self, effects: Iterable[fx.Effect]) -> None:
        """Perform the effects of a machine, in order."""
        interpreters = self._interpreters
        for effect in effects:
            interpreters[type(effect)](effect)

    def _packet(self, packet: Packet) -> None:
        self.network.handling(packet)
        access = access_of(packet.exchange.sender.requester, self.context.authorizer)
        if access is None or self._may_be_handled(packet, access):
            self.on_packet(packet)
        if access is not None and access.authorizer is not None and self.context.faults.is_any_on:
            self.perform(fx.FaultHit(fault) for fault in access.authorizer.take_hits())

    def _may_be_handled(self, packet: Packet, access: Access) -> bool:
        """Take out of a client's request what it may not ask; False if nothing is left."""
        asked = Asked(access, packet.body, packet.exchange.version, MetadataImage.EMPTY)
        try:
            result = self.authorize(asked)
        except NeverDecided:
            return False
        if isinstance(result, Rejected):
            self._end(packet, result.response)
            return False
        packet.body, packet.complete = result.request, result.complete
        return True

    def _wakeup(self, wakeup: Wakeup) -> None:
        name = wakeup.name
        if self._timers.get(name) is wakeup:  # else it was replaced or cancelled
            del self._timers[name]
            self.on_wakeup(name)

    # Effects that every machine may return.

    def _forward(self, forward: fx.Forward) -> None:
        self._send(forward, forward.client)

    def _send(self, send: fx.Send, context: Any = None) -> None:
        timeout_ms = send.timeout_ms
        expires_ms = None
        if timeout_ms is not None and not self.clock.is_true:
            expires_ms = self.clock.now_ms + timeout_ms
            timeout_ms = self.clock.lasting_ms(timeout_ms)
        exchange = self.network.request(
            src=self.node_id,
            dst=send.to,
            body=send.request,
            version=send.version,
            caller=self,
            context=context,
            correlation_id=send.correlation_id,
            timeout_ms=timeout_ms,
        )
        if expires_ms is not None and self.clock.drifts:
            self._drifting = [drifting for drifting in self._drifting if drifting[0].open]
            self._drifting.append((exchange, expires_ms))

    def _respond(self, respond: fx.Respond) -> None:
        token, response = respond.token, respond.response
        self._end(token, response if token.complete is None else token.complete(response))

    def _end(self, token: Any, response: Any) -> None:
        if response is None:  # a produce with acks=0
            self.network.forget(token)
        elif response is CLOSES:
            self.network.disconnect(token)
        else:
            self.network.respond(token, response)

    def set_timer(self, name: str, at_ms: int) -> None:
        """Wake this actor at a time of its node's clock; a timer of the same name is replaced."""
        before = self._timers.get(name)
        if before is not None:
            before.actor = None
        wakeup = self._timers[name] = Wakeup(self, name, at_ms)
        when_ms = at_ms if self.clock.is_true else self.clock.reached_ms(at_ms)
        self.rt.post(when_ms, Wakeup.fire, wakeup)

    def _clock_changed(self, changed: ClockChanged) -> None:
        for wakeup in [*self._timers.values()]:
            Shell.set_timer(self, wakeup.name, wakeup.at_ms)  # as it is held
        # Else a request that was lost while the clock was slow would keep its sender waiting for
        # long after the clock goes right.
        for exchange, expires_ms in self._drifting:
            self.network.expire(exchange, self.clock.reached_ms(expires_ms))

    def cancel_timers(self) -> None:
        for wakeup in self._timers.values():
            wakeup.actor = None

    def _set_timer(self, timer: fx.SetTimer) -> None:
        self.set_timer(timer.name, timer.at_ms)

    def _cancel_timer(self, timer: fx.CancelTimer) -> None:
        before = self._timers.pop(timer.name, None)
        if before is not None:
            before.actor = None

    def _trace(self, effect: fx.Trace) -> None:
        self.recorder.trace(effect.table, effect.row)

    def _fault_hit(self, hit: fx.FaultHit) -> None:
        self.recorder.fault_hit(hit.fault, self.node_id)
