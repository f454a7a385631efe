"""The network between the nodes: every request and every response crosses it.

    caller ──request───▶ Network ──(link src>dst: delay, loss, hold…)────▶ inbox of dst
    caller ◀─response─── Network ◀─(link dst>src: conditions of its own)── response of dst

Requests and responses travel on links of one direction each. A ``cut`` of ``b>a`` alone therefore
loses the response to a request that was handled. Packets of one API on one link keep their order,
unless ``reorder`` holds: real brokers have one TCP connection per purpose. The fate of the n-th
packet of a link is a function of the seed, the link and n (``chance``).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from minicluster.actors.recording.recorder import Exchange, Recorder
from minicluster.actors.runtime import chance
from minicluster.actors.runtime.runtime import ClusterActor, Runtime
from minicluster.errors import UserError
from minicluster.protocol import decode, encode

Kind = Literal["cut", "delay", "loss", "duplicate", "reorder", "hold"]
Distribution = Literal["fixed", "uniform", "exponential"]

OWN_CLIENT = -1  # the cluster's own client; the nodes of Kafka's clients have ids below it
DRAWS_PER_PACKET = 8  # latency, loss, duplicate, reorder … each has a draw of its own
_LATENCY, _LOSS, _DUPLICATE, _DUPLICATE_LATENCY, _REORDER, _EXTRA = range(6)


class Packet:
    """A request or a response in flight."""

    __slots__ = ("body", "epoch", "exchange", "is_response", "link")

    def __init__(self, exchange: Exchange, body: Any, is_response: bool) -> None:
        self.exchange = exchange
        self.body = body
        self.is_response = is_response
        self.epoch = 0
        self.link: Link | None = None

    @property
    def src(self) -> int:
        """The node that sent this packet: of a response, the receiver of the request."""
        return self.exchange.dst if self.is_response else self.exchange.src

    @property
    def dst(self) -> int:
        """The node that this packet goes to."""
        return self.exchange.src if self.is_response else self.exchange.dst

    @property
    def api(self) -> str:
        """The API's name, such as ``AlterPartition``."""
        return self.exchange.api

    @property
    def version(self) -> int:
        """The version of the request and of its response."""
        return self.exchange.version

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "request"
        return f"<{kind} {self.exchange} {self.body!r}>"


class Completion:
    """The end of an exchange for its caller: the response, or the failure."""

    __slots__ = ("exchange", "failure", "response")

    def __init__(self, exchange: Exchange, response: Any, failure: str | None) -> None:
        self.exchange = exchange
        self.response = response
        self.failure = failure  # timeout, disconnected


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Condition:
    """A disturbance of the packets of one link, until it is lifted.

    Units:   probability 0..1; mean_ms and min_ms milliseconds.
    """

    kind: Kind
    src: int
    dst: int
    apis: tuple[str, ...] = ()  # none: all
    probability: float = 1.0
    mean_ms: int = 0
    min_ms: int = 0
    distribution: Distribution = "fixed"
    held: list[Packet] = field(default_factory=list)

    def covers(self, api: str) -> bool:
        return not self.apis or api in self.apis


class Link:
    """One direction between two nodes."""

    __slots__ = ("arrivals", "conditions", "count", "epoch", "key")

    def __init__(self, key: int) -> None:
        self.key = key
        self.count = 0  # packets sent so far
        self.epoch = 0  # packets of an older epoch are lost
        self.arrivals: dict[str, int] = {}  # the latest arrival of each API
        self.conditions: list[Condition] = []


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """A node with a running process, and the actor that takes each API."""

    incarnation: str
    route: Callable[[str], ClusterActor | None]
    exchanges: dict[int, Exchange] = field(default_factory=dict)  # requests to it, still open


class Caller(Protocol):
    """An actor, or the listeners on behalf of a client."""

    def deliver(self, completion: Completion, /) -> None:
        """Take the response to a request, or its failure."""


class Network:
    """All links of a cluster.

    Units:   base_delay_ms: the least and the greatest time that a packet takes.
    """

    def __init__(
        self,
        rt: Runtime,
        recorder: Recorder,
        *,
        base_delay_ms: tuple[int, int] = (1, 2),
        wire: bool = False,
    ) -> None:
        self.rt = rt
        self.recorder = recorder
        self.base_delay_ms = base_delay_ms
        self.wire = wire
        self.endpoints: dict[int, Endpoint] = {}
        self.links: dict[tuple[int, int], Link] = {}
        self.conditions: list[Condition] = []
        self.on_packet: Callable[[Packet], None] | None = None
        self.on_node: Callable[[int, bool], None] | None = None  # a process listens, or is gone
        self.send_outside: Callable[[Packet], bool] | None = None  # False: not to a node outside
        self._lock = threading.RLock()
        self._next_id = 0

    # Processes that start and end.

    def attach(
        self, node: int, incarnation: str, route: Callable[[str], ClusterActor | None]
    ) -> None:
        """Open a node for connections; its process has started."""
        with self._lock:
            self.endpoints[node] = Endpoint(incarnation=incarnation, route=route)

    def listen(self, node: int) -> None:
        """Open a node's port for clients; its process handles requests from now on."""
        with self._lock:
            if self.on_node is not None and node in self.endpoints:
                self.on_node(node, True)

    def detach(self, node: int) -> None:
        """Close a node, whose process has ended; its callers are disconnected."""
        with self._lock:
            endpoint = self.endpoints.pop(node, None)
            if self.on_node is not None:
                self.on_node(node, False)
            for (_, dst), link in self.links.items():
                if dst == node:
                    link.epoch += 1
            if endpoint is not None:
                for exchange in list(endpoint.exchanges.values()):
                    self._later(self._disconnected, exchange)
            for other in self.endpoints.values():
                for exchange in other.exchanges.values():
                    if exchange.src == node:
                        exchange.caller = None  # an open exchange keeps no dead process alive

    # Requests and responses.

    def request(
        self,
        *,
        src: int,
        dst: int,
        body: Any,
        version: int,
        caller: Caller | None,
        context: Any = None,
        correlation_id: int = 0,
        timeout_ms: int | None = None,
        client_id: str = "",
    ) -> Exchange:
        """Send a request; the caller gets one ``Completion``.

        There is none when a link loses a packet of a request without a timeout.
        """
        with self._lock:
            self._next_id = number = self._next_id + 1
            home = self.endpoints.get(src)
            exchange = Exchange(
                number,
                api_name(body),
                version,
                src,
                dst,
                body,
                caller,
                context,
                correlation_id,
                home.incarnation if home is not None else None,
                client_id,
            )
            exchange.sent_ms = self.rt.now_ms
            self.recorder.exchanges.append(exchange)
            target = self.endpoints.get(dst)
            if target is not None:
                target.exchanges[number] = exchange
            packet = Packet(exchange, body, False)
            if timeout_ms is not None:
                exchange.timer = self.rt.schedule(
                    exchange.sent_ms + timeout_ms, self._timed_out, exchange
                )
            fate = self._travel(packet)
            exchange.send_seq = self.recorder.event("request", exchange, (body, version), fate)
            return exchange

    def handling(self, packet: Packet) -> None:
        """Record that the receiver takes the request out of its inbox."""
        exchange = packet.exchange
        sequence = self.recorder.event("handle", exchange)
        if exchange.handle_seq is None:
            exchange.handle_seq = sequence
            exchange.handled_ms = self.rt.now_ms

    def respond(self, packet: Packet, body: Any) -> None:
        """Send the response to a request."""
        exchange = packet.exchange
        with self._lock:
            response = Packet(exchange, body, True)
            fate = self._travel(response)
            sequence = self.recorder.event("reply", exchange, (body, exchange.version), fate)
            if exchange.resp_seq is None:
                exchange.resp_seq = sequence
                exchange.response = body

    def forget(self, packet: Packet) -> None:
        """Close the exchange of a request that has no response (Produce with acks=0)."""
        exchange = packet.exchange
        with self._lock:
            if exchange.open:
                self._close(exchange, None, "unanswered")

    def disconnect(self, packet: Packet) -> None:
        """End the connection of a request, which gets no response."""
        with self._lock:
            self._later(self._disconnected, packet.exchange)

    # Disturbances.

    def add(self, condition: Condition) -> Condition:
        """Let a condition hold for its link; a ``cut`` of all APIs loses the packets in flight."""
        with self._lock:
            self.conditions.append(condition)
            link = self._link(condition.src, condition.dst)
            link.conditions.append(condition)
            if condition.kind == "cut" and not condition.apis:
                link.epoch += 1
            return condition

    def lift(self, conditions: Iterable[Condition]) -> None:
        """End conditions and release the packets that they held."""
        with self._lock:
            for condition in conditions:
                if condition in self.conditions:
                    self.conditions.remove(condition)
                    self._link(condition.src, condition.dst).conditions.remove(condition)
            for condition in conditions:
                self.release(condition)

    def release(self, condition: Condition) -> None:
        """Deliver the packets that a condition has held, in the order in which they were sent."""
        with self._lock:
            held = list(condition.held)
            condition.held.clear()
            for packet in held:
                self._send_on(packet, self.rt.now_ms)

    def heal(self) -> None:
        """Lift every condition."""
        self.lift(list(self.conditions))

    def blocked(self, src: int, dst: int, api: str = "") -> bool:
        """True when a ``cut`` stops packets (of an API) from one node to another."""
        link = self.links.get((src, dst))
        return link is not None and any(
            c.kind == "cut" and (c.covers(api) if api else not c.apis) for c in link.conditions
        )

    # From sender to receiver.

    def _link(self, src: int, dst: int) -> Link:
        link = self.links.get((src, dst))
        if link is None:
            link = Link(chance.key(self.rt.seed, f"link/{src}>{dst}"))
            self.links[(src, dst)] = link
        return link

    def _travel(self, packet: Packet) -> str:
        """Decide the fate of a packet on its link, and return the fate's name."""
        if self.wire:
            packet.body = through_the_wire(packet.body, packet.exchange.version)
        if self.on_packet is not None:
            self.on_packet(packet)
        exchange = packet.exchange
        link = packet.link = (
            self._link(exchange.dst, exchange.src)
            if packet.is_response
            else self._link(exchange.src, exchange.dst)
        )
        packet.epoch = link.epoch
        link.count = count = link.count + 1
        draw = count * DRAWS_PER_PACKET
        delay_ms, spread_ms = self.base_delay_ms
        if exchange.src < OWN_CLIENT:
            delay_ms = 0  # its packets have crossed a real socket
        elif spread_ms > delay_ms:
            delay_ms += chance.draw(link.key, draw + _LATENCY) % (spread_ms - delay_ms + 1)
        now_ms = self.rt.now_ms
        if not link.conditions:
            self._arrive(packet, link, now_ms + delay_ms)
            return ""
        return self._disturbed(packet, link, draw, now_ms, delay_ms)

    def _disturbed(self, packet: Packet, link: Link, draw: int, now_ms: int, delay_ms: int) -> str:
        """The fate of a packet on a link with conditions."""
        api = packet.exchange.api
        fate, reorder, copies = "", False, 1
        for index, condition in enumerate(link.conditions):
            if not condition.covers(api):
                continue
            luck = (draw + _EXTRA) * 64 + index
            match condition.kind:
                case "cut":
                    return "cut"
                case "hold":
                    condition.held.append(packet)
                    return "held"
                case "delay":
                    delay_ms += _delay(condition, chance.fraction(link.key, luck))
                case "loss":
                    if chance.fraction(link.key, luck) < condition.probability:
                        return "lost"
                case "duplicate":
                    if chance.fraction(link.key, luck) < condition.probability:
                        copies, fate = 2, "duplicated"
                case "reorder":
                    if chance.fraction(link.key, luck) < condition.probability:
                        reorder, fate = True, "reordered"
                        delay_ms += chance.draw(link.key, draw + _REORDER) % 20
        if reorder:
            self.rt.post(now_ms + delay_ms, self._deliver, packet)
        else:
            self._arrive(packet, link, now_ms + delay_ms)
        if copies == 2:
            later_ms = chance.draw(link.key, draw + _DUPLICATE_LATENCY) % 20
            self.rt.post(now_ms + delay_ms + later_ms, self._deliver, packet)
        return fate

    def _arrive(self, packet: Packet, link: Link, at_ms: int) -> None:
        """Schedule the arrival, never before that of an earlier packet of the same API."""
        api = packet.exchange.api
        latest_ms = link.arrivals.get(api, 0)
        if at_ms < latest_ms:
            at_ms = latest_ms
        link.arrivals[api] = at_ms
        if at_ms <= self.rt.now_ms and self.rt.mode == "threaded":
            self._deliver(packet)
        else:
            self.rt.post(at_ms, self._deliver, packet)

    def _send_on(self, packet: Packet, now_ms: int) -> None:
        """Deliver a packet that was held; only a ``cut`` still counts, and loses it."""
        link = packet.link
        assert link is not None
        packet.epoch = link.epoch
        if not self.blocked(packet.src, packet.dst, packet.api):
            self._arrive(packet, link, now_ms + self.base_delay_ms[0])

    def _deliver(self, packet: Packet) -> None:
        with self._lock:
            link = packet.link
            assert link is not None
            exchange = packet.exchange
            if packet.epoch != link.epoch or (
                link.conditions
                and any(c.kind == "cut" and c.covers(exchange.api) for c in link.conditions)
            ):
                self.recorder.event("lost", exchange, "on the way")
                return
            if packet.is_response:
                if exchange.open:
                    self._close(exchange, packet.body, None)
                return
            endpoint = self.endpoints.get(exchange.dst)
            if endpoint is None and self.send_outside is not None and self.send_outside(packet):
                return
            actor = endpoint.route(exchange.api) if endpoint is not None else None
            if actor is None:
                self._later(self._disconnected, exchange)
                return
            actor.deliver(packet)

    def _close(self, exchange: Exchange, response: Any, failure: str | None) -> None:
        """End an exchange with a response or a failure."""
        exchange.open = False
        exchange.completed_ms = self.rt.now_ms
        if exchange.timer is not None:
            exchange.timer.cancel()
            exchange.timer = None
        endpoint = self.endpoints.get(exchange.dst)
        if endpoint is not None:
            endpoint.exchanges.pop(exchange.id, None)
        caller, exchange.caller = exchange.caller, None
        self.recorder.event("answer", exchange, failure)
        if caller is not None:
            caller.deliver(Completion(exchange, response, failure))

    def _timed_out(self, exchange: Exchange) -> None:
        with self._lock:
            if exchange.open:
                self._close(exchange, None, "timeout")

    def _disconnected(self, exchange: Exchange) -> None:
        """Fail an exchange as disconnected, unless a ``cut`` stops the packet that resets it."""
        with self._lock:
            if exchange.open and not self.blocked(exchange.dst, exchange.src, exchange.api):
                self._close(exchange, None, "disconnected")

    def _later(self, call: Callable[[Exchange], None], exchange: Exchange) -> None:
        self.rt.post(self.rt.now_ms + max(1, self.base_delay_ms[0]), call, exchange)


_api_names: dict[type[Any], str] = {}


def api_name(body: Any) -> str:
    """The API of a message class: ``AlterPartitionRequest`` is ``AlterPartition``."""
    kind = type(body)
    name = _api_names.get(kind)
    if name is None:
        name = kind.__name__.removesuffix("Request").removesuffix("Response")
        _api_names[kind] = name
    return name


def through_the_wire(body: Any, version: int) -> Any:
    """Encode and decode a message: its receiver has only what the bytes carry."""
    return decode(type(body), encode(body, version), version)


def _delay(condition: Condition, fraction: float) -> int:
    """One draw of a condition's delay in milliseconds."""
    over_ms = max(0, condition.mean_ms - condition.min_ms)
    match condition.distribution:
        case "fixed":
            return max(condition.mean_ms, condition.min_ms)
        case "uniform":
            return condition.min_ms + round(2 * over_ms * fraction)
        case "exponential":
            return condition.min_ms + round(-over_ms * math.log(1.0 - fraction))
    raise UserError(f"delay: {condition.distribution!r} is no distribution")
