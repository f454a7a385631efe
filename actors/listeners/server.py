"""The listeners of a cluster: one thread of I/O, one port for each node.

    client ──bytes──▶ Listeners ──Network.request──▶ node's actor
    client ◀─bytes─── Listeners ◀────response─────── Network

A client is a node of the network; a broker or controller of another process has its own id there.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import selectors
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from minicluster.actors.listeners.client_nodes import ClientNodes
from minicluster.actors.listeners.connection import (
    RECEIVE_BYTES,
    ClientConnection,
    Close,
    Decode,
    Deliver,
    Effect,
    Encode,
    Write,
)
from minicluster.actors.listeners.endpoints import Endpoints
from minicluster.actors.listeners.idle import IdleExpiry
from minicluster.actors.listeners.large_messages import LargeMessages
from minicluster.actors.listeners.limits import ConnectionLimits, ConnectionQuotas
from minicluster.actors.listeners.outside import OutgoingConnection, OutsideNodes
from minicluster.actors.listeners.senders import sending_node
from minicluster.actors.network import Completion, Network
from minicluster.actors.runtime.threaded import STOP_TIMEOUT_S
from minicluster.errors import MiniclusterError

BACKLOG = 1024
ACCEPT_RETRY_MS = 100
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NO_LINGER = struct.pack("ii", 1, 0)  # a close then sends RST


class Connection:
    """A client's socket, with its request in progress and its unsent bytes."""

    __slots__ = (
        "address",
        "client",
        "exchange",
        "incarnation",
        "is_stale",
        "machine",
        "node_id",
        "number",
        "outside",
        "socket",
        "unsent",
        "watched",
    )

    def __init__(
        self,
        number: int,
        listener: Listener,
        address: str,
        accepted: socket.socket,
        machine: ClientConnection,
    ) -> None:
        self.number = number
        self.address = address
        self.node_id = listener.node_id
        self.incarnation = listener.incarnation
        self.socket: socket.socket | None = accepted
        self.machine = machine
        self.exchange: Any = None
        self.outside: int | None = None  # the node of another process that has connected
        self.client: int | None = None  # the node of the client, by its latest request
        # Its broker's process has ended, and a fault keeps that from the client.
        self.is_stale = False
        self.unsent = bytearray()
        self.watched = selectors.EVENT_READ


@dataclass(frozen=True, slots=True)
class Listener:
    """The port of a node's process."""

    node_id: int
    incarnation: str
    socket: socket.socket


class Listeners:
    """The server side of all connections of a cluster's clients."""

    def __init__(
        self,
        network: Network,
        clients: ClientNodes,
        endpoints: Endpoints,
        served: Mapping[int, Mapping[int, range]],  # of each node: the versions of each API
        *,
        limits: Callable[[int], ConnectionLimits],  # of a node, as they are now
        log: Any,  # a structlog logger bound to the listeners
        address_of: Callable[[int], tuple[str, int] | None],  # of a node outside
    ) -> None:
        self.network = network
        self.endpoints = endpoints
        self.served = served
        self.limits = limits
        self.log = log
        self.clients = clients
        self._numbers = itertools.count(1)
        self.requests = 0  # of all connections so far
        self._connections: set[Connection] = set()
        self._quotas = ConnectionQuotas()
        self._full: set[int] = set()  # brokers whose port accepts nobody until one has left
        self._idle = IdleExpiry[Connection](network.rt, lambda: self._call(self._drop_idle))
        self._large = LargeMessages(network.rt.interrupted)
        self._listening: dict[int, Listener] = {}
        self._calls: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="minicluster-io", daemon=True)
        self.outside = OutsideNodes(network, self._selector, self._call, address_of)
        network.on_node = self.node_changed
        network.on_lift = self.links_changed
        network.send_outside = self.outside.send
        self._thread.start()

    # From other threads.

    def node_changed(self, node_id: int, up: bool, reset: bool) -> None:
        """Open the port of a process, or close it with all of its connections."""
        if node_id not in self.endpoints.nodes:
            return
        if up:
            bound = self.endpoints.listen(node_id, BACKLOG)  # connections wait from now on
            listener = Listener(node_id, self.network.endpoints[node_id].incarnation, bound)
            self._call(lambda: self._listen(listener))
        else:
            self._call(lambda: self._unlisten(node_id, reset=reset))

    def links_changed(self) -> None:
        """End the connections that a fault has kept open without their broker."""
        self._call(self._drop_stale)

    def deliver(self, completion: Completion, /) -> None:
        """Take the response to a client's request, or its failure."""
        self._call(lambda: self._responded(completion))

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    def close(self) -> None:
        """End every connection, free every port, end the thread."""
        self._closed = True
        self._wake()
        self._thread.join(STOP_TIMEOUT_S)
        self._large.close(STOP_TIMEOUT_S)
        self.endpoints.close()

    # In the thread of I/O.

    def _call(self, call: Callable[[], None]) -> None:
        self._calls.append(call)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it wakes anyway; closed: it has ended
            self._waker.send(b"\0")

    def _run(self) -> None:
        try:
            while not self._closed:
                for key, mask in self._selector.select():
                    self._ready(key.data, mask)
                while self._calls:
                    self._calls.popleft()()
        except Exception as error:
            self.network.rt.interrupted(error)
        finally:
            self.outside.close()
            for connection in list(self._connections):
                self._drop(connection)
            for node_id in list(self._listening):
                self._unlisten(node_id)
            self._selector.close()
            self._woken.close()
            self._waker.close()

    def _ready(self, data: Any, mask: int) -> None:
        if data is None:
            with contextlib.suppress(BlockingIOError):
                self._woken.recv(4096)
        elif isinstance(data, Listener):
            self._accept(data)
        elif isinstance(data, OutgoingConnection):
            data.ready(mask)
        else:
            if mask & selectors.EVENT_WRITE:
                self._write(data)
            if mask & selectors.EVENT_READ and data.socket is not None:
                self._read(data)

    def _listen(self, listener: Listener) -> None:
        self._listening[listener.node_id] = listener
        self._selector.register(listener.socket, selectors.EVENT_READ, listener)

    def _unlisten(self, node_id: int, *, reset: bool = False) -> None:
        listener = self._listening.pop(node_id, None)
        if listener is not None:
            if node_id not in self._full:
                self._selector.unregister(listener.socket)
            self._full.discard(node_id)
            listener.socket.close()
        for connection in [c for c in self._connections if c.node_id == node_id]:
            if self._is_cut(connection):
                connection.is_stale = True
            else:
                self._drop(connection, reset=reset)

    def _is_cut(self, connection: Connection) -> bool:
        """True while nothing of the broker reaches the client."""
        client = connection.client
        return client is not None and self.network.blocked(connection.node_id, client)

    def _drop_stale(self) -> None:
        for connection in [c for c in self._connections if c.is_stale]:
            if not self._is_cut(connection):
                self._drop(connection, reset=True)

    def _accept(self, listener: Listener) -> None:
        node_id = listener.node_id
        limits = self.limits(node_id)
        if not self._quotas.has_slot(node_id, limits):
            self._stop_accepting(node_id, f"max.connections: {limits.max_connections} are open")
            return
        try:
            accepted, (address, *_) = listener.socket.accept()
        except OSError as error:
            if error.errno in _NO_DESCRIPTORS:
                self._stop_accepting(node_id, error.strerror or "")
                rt = self.network.rt
                accept_again = lambda _: self._call(lambda: self._admit(node_id))  # noqa: E731
                rt.inject(lambda: rt.post(rt.now_ms + ACCEPT_RETRY_MS, accept_again, None))
            return  # else the client has left before
        if not self._quotas.add(node_id, address, limits):
            reason = f"max.connections.per.ip: {address} has {limits.of_address(address)}"
            self.log.warning("connection.refused", node=node_id, reason=reason)
            accepted.close()
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        machine = ClientConnection(self.served[node_id], limits.max_request_bytes)
        connection = Connection(next(self._numbers), listener, address, accepted, machine)
        self._connections.add(connection)
        self._idle.touch(connection, limits.max_idle_ms)
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _stop_accepting(self, node_id: int, reason: str) -> None:
        """Let the clients that connect wait, until one has left."""
        self.log.warning("connection.waits", node=node_id, reason=reason)
        self._selector.unregister(self._listening[node_id].socket)
        self._full.add(node_id)

    def _admit(self, node_id: int) -> None:
        """Accept again."""
        if node_id in self._full:
            self._full.discard(node_id)
            listener = self._listening[node_id]
            self._selector.register(listener.socket, selectors.EVENT_READ, listener)

    def _drop_idle(self) -> None:
        for connection in self._idle.expired():
            self.log.info("connection.idle", node=connection.node_id, address=connection.address)
            self._drop(connection)

    def _read(self, connection: Connection) -> None:
        assert connection.socket is not None
        try:
            data = connection.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)
            return
        self._idle.touch(connection)
        machine = connection.machine
        self._perform(connection, machine.on_bytes(data) if data else machine.on_end_of_stream())

    def _perform(self, connection: Connection, effects: Sequence[Effect]) -> None:
        """Perform effects, and those that follow them, until bytes are missing or do not leave."""
        while effects:
            [effect] = effects
            effects = ()
            match effect:
                case Write(data):
                    connection.unsent += data
                    if self._flush(connection):
                        effects = connection.machine.on_written()
                case Deliver():
                    self._deliver(connection, effect)
                case Decode() | Encode():
                    self._work(connection, effect)
                case Close(reason):
                    if reason is not None:
                        self._log_close(connection, reason)
                    self._drop(connection)
        self._watch(connection)

    def _work(self, connection: Connection, effect: Decode | Encode) -> None:
        """Have a large message read or written in another thread, then continue."""
        machine = connection.machine
        take = machine.on_decoded if isinstance(effect, Decode) else machine.on_encoded

        def continue_(result: Any) -> None:
            if connection.socket is not None:
                self._perform(connection, take(result))

        self._large.put(effect, lambda result: self._call(partial(continue_, result)))

    def _log_close(self, connection: Connection, reason: str) -> None:
        node, address = connection.node_id, connection.address
        self.log.warning("connection.closed", node=node, address=address, reason=reason)

    def _deliver(self, connection: Connection, deliver: Deliver) -> None:
        self.requests += 1
        src = self._source(connection, deliver)
        self.network.rt.inject(partial(self._send, connection, deliver, src))

    def _send(self, connection: Connection, deliver: Deliver, src: int) -> None:
        endpoint = self.network.endpoints.get(connection.node_id)
        if endpoint is None or endpoint.incarnation != connection.incarnation:
            return  # the connection ends with its process
        connection.exchange = self.network.request(
            src=src,
            dst=connection.node_id,
            body=deliver.request,
            version=deliver.version,
            caller=self,
            context=connection,
            correlation_id=deliver.correlation_id,
            client_id=deliver.client_id,
            connection=connection.number,
        )

    def _source(self, connection: Connection, deliver: Deliver) -> int:
        """The node of a request's sender: a node outside, or a client."""
        sender = sending_node(deliver.request, deliver.version, deliver.client_id)
        if sender is not None and sender not in self.endpoints.nodes:
            connection.outside = sender
        if connection.outside is not None:
            return connection.outside
        connection.client = self.clients.sender(deliver.client_id, connection.client)
        return connection.client

    def _responded(self, completion: Completion) -> None:
        connection: Connection = completion.exchange.context
        if connection.socket is None or connection.exchange is not completion.exchange:
            return
        connection.exchange = None
        if completion.failure is None:
            try:
                response = self.endpoints.advertise(completion.response)
                effects = connection.machine.on_response(response)
            except MiniclusterError as error:
                effects = [Close(str(error))]
            self._perform(connection, effects)
        elif completion.failure == "no_response":
            self._perform(connection, connection.machine.on_no_response())
        else:
            self._drop(connection, reset=completion.failure == "reset")

    def _write(self, connection: Connection) -> None:
        """Continue with the bytes that the socket did not take before."""
        if self._flush(connection):
            self._perform(connection, connection.machine.on_written())

    def _flush(self, connection: Connection) -> bool:
        """Send what the socket takes; True when all has left."""
        if connection.socket is None:
            return False
        try:
            sent = connection.socket.send(connection.unsent)
        except BlockingIOError:
            return False
        except OSError:
            self._drop(connection)
            return False
        del connection.unsent[:sent]
        self._idle.touch(connection)
        return not connection.unsent

    def _watch(self, connection: Connection) -> None:
        """Watch for what a connection waits for now."""
        if connection.socket is None:
            return
        events = selectors.EVENT_READ if connection.machine.reads and not connection.unsent else 0
        events |= selectors.EVENT_WRITE if connection.unsent else 0
        if events == connection.watched:
            return
        if not connection.watched:
            self._selector.register(connection.socket, events, connection)
        elif not events:
            self._selector.unregister(connection.socket)
        else:
            self._selector.modify(connection.socket, events, connection)
        connection.watched = events

    def _drop(self, connection: Connection, *, reset: bool = False) -> None:
        if connection.socket is None:
            return
        if connection.watched:
            self._selector.unregister(connection.socket)
        if reset:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        connection.socket.close()
        connection.socket = None
        connection.unsent.clear()
        if connection.client is not None:
            self.clients.disconnected(connection.client)
        self._connections.discard(connection)
        self._idle.forget(connection)
        self._quotas.remove(connection.node_id, connection.address)
        self._admit(connection.node_id)
