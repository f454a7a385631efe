"""The connections of a cluster's clients without their I/O: requests in, responses back.

::

    carrier ──bytes──▶ ServedConnection ──Network.request──▶ node's actor
    carrier ◀─bytes─── ServedConnection ◀────response─────── Network

A carrier moves the bytes of one connection: those of a socket (``server.py``), or those of a
program that runs inside the simulation (``memory.py``). All else is the same for both: the order of
requests, back pressure, limits, idle connections, and the end of a connection with its process.

A client is a node of the network; a broker or controller of another process has its own id there.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from minicluster.actors.exchange import Exchange, Sender
from minicluster.actors.listeners.carrier import Carried, Carrier
from minicluster.actors.listeners.client_nodes import ClientNodes
from minicluster.actors.listeners.connection import (
    Authenticate,
    ClientConnection,
    Close,
    Decode,
    Deliver,
    Effect,
    Encode,
    Write,
)
from minicluster.actors.listeners.idle import IdleExpiry
from minicluster.actors.listeners.limits import ConnectionLimits, ConnectionQuotas
from minicluster.actors.listeners.security import ListenerSecurity
from minicluster.actors.listeners.senders import sending_node
from minicluster.actors.network import Completion, Network
from minicluster.errors import MiniclusterError
from minicluster.security.principals import KafkaPrincipal, Requester, java_host
from minicluster.security.sasl import SaslAuthenticator

if TYPE_CHECKING:
    from minicluster.actors.listeners.tls import TlsConnection

Call = Callable[[], None]
Work = Callable[[Decode | Encode, Callable[[Any], None]], None]


class ServedConnection:
    """A client's connection, with its requests that are not responded to.

    Responses are written in the order of the requests, whatever the time that each takes.

    Inputs:  of its carrier ``on_bytes``, ``on_end_of_stream``, ``on_written``, ``touch`` where
             bytes have left, ``drop`` where it has failed; of the network ``left``, ``deliver``.
    """

    __slots__ = (
        "_arrived",
        "_encodes",
        "_ends",
        "_host",
        "_last_left",
        "_listener",
        "_max_request_bytes",
        "carrier",
        "client",
        "exchanges",
        "incarnation",
        "is_open",
        "is_stale",
        "login",
        "machine",
        "node_id",
        "number",
        "outside",
        "principal",
        "security",
        "served",
        "tls",
        "waits_to_send",
    )

    def __init__(
        self,
        served: ServedConnections,
        number: int,
        node_id: int,
        listener: str,
        incarnation: str,
        carrier: Carrier,
        max_request_bytes: int,
    ) -> None:
        self.served = served
        self.number = number
        self.node_id = node_id
        self._listener, self.security = listener, served.security(listener)
        self.incarnation = incarnation
        self.carrier = carrier
        self.tls: TlsConnection | None = None
        self.principal: KafkaPrincipal | None = None
        self._host = java_host(carrier.address)
        self.login = self.security.login(node_id, number)
        self.machine = ClientConnection(
            served.versions[node_id],
            min(max_request_bytes, self.security.login_bytes_max),
            authenticates=self.login is not None,
        )
        self._max_request_bytes = max_request_bytes
        self.exchanges: deque[Exchange] = deque()  # the first of them is responded to first
        self._arrived: dict[int, Completion] = {}  # of these, by the exchange's id
        self._encodes = False  # a large response is encoded elsewhere
        self._ends: Callable[[], None] | None = None  # once no response is on its way
        self._last_left = 0  # the id of an exchange
        self.outside: int | None = None  # the node of another process that has connected
        self.client: int | None = None  # the node of the client, by its latest request
        self.is_open = True
        # Its broker's process has ended, and a fault keeps that from the client.
        self.is_stale = False
        self.waits_to_send = False  # the client does not read what has been written

    # From the carrier.

    def touch(self) -> None:
        """Bytes move."""
        self.served.idle.touch(self)

    def on_bytes(self, data: bytes) -> None:
        """Bytes of the client, any number."""
        self.touch()
        self._perform(self.machine.on_bytes(data))

    def on_end_of_stream(self) -> None:
        """The client sends nothing more."""
        self._perform(self.machine.on_end_of_stream())

    def on_written(self) -> None:
        """The carrier has sent the rest, which it could not send at once."""
        self.waits_to_send = False
        self._perform(self.machine.on_written())

    def drop(self, *, reset: bool = False) -> None:
        """End the connection."""
        if self.is_open:
            self.is_open = False
            self.carrier.end(reset=reset)
            self.served.ended(self)

    def end_after_responses(self, *, reset: bool = False) -> None:
        """End the connection, whose process is gone, behind what its system still delivers."""
        self._ends = partial(self.drop, reset=reset)
        self._take_arrived()

    # From the network.

    def left(self, exchange: Exchange, /) -> None:
        """A response has left its node, and has not arrived."""
        self.served.call(partial(self._left, exchange))

    def deliver(self, completion: Completion, /) -> None:
        """Take the response to a request, or its failure."""
        self.served.call(partial(self._responded, completion))

    @property
    def is_cut(self) -> bool:
        """True while nothing of the broker reaches the client."""
        network = self.served.network
        return self.client is not None and network.blocked(self.node_id, self.client)

    def _left(self, exchange: Exchange) -> None:
        in_progress = self.exchanges[-1] if self.exchanges else None
        if self.is_open and exchange is in_progress and exchange.id != self._last_left:
            self._last_left = exchange.id
            self._perform(self.machine.on_left())

    def _responded(self, completion: Completion) -> None:
        exchange = completion.exchange
        if not self.is_open or exchange not in self.exchanges:
            return
        if completion.failure == "no_response":
            self.exchanges.remove(exchange)
            self._perform(self.machine.on_no_response())
        elif completion.failure == "reset":
            self.drop(reset=True)
        else:
            self._arrived[exchange.id] = completion
            self._take_arrived()

    def _take_arrived(self) -> None:
        """Write the responses that have arrived, up to the first one that has not."""
        while self.is_open and self.exchanges and not self._encodes:
            completion = self._arrived.pop(self.exchanges[0].id, None)
            if completion is None:
                break
            self.exchanges.popleft()
            if completion.failure is not None:
                self.drop()
                return
            try:
                response = self.served.advertise(completion.response, self._listener)
                effects = self.machine.on_response(response)
            except MiniclusterError as error:
                effects = [Close(str(error))]
            self._perform(effects)
            self._end()
        self._end()

    def _end(self) -> None:
        if self._ends is not None and not (self.machine.on_their_way or self._encodes):
            self._ends()

    def _perform(self, effects: Sequence[Effect]) -> None:
        """Perform effects, and those that follow them, until bytes are missing or do not leave."""
        while effects and self.is_open:
            [effect] = effects
            effects = ()
            match effect:
                case Write(data):
                    self.waits_to_send = not self.carrier.write(data)
                    if not self.waits_to_send:
                        effects = self.machine.on_written()
                case Deliver():
                    self._deliver(effect)
                case Decode() | Encode():
                    self._work(effect)
                case Authenticate(frame):
                    assert self.login is not None
                    effects = self._authenticate(self.login, frame)
                case Close(reason):
                    if reason is not None:
                        self.log_close(reason)
                    self.drop()
        if self.is_open:
            self.carrier.reads(self.machine.reads and not self.waits_to_send)

    def _authenticate(self, login: SaslAuthenticator, frame: bytes) -> Sequence[Effect]:
        """Take a frame of a login; or a request, while its session lasts."""
        rt = self.served.network.rt
        now_ms, key = rt.epoch_ms + rt.now_ms, int.from_bytes(frame[:2], "big", signed=True)
        if login.is_complete and not login.begins_again(key, now_ms):
            has_expired = login.has_expired(now_ms)
            for fault in login.take_hits():
                rt.inject(partial(self.security.on_hit, fault, self.node_id))
            if has_expired:
                return [Close("the session has expired")]
            return self.machine.on_authenticated(frame)
        outcome = login.on_frame(frame, now_ms)
        if login.is_complete:
            self.machine.max_request_bytes = self._max_request_bytes
        if not outcome.closes:
            return self.machine.on_login(outcome.response or b"")
        self.log_close(outcome.reason or "the login has failed")
        at_ms = rt.now_ms + self.security.failed_login_delay_ms
        rt.inject(partial(rt.post, at_ms, self._reject, outcome.response))
        return []

    def _reject(self, response: bytes | None) -> None:
        self.served.call(partial(self._end_login, response))

    def _end_login(self, response: bytes | None) -> None:
        if self.is_open and response is not None:
            for effect in self.machine.on_login(response):
                assert isinstance(effect, Write)
                self.carrier.write(effect.data)
        self.drop()

    @property
    def requester(self) -> Requester | None:
        """Who sends what comes on this connection; None where its certificate names nobody."""
        token, ends_ms = False, None
        if self.login is not None:
            principal, token = self.login.principal, self.login.is_token_authenticated
            if self.login.session_expires_at_ms is not None:
                ends_ms = self.login.session_expires_at_ms - self.served.network.rt.epoch_ms
        elif (principal := self.principal) is None:
            peer = None if self.tls is None else self.tls.peer
            principal = self.security.principals.principal(peer)
        if principal is None:
            return None
        return Requester(principal, self._host, token, self.security.protocol, ends_ms)

    def _work(self, effect: Decode | Encode) -> None:
        """Have a large message read or written, then continue."""
        take = self.machine.on_decoded if isinstance(effect, Decode) else self.machine.on_encoded
        self._encodes |= isinstance(effect, Encode)

        def continue_(result: Any) -> None:
            self._encodes &= not isinstance(effect, Encode)
            if self.is_open:
                self._perform(take(result))
                self._take_arrived()

        self.served.work(effect, continue_)

    def log_close(self, reason: str) -> None:
        """Log why the connection ends, in one line."""
        log, address = self.served.log, self.carrier.address
        log.warning("connection.closed", node=self.node_id, address=address, reason=reason)

    def _deliver(self, deliver: Deliver) -> None:
        self.served.requests += 1
        src = self._source(deliver)
        self.served.network.rt.inject(partial(self._send, deliver, src))

    def _send(self, deliver: Deliver, src: int) -> None:
        network = self.served.network
        endpoint = network.running.get(self.node_id)
        if endpoint is None or endpoint.incarnation != self.incarnation:
            return  # the connection ends with its process
        exchange = network.request(
            src=src,
            dst=self.node_id,
            body=deliver.request,
            version=deliver.version,
            caller=self,
            correlation_id=deliver.correlation_id,
            sender=Sender(
                client_id=deliver.client_id,
                connection=self.number,
                crosses_socket=self.carrier.client is None,
                program=self.carrier.client,
                requester=self.requester,
            ),
        )
        self.exchanges.append(exchange)

    def _source(self, deliver: Deliver) -> int:
        """The node of a request's sender: a node outside, or a client."""
        sender = sending_node(deliver.request, deliver.version, deliver.client_id)
        if sender is not None and sender not in self.served.versions:
            self.outside = sender
        if self.outside is not None:
            return self.outside
        name = self.carrier.client or deliver.client_id
        self.client = self.served.clients.sender(name, self.client)
        return self.client


class ServedConnections:
    """All connections of a cluster's clients, and the limits that its brokers set to them."""

    def __init__(
        self,
        network: Network,
        clients: ClientNodes,
        versions: Mapping[int, Mapping[int, range]],
        *,
        limits: Callable[[int], ConnectionLimits],
        log: Any,
        call: Callable[[Call], None],
        work: Work,
        security: Callable[[str], ListenerSecurity],
        advertise: Callable[[Any, str], Any],
        on_slot: Callable[[int], None] = lambda node_id: None,
    ) -> None:
        """Serve the nodes that have versions.

        Shapes:  versions: of each node, the versions of each API; limits: of a node, as they are
                 now; log: a structlog logger bound to the listeners; call: makes a call of the
                 runtime where the carriers are; work: makes the result of a large message, and
                 calls back there; security: of each listener, by name; advertise: a response with
                 the addresses that clients of a listener reach;
                 on_slot: a node has a connection less.
        """
        self.network = network
        self.clients = clients
        self.versions = versions
        self.limits = limits
        self.log = log
        self.security = security
        self.call = call
        self.work = work
        self.advertise = advertise
        self.requests = 0  # of all connections so far
        self.connections: dict[int, ServedConnection] = {}  # by number, the oldest first
        self.idle = IdleExpiry[ServedConnection](network.rt, lambda: call(self._drop_idle))
        self._numbers = itertools.count(1)
        self._quotas = ConnectionQuotas()
        self._on_slot = on_slot

    def has_slot(self, node_id: int) -> bool:
        """True if a node takes one more connection now; else the next client waits, logged."""
        limits = self.limits(node_id)
        if self._quotas.has_slot(node_id, limits):
            return True
        self.log_wait(node_id, f"max.connections: {limits.max_connections} are open")
        return False

    def log_wait(self, node_id: int, reason: str) -> None:
        """Log that clients which connect wait."""
        self.log.warning("connection.waits", node=node_id, reason=reason)

    def accept(
        self,
        node_id: int,
        listener: str,
        incarnation: str,
        carrier: Carrier,
        principal: KafkaPrincipal | None = None,
    ) -> Carried | None:
        """Serve a connection; None where its address has all that it may have.

        Shapes:  principal: whose it is, unless it logs in; None: by its certificate, if any. -> the
                 one that takes the carrier's bytes: TLS, or the connection itself.
        """
        limits, address = self.limits(node_id), carrier.address
        if not self._quotas.add(node_id, address, limits):
            reason = f"max.connections.per.ip: {address} has {limits.of_address(address)}"
            self.log.warning("connection.refused", node=node_id, reason=reason)
            return None
        number = next(self._numbers)
        connection = ServedConnection(
            self, number, node_id, listener, incarnation, carrier, limits.max_request_bytes
        )
        connection.principal = principal
        self.connections[number] = connection
        self.idle.touch(connection, limits.max_idle_ms)
        tls = connection.security.tls
        if tls is None:
            return connection
        from minicluster.actors.listeners.tls import TlsConnection  # with OpenSSL

        connection.tls = TlsConnection(tls.context, carrier, connection, connection.log_close)
        connection.carrier = connection.tls
        return connection.tls

    def ended(self, connection: ServedConnection) -> None:
        """A connection has ended."""
        if connection.client is not None:
            self.clients.disconnected(connection.client)
        del self.connections[connection.number]
        self.idle.forget(connection)
        self._quotas.remove(connection.node_id, connection.carrier.address)
        self._on_slot(connection.node_id)

    def node_ended(self, node_id: int, *, reset: bool = False) -> None:
        """End the connections of a node whose process has ended, as far as clients learn of it."""
        for connection in [c for c in self.connections.values() if c.node_id == node_id]:
            if connection.is_cut:
                connection.is_stale = True
            elif reset:
                connection.drop(reset=True)
            else:
                connection.end_after_responses()

    def drop_stale(self) -> None:
        """End the connections that a fault has kept open without their broker."""
        for connection in [c for c in self.connections.values() if c.is_stale]:
            if not connection.is_cut:
                connection.end_after_responses(reset=True)

    def close(self) -> None:
        """End every connection."""
        for connection in list(self.connections.values()):
            connection.drop()

    def _drop_idle(self) -> None:
        for connection in self.idle.expired():
            node, address = connection.node_id, connection.carrier.address
            self.log.info("connection.idle", node=node, address=address)
            connection.drop()
