"""The network between the nodes: every request and every response crosses it.

    caller ──request───▶ Network ──(link src>dst: delay, loss, hold…)────▶ inbox of dst
    caller ◀─response─── Network ◀─(link dst>src: conditions of its own)── response of dst

Requests and responses travel on links of one direction each. A ``cut`` of ``b>a`` alone therefore
loses the response to a request that was handled. Packets of one API on one link keep their order,
unless ``reorder`` holds: real brokers have one TCP connection per purpose. The fate of the n-th
packet of a link is a function of the seed, the link and n (``chance``).

A link of one of Kafka's clients is a connection of TCP: what a ``cut`` stops arrives after it, and
a lost packet ends the connection.

A request belongs to the process that ran when it was sent. When that process has ended, so has the
connection, and the caller is disconnected: at once where the links carry what tells it (a FIN, or
the RST by which a host answers what is sent to a process that is gone), else as soon as they do. A
paused process has not ended; requests to it wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol
from uuid import UUID

from msgspec import Struct, field

from minicluster.actors.answers.answer import Answer, Passed
from minicluster.actors.answers.answers import Answers
from minicluster.actors.answers.places import Place
from minicluster.actors.exchange import NODE, End, Exchange, Sender, Substitute, is_client
from minicluster.actors.links import (
    DRAWS_PER_PACKET,
    DUPLICATE_LATENCY,
    EXTRA,
    RECORDED_MAX,
    REORDER,
    Condition,
    Link,
    Links,
    Packet,
)
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime import chance
from minicluster.actors.runtime.runtime import ClusterActor, Runtime
from minicluster.actors.runtime.threaded import one_at_a_time
from minicluster.protocol import decode, encode


class Completion(Struct, eq=False):
    """The end of an exchange for its caller: the response, or the failure."""

    exchange: Exchange
    response: Any
    failure: str | None  # timeout, disconnected, reset, no_response
    is_misled: bool = False  # by a response that no node gave


class RunningNode(Struct, kw_only=True):
    """A node with a running process, and the actor that takes each request.

    Shapes:  topic_ids: of the topics by name, in the image of its replicas; None: no broker.
             fetched: the partitions of a fetch session, by its id.
    """

    incarnation: str
    route: Callable[[Packet], ClusterActor | None]
    topic_ids: Callable[[], Mapping[str, UUID]] | None = None
    fetched: Callable[[int], Iterable[Place]] | None = None
    exchanges: dict[int, Exchange] = field(default_factory=dict)  # requests to it, still open
    listens: bool = False  # clients can connect


class Caller(Protocol):
    """An actor, or the connection of a client, which takes ``left`` as well."""

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
        self.running: dict[int, RunningNode] = {}
        self.links = Links(rt.seed)
        self.conditions: list[Condition] = []
        self.answers = Answers()
        self.on_packet: Callable[[Packet], None] | None = None
        # A process listens, or is gone with or without a reset of its connections.
        self.on_node: Callable[[int, bool, bool], None] | None = None
        self.on_lift: Callable[[], None] | None = None
        self.send_outside: Callable[[Packet], bool] | None = None  # False: not to a node outside
        self.delayed_until_ms = 0  # when the last packet arrives that a ``delay`` holds up
        self._next_id = 0
        self._ended: set[int] = set()  # nodes whose process has ended, until the next one starts
        # Requests to processes that have ended, which their callers do not know behind a cut, by
        # id, and what tells them when the links carry again.
        self._unreset: dict[int, tuple[Callable[[Exchange], None], Exchange]] = {}

    # Processes that start and end.

    def attach(
        self,
        node: int,
        incarnation: str,
        route: Callable[[Packet], ClusterActor | None],
        topic_ids: Callable[[], Mapping[str, UUID]] | None = None,
        fetched: Callable[[int], Iterable[Place]] | None = None,
    ) -> None:
        """Open a node for connections; its process has started."""
        self._ended.discard(node)
        self.running[node] = RunningNode(
            incarnation=incarnation, route=route, topic_ids=topic_ids, fetched=fetched
        )

    def listen(self, node: int) -> None:
        """Open a node's port for clients; its process handles requests from now on."""
        if node in self.running:
            self.running[node].listens = True
            if self.on_node is not None:
                self.on_node(node, True, False)

    def detach(self, node: int, *, reset: bool = False) -> None:
        """Close a node, whose process has ended; its callers are disconnected.

        Shapes:  reset: the connections of clients end with RST, whatever was read.
        """
        running = self.running.pop(node, None)
        self._ended.add(node)
        if self.on_node is not None:
            self.on_node(node, False, reset)
        for link in self.links.to(node):
            link.epoch += 1
        if running is not None:
            for exchange in list(running.exchanges.values()):
                self._later(self._disconnected, exchange)
        for other in self.running.values():
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
        sender: Sender = NODE,
    ) -> Exchange:
        """Send a request; the caller gets one ``Completion``.

        There is none when a link loses a packet of a request without a timeout.
        """
        self._next_id = number = self._next_id + 1
        home = self.running.get(src)
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
            sender,
            self.rt.now_ms,
            is_client(src),
        )
        row = self.recorder.request(exchange, None if home is None else home.incarnation)
        target = self.running.get(dst)
        if target is not None:
            target.exchanges[number] = exchange
        if timeout_ms is not None:
            at_ms = exchange.sent_ms + timeout_ms
            exchange.timer = self.rt.schedule(at_ms, self._timed_out, exchange)
        fate = self._travel(Packet(exchange, body, False))
        self.recorder.sent(row, fate)
        return exchange

    def expire(self, exchange: Exchange, at_ms: int) -> None:
        """Let a request time out at a time of the cluster, unless it ends before."""
        self.rt.post(max(at_ms, self.rt.now_ms), self._timed_out, exchange)

    def open_requests(self, apis: Collection[str]) -> list[Exchange]:
        """The requests of these APIs whose senders wait, those that a link has lost included."""
        return [
            exchange
            for running in self.running.values()
            for exchange in running.exchanges.values()
            if exchange.open and exchange.api in apis
        ]

    def handling(self, packet: Packet) -> None:
        """Record that the receiver takes the request out of its inbox."""
        packet.exchange.is_handled = True
        self.recorder.handled(packet.exchange)

    def respond(self, packet: Packet, body: Any) -> None:
        """Send the response to a request."""
        exchange = packet.exchange
        home = self.running.get(exchange.dst)
        answer = None
        if exchange.change is not None or self.answers.present:
            answer = self.answers.on_response(exchange, body, home)
        fate = "answered"
        if answer is None:
            fate = self._travel(Packet(exchange, body, True))
        elif answer.of_node:
            body = answer.response
        self.recorder.response(exchange, body, fate, None if home is None else home.topic_ids)
        exchange.is_responded = True
        if answer is not None:
            self._substitute(exchange, answer)

    def forget(self, packet: Packet) -> None:
        """Close the exchange of a request that has no response (Produce with acks=0)."""
        exchange = packet.exchange
        if self.answers.present:
            home = self.running.get(exchange.dst)
            answer = self.answers.on_response(exchange, None, home)
            if answer is not None and answer.end is not End.DROP:  # there is none to lose
                self._substitute(exchange, answer)
                return
        if exchange.open:
            self._close(exchange, None, "no_response")

    def disconnect(self, packet: Packet) -> None:
        """End the connection of a request, which gets no response."""
        self._later(self._disconnected, packet.exchange)

    # Answers on demand.

    def answer(self, answer: Answer) -> None:
        """Let an answer act from now on."""
        self.answers.add(answer)

    def take_back(self, answer: Answer) -> bool:
        """End an answer; False for one that is over."""
        return self.answers.remove(answer)

    def _is_answered(self, packet: Packet, node: RunningNode) -> bool:
        """Let an answer act on a request that has arrived; True where the node does not get it."""
        answer = self.answers.on_request(packet.body, packet.exchange, node)
        if isinstance(answer, Passed):
            packet.exchange.change = answer.change
            if answer.request is not packet.body:
                packet.body = answer.request
                packet.exchange.request = answer.request
                self.recorder.changed(packet.exchange)
        elif answer is not None:
            self._substitute(packet.exchange, answer)
        return isinstance(answer, Substitute)

    def _substitute(self, exchange: Exchange, substitute: Substitute) -> None:
        """Let a client have what an answer gives it in place of what its node says."""
        exchange.is_answered = True
        self.recorder.answer(exchange, substitute)
        if substitute.end is End.CLOSE:
            self._later(self._disconnected, exchange)
        elif substitute.end is End.RESET:
            self._later(self._reset, exchange)
        elif substitute.end is None:
            response = Packet(exchange, substitute.response, True)
            response.substitute = substitute
            if substitute.later_ms:
                self.rt.post(self.rt.now_ms + substitute.later_ms, self._travel_late, response)
            else:
                self._travel(response)

    def _travel_late(self, packet: Packet) -> None:
        """Travel by a timer, which has no lock: on threads this method takes it."""
        self._travel(packet)

    # Disturbances.

    def add(self, condition: Condition) -> Condition:
        """Let a condition hold for its link; a ``cut`` of all APIs loses the packets in flight."""
        self.conditions.append(condition)
        link = self.links.between(condition.src, condition.dst)
        link.conditions.append(condition)
        if condition.kind == "cut" and not condition.apis:
            link.epoch += 1
        return condition

    def lift(self, conditions: Iterable[Condition]) -> None:
        """End conditions and release the packets that they held."""
        for condition in conditions:
            if condition in self.conditions:
                self.conditions.remove(condition)
                self.links.between(condition.src, condition.dst).conditions.remove(condition)
        for condition in conditions:
            if condition.kind != "record":
                self.release(condition)
        for call, exchange in self._unreset.values():
            self._later(call, exchange)
        if self.on_lift is not None:
            self.on_lift()

    def release(self, condition: Condition) -> None:
        """Deliver what a condition has held or recorded, in the order in which it was sent."""
        packets = list(condition.held)
        condition.held.clear()
        for packet in packets:
            self._send_on(packet, self.rt.now_ms)

    def heal(self) -> None:
        """Lift every condition."""
        self.lift(list(self.conditions))

    def blocked(self, src: int, dst: int, api: str = "") -> bool:
        """True when a ``cut`` stops packets (of an API) from one node to another."""
        link = self.links.get(src, dst)
        if link is None:
            return False
        if api:
            return _is_cut(link, api)
        return any(each.kind == "cut" and not each.apis for each in link.conditions)

    # From sender to receiver.

    def _travel(self, packet: Packet) -> str:
        """Decide the fate of a packet on its link, and return the fate's name."""
        if self.wire:
            packet.body = through_the_wire(packet.body, packet.exchange.version)
        if self.on_packet is not None:
            self.on_packet(packet)
        exchange = packet.exchange
        if packet.is_response:
            src, dst = exchange.dst, exchange.src
        else:
            src, dst = exchange.src, exchange.dst
        if exchange.sender.connection is None:
            link = self.links.between(src, dst)
        else:
            link = self.links.of_peer(src, dst)
        packet.link = link
        packet.epoch = link.epoch
        link.count += 1
        delay_ms, spread_ms = self.base_delay_ms
        if exchange.sender.crosses_socket:
            delay_ms = 0
        elif spread_ms > delay_ms:
            delay_ms += next(link.latencies) % (spread_ms - delay_ms + 1)
        now_ms = self.rt.now_ms
        if link.conditions:
            return self._disturbed(packet, link, now_ms, delay_ms)
        self._arrive(packet, link, now_ms + delay_ms)
        return ""

    def _disturbed(self, packet: Packet, link: Link, now_ms: int, delay_ms: int) -> str:
        """The fate of a packet on a link with conditions."""
        api, draw = packet.exchange.api, link.count * DRAWS_PER_PACKET
        fate, is_reordered, is_duplicated = "", False, False
        for index, condition in enumerate(link.conditions):
            if not condition.covers(api):
                continue
            luck = (draw + EXTRA) * 64 + index
            match condition.kind:
                case "cut":
                    if packet.exchange.over_tcp:
                        condition.held.append(packet)  # TCP retransmits until it is acknowledged
                        self._has_left(packet)
                    else:
                        self._lost(packet)
                    return "cut"
                case "hold":
                    condition.held.append(packet)
                    self._has_left(packet)
                    return "held"
                case "record":
                    if not packet.is_response and len(condition.held) < RECORDED_MAX:
                        condition.held.append(packet.copy())
                case "delay":
                    delay_ms += condition.delay_ms(chance.fraction(link.key, luck))
                    self.delayed_until_ms = max(self.delayed_until_ms, now_ms + delay_ms)
                case "loss":
                    if chance.fraction(link.key, luck) < condition.probability:
                        if packet.exchange.over_tcp:
                            self.rt.post(now_ms, self._reset, packet.exchange)
                        else:
                            self._lost(packet)
                        return "lost"
                case "duplicate":
                    if chance.fraction(link.key, luck) < condition.probability:
                        is_duplicated, fate = True, "duplicated"
                case "reorder":
                    if chance.fraction(link.key, luck) < condition.probability:
                        is_reordered, fate = True, "reordered"
                        delay_ms += chance.draw(link.key, draw + REORDER) % 20
        if is_reordered:
            self.rt.post(now_ms + delay_ms, self._deliver, packet)
        else:
            self._arrive(packet, link, now_ms + delay_ms)
        if is_duplicated:
            later_ms = chance.draw(link.key, draw + DUPLICATE_LATENCY) % 20
            self.rt.post(now_ms + delay_ms + later_ms, self._deliver, packet)
        return fate

    def _arrive(self, packet: Packet, link: Link, at_ms: int) -> None:
        """Schedule the arrival, never before that of an earlier packet of the same API."""
        api = packet.exchange.api
        latest_ms = link.arrivals.get(api, 0)
        if at_ms < latest_ms:
            at_ms = latest_ms
        link.arrivals[api] = at_ms
        self._deliver_at(at_ms, packet)
        if at_ms > self.rt.now_ms:
            self._has_left(packet)

    def _has_left(self, packet: Packet) -> None:
        """Tell the connection of a client that its node is done with a request, before it is."""
        exchange = packet.exchange
        caller = exchange.caller
        if packet.is_response and caller is not None and exchange.sender.connection is not None:
            caller.left(exchange)

    def _deliver_at(self, at_ms: int, packet: Packet) -> None:
        self.rt.post(at_ms, self._deliver, packet)

    def _send_on(self, packet: Packet, now_ms: int) -> None:
        """Deliver a packet that was held; only a ``cut`` still counts, and loses it."""
        link = packet.link
        assert link is not None
        packet.epoch = link.epoch
        if packet.exchange.over_tcp:
            if not self._parked(packet, link):
                self._arrive(packet, link, now_ms)
        elif not self.blocked(packet.src, packet.dst, packet.api):
            self._arrive(packet, link, now_ms + self.base_delay_ms[0])

    def _parked(self, packet: Packet, link: Link) -> bool:
        """Keep a packet of a client's connection with the ``cut`` that stops it, if one does."""
        for condition in link.conditions:
            if condition.kind == "cut" and condition.covers(packet.api):
                condition.held.append(packet)
                return True
        return False

    def _deliver(self, packet: Packet) -> None:
        link = packet.link
        assert link is not None
        exchange = packet.exchange
        if exchange.over_tcp:
            if not exchange.open or self._parked(packet, link):
                return
        elif packet.epoch != link.epoch or (link.conditions and _is_cut(link, exchange.api)):
            self.recorder.lost(exchange)
            self._lost(packet)
            return
        if packet.is_response:
            if exchange.open:
                self._close(exchange, packet.body, None, packet.substitute)
            return
        running = self.running.get(exchange.dst)
        if running is not None and exchange.open and exchange.id not in running.exchanges:
            if exchange.over_tcp:  # of a connection to the process before
                self._later(self._disconnected, exchange)
                return
            running.exchanges[exchange.id] = exchange  # sent before this process has started
        if self.answers.present and running is not None and self._is_answered(packet, running):
            return
        if running is None and self.send_outside is not None and self.send_outside(packet):
            return
        actor = running.route(packet) if running is not None else None
        if actor is None:
            self._later(self._disconnected, exchange)
            return
        actor.deliver(packet)

    def _close(
        self,
        exchange: Exchange,
        response: Any,
        failure: str | None,
        substitute: Substitute | None = None,
    ) -> None:
        """End an exchange with a response, its node's own or a substitute, or with a failure."""
        running = self.running.get(exchange.dst)
        if running is not None:
            running.exchanges.pop(exchange.id, None)
        self._unreset.pop(exchange.id, None)
        caller, exchange.caller = exchange.caller, None
        self.recorder.closed(exchange, failure, is_own=substitute is None or substitute.of_node)
        exchange.open = False
        if exchange.timer is not None:
            exchange.timer.cancel()  # else it would keep the exchange for as long as it waits
            exchange.timer = None
        if caller is not None:
            is_misled = substitute is not None and substitute.misleads
            caller.deliver(Completion(exchange, response, failure, is_misled))

    def _timed_out(self, exchange: Exchange) -> None:
        if exchange.open:  # most are closed
            self._close(exchange, None, "timeout")

    def _lost(self, packet: Packet) -> None:
        """A node's packet is lost. That to a process that has ended is sent until it is reset."""
        exchange = packet.exchange
        if not packet.is_response and exchange.dst in self._ended:
            self._later(self._refused, exchange)

    def _refused(self, exchange: Exchange) -> None:
        """Disconnect the sender of a request to no process, once no ``cut`` stops the request."""
        if not exchange.open:
            return
        if self.blocked(exchange.src, exchange.dst, exchange.api):
            self._unreset[exchange.id] = self._refused, exchange
        else:
            self._disconnected(exchange)

    def _disconnected(self, exchange: Exchange) -> None:
        """Fail an exchange as disconnected, once no ``cut`` stops the packet that tells it."""
        if not exchange.open:
            return
        if exchange.over_tcp and exchange.is_responded and not exchange.is_answered:
            return  # its response is on its way, and comes before the end of the connection
        if self.blocked(exchange.dst, exchange.src, exchange.api):
            self._unreset[exchange.id] = self._disconnected, exchange
        else:
            self._close(exchange, None, "disconnected")

    def _reset(self, exchange: Exchange) -> None:
        """End an exchange of a client whose connection lost a packet for good."""
        if exchange.open:
            self._close(exchange, None, "reset")

    def _later(self, call: Callable[[Exchange], None], exchange: Exchange) -> None:
        self.rt.post(self.rt.now_ms + max(1, self.base_delay_ms[0]), call, exchange)


class ThreadedNetwork(Network):
    """The network of actors with threads of their own: it takes one call at a time."""

    def __init__(
        self,
        rt: Runtime,
        recorder: Recorder,
        *,
        base_delay_ms: tuple[int, int],
        wire: bool,
    ) -> None:
        super().__init__(rt, recorder, base_delay_ms=base_delay_ms, wire=wire)
        self.lock = threading.RLock()

    attach = one_at_a_time(Network.attach)
    listen = one_at_a_time(Network.listen)
    detach = one_at_a_time(Network.detach)
    request = one_at_a_time(Network.request)
    expire = one_at_a_time(Network.expire)
    respond = one_at_a_time(Network.respond)
    forget = one_at_a_time(Network.forget)
    disconnect = one_at_a_time(Network.disconnect)
    answer = one_at_a_time(Network.answer)
    take_back = one_at_a_time(Network.take_back)
    _travel_late = one_at_a_time(Network._travel_late)
    add = one_at_a_time(Network.add)
    lift = one_at_a_time(Network.lift)
    release = one_at_a_time(Network.release)
    _deliver = one_at_a_time(Network._deliver)
    _timed_out = one_at_a_time(Network._timed_out)
    _refused = one_at_a_time(Network._refused)
    _disconnected = one_at_a_time(Network._disconnected)
    _reset = one_at_a_time(Network._reset)

    def _deliver_at(self, at_ms: int, packet: Packet) -> None:
        """Deliver what is due at once without a turn of the thread that fires timers."""
        if at_ms <= self.rt.now_ms:
            self._deliver(packet)
        else:
            self.rt.post(at_ms, self._deliver, packet)


_api_names: dict[type[Any], str] = {}


def _is_cut(link: Link, api: str) -> bool:
    return any(condition.kind == "cut" and condition.covers(api) for condition in link.conditions)


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
