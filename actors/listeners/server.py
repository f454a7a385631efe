"""The listeners of a cluster: one thread of I/O, a port for each listener of a node.

client ──bytes──▶ SocketCarrier ──▶ ServedConnection ──▶ Network
client ◀─bytes─── SocketCarrier ◀── ServedConnection ◀── Network
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from minicluster.actors.listeners.carrier import Carried
from minicluster.actors.listeners.client_nodes import ClientNodes
from minicluster.actors.listeners.connection import RECEIVE_BYTES, Decode, Encode
from minicluster.actors.listeners.endpoints import Advertised, Endpoints
from minicluster.actors.listeners.large_messages import LargeMessages
from minicluster.actors.listeners.limits import ConnectionLimits
from minicluster.actors.listeners.outside import OutsideAddress, OutsideNodes
from minicluster.actors.listeners.security import ListenerSecurity
from minicluster.actors.listeners.served import ServedConnections
from minicluster.actors.network import Network
from minicluster.actors.runtime.threaded import STOP_TIMEOUT_S
from minicluster.values import Value

BACKLOG = 1024
ACCEPT_RETRY_MS = 100
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NO_LINGER = struct.pack("ii", 1, 0)  # a close then sends RST


class SocketCarrier:
    """A client's socket, with its unsent bytes."""

    __slots__ = ("_reads", "_selector", "_socket", "_watched", "address", "connection", "unsent")

    client = None  # any program; each request names it
    connection: Carried  # from the moment on that it is accepted

    def __init__(
        self, selector: selectors.BaseSelector, accepted: socket.socket, address: str
    ) -> None:
        self.address = address
        self.unsent = bytearray()
        self._selector = selector
        self._socket: socket.socket | None = accepted
        self._reads = True
        self._watched = 0

    def begin(self, connection: Carried) -> None:
        """Read for a connection from now on."""
        assert self._socket is not None
        self.connection = connection
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()

    def ready(self, mask: int) -> None:
        """The socket can be read from, or written to."""
        if mask & selectors.EVENT_WRITE and self._flush():
            self.connection.on_written()
        if mask & selectors.EVENT_READ and self._socket is not None:
            self._read(self._socket)

    def write(self, data: bytes) -> bool:
        self.unsent += data
        return self._flush()

    def reads(self, wanted: bool) -> None:
        self._reads = wanted
        self._watch()

    def end(self, *, reset: bool) -> None:
        if self._socket is None:
            return
        if self._watched:
            self._selector.unregister(self._socket)
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._socket.close()
        self._socket = None
        self.unsent.clear()

    def _read(self, readable: socket.socket) -> None:
        try:
            data = readable.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self.connection.drop()
            return
        if data:
            self.connection.on_bytes(data)
        else:
            self.connection.on_end_of_stream()

    def _flush(self) -> bool:
        """Send what the socket takes; True when all has left."""
        if self._socket is None:
            return False
        try:
            sent = self._socket.send(self.unsent)
        except BlockingIOError:
            return False
        except OSError:
            self.connection.drop()
            return False
        del self.unsent[:sent]
        self.connection.touch()
        return not self.unsent

    def _watch(self) -> None:
        """Watch for what the connection waits for now."""
        if self._socket is None:
            return
        events = selectors.EVENT_READ if self._reads else 0
        events |= selectors.EVENT_WRITE if self.unsent else 0
        if events == self._watched:
            return
        if not self._watched:
            self._selector.register(self._socket, events, self)
        elif not events:
            self._selector.unregister(self._socket)
        else:
            self._selector.modify(self._socket, events, self)
        self._watched = events


class Listener(Value):
    """A port of a node's process."""

    node_id: int
    name: str
    incarnation: str
    socket: socket.socket


class Listeners:
    """The sockets of a cluster's clients, and the thread that reads and writes them."""

    def __init__(
        self,
        network: Network,
        clients: ClientNodes,
        endpoints: Endpoints,
        versions: Mapping[int, Mapping[int, range]],  # of each node: the versions of each API
        *,
        limits: Callable[[int], ConnectionLimits],  # of a node, as they are now
        log: Any,  # a structlog logger bound to the listeners
        security: Callable[[str], ListenerSecurity],  # of each listener
        advertised: Advertised,
        address_of: Callable[[int], OutsideAddress | None],
    ) -> None:
        self.network = network
        self.endpoints = endpoints
        self.served = ServedConnections(
            network,
            clients,
            versions,
            limits=limits,
            log=log,
            security=security,
            call=self._call,
            work=self._work,
            advertise=advertised.advertise,
            on_slot=self._admit,
        )
        self._full: set[int] = set()  # brokers whose port accepts nobody until one has left
        self._large = LargeMessages(network.rt.interrupted)
        self._listening: dict[int, list[Listener]] = {}  # by node
        self._calls: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="minicluster-io", daemon=True)
        self.outside = OutsideNodes(
            network,
            self._selector,
            self._call,
            address_of,
            lambda node, why: log.warning("login.failed", node=node, reason=why),
        )
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
            incarnation = self.network.running[node_id].incarnation
            listeners = [  # connections wait from now on
                Listener(node_id, name, incarnation, self.endpoints.listen(node_id, name, BACKLOG))
                for name in self.endpoints.listeners(node_id)
            ]
            self._call(lambda: self._listen(node_id, listeners))
        else:
            self._call(lambda: self._unlisten(node_id, reset=reset))

    def links_changed(self) -> None:
        """End the connections that a fault has kept open without their broker."""
        self._call(self.served.drop_stale)

    @property
    def requests(self) -> int:
        """The number of requests of all connections so far."""
        return self.served.requests

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self.served.connections)

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
            self.served.close()
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
        else:
            data.ready(mask)

    def _work(self, effect: Decode | Encode, then: Callable[[Any], None]) -> None:
        """Have a large message read or written in another thread."""
        self._large.put(effect, lambda result: self._call(partial(then, result)))

    def _listen(self, node_id: int, listeners: list[Listener]) -> None:
        self._listening[node_id] = listeners
        for listener in listeners:
            self._selector.register(listener.socket, selectors.EVENT_READ, listener)

    def _unlisten(self, node_id: int, *, reset: bool = False) -> None:
        for listener in self._listening.pop(node_id, ()):
            if node_id not in self._full:
                self._selector.unregister(listener.socket)
            listener.socket.close()
        self._full.discard(node_id)
        self.served.node_ended(node_id, reset=reset)

    def _accept(self, listener: Listener) -> None:
        node_id = listener.node_id
        if not self.served.has_slot(node_id):
            self._stop_accepting(node_id)
            return
        try:
            accepted, (address, *_) = listener.socket.accept()
        except OSError as error:
            if error.errno in _NO_DESCRIPTORS:
                self.served.log_wait(node_id, error.strerror or "")
                self._stop_accepting(node_id)
                rt = self.network.rt
                accept_again = lambda _: self._call(lambda: self._admit(node_id))  # noqa: E731
                rt.inject(lambda: rt.post(rt.now_ms + ACCEPT_RETRY_MS, accept_again, None))
            return  # else the client has left before
        carrier = SocketCarrier(self._selector, accepted, address)
        connection = self.served.accept(node_id, listener.name, listener.incarnation, carrier)
        if connection is None:
            carrier.end(reset=False)
        else:
            carrier.begin(connection)

    def _stop_accepting(self, node_id: int) -> None:
        """Let the clients that connect wait, until one has left."""
        for listener in self._listening[node_id]:
            self._selector.unregister(listener.socket)
        self._full.add(node_id)

    def _admit(self, node_id: int) -> None:
        """Accept again."""
        if node_id in self._full:
            self._full.discard(node_id)
            for listener in self._listening[node_id]:
                self._selector.register(listener.socket, selectors.EVENT_READ, listener)
