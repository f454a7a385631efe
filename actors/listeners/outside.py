"""Nodes outside of this process: Apache Kafka's own brokers and controllers.

    node's actor ──Network──▶ OutsideNodes ──bytes──▶ the node's port
    node's actor ◀─Network─── OutsideNodes ◀─bytes───

A real node has a connection for each purpose, because a request that waits holds up those behind
it. Here each API of a link has one. Where the node's listener wants a login, the requests wait
until it is complete.
"""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from minicluster.actors.links import Packet
from minicluster.actors.listeners.connection import RECEIVE_BYTES
from minicluster.actors.network import Network
from minicluster.protocol import ProtocolError, encode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import decode, decode_prefix
from minicluster.protocol.messages import RequestHeader, ResponseHeader
from minicluster.security.client_login import ClientLogin, Credentials
from minicluster.security.mechanism import SaslFailure
from minicluster.values import Value

_SIZE = 4
_SECONDARY = 0x7FFFFFFF


class OutsideAddress(Value):
    """The listener of a node outside, and who logs in there; None: nobody does."""

    host: str
    port: int
    credentials: Credentials | None = None


class OutsideNodes:
    """The connections to nodes outside, in the thread of I/O.

    Shapes:  address_of: that of a node outside, None for every other node; on_problem: a login at a
             node was rejected, and why.
    """

    def __init__(
        self,
        network: Network,
        selector: selectors.BaseSelector,
        call: Callable[[Callable[[], None]], None],
        address_of: Callable[[int], OutsideAddress | None],
        on_problem: Callable[[int, str], None],
    ) -> None:
        self.network = network
        self.selector = selector
        self.address_of = address_of
        self.on_problem = on_problem
        self._call = call
        self._connections: dict[tuple[int, int, str], OutgoingConnection] = {}

    def send(self, packet: Packet) -> bool:
        """Send a request to a node outside, from any thread; False for every other node."""
        address = self.address_of(packet.dst)
        if address is not None:
            self._call(lambda: self._send(packet, address))
        return address is not None

    def close(self) -> None:
        """End every connection."""
        for connection in list(self._connections.values()):
            connection.close()

    def _send(self, packet: Packet, address: OutsideAddress) -> None:
        key = (packet.src, packet.dst, packet.api)
        connection = self._connections.get(key)
        if connection is not None and connection.is_stale(address):
            connection.close()
            connection = None
        if connection is None:
            connection = OutgoingConnection(self, key, address)
            self._connections[key] = connection
            if not connection.open(packet):
                return
        connection.send(packet)

    def ended(self, key: tuple[int, int, str], packets: deque[Packet]) -> None:
        """A connection has ended, and with it the requests in progress."""
        self._connections.pop(key, None)
        for packet in packets:
            self.disconnect(packet)

    def disconnect(self, packet: Packet) -> None:
        """Fail a request."""
        self.network.rt.inject(partial(self.network.disconnect, packet))


class OutgoingConnection:
    """One connection, with the requests that await their responses, in order."""

    def __init__(
        self, nodes: OutsideNodes, key: tuple[int, int, str], address: OutsideAddress
    ) -> None:
        self.address = address
        self._nodes = nodes
        self._key = key
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._waiting: deque[Packet] = deque()
        self._login = None if address.credentials is None else ClientLogin(address.credentials)
        self._after_login = bytearray()
        self._unsent = (
            bytearray() if self._login is None else bytearray(_sized(self._login.frame()))
        )
        self._received = bytearray()
        self._closed = False

    def is_stale(self, address: OutsideAddress) -> bool:
        """True if the node has moved, or a request has timed out, after which Kafka closes."""
        timed_out = bool(self._waiting) and not self._waiting[0].exchange.open
        return timed_out or address != self.address

    def open(self, packet: Packet) -> bool:
        """Begin to connect; False if that failed at once."""
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.connect_ex((self.address.host, self.address.port))
        except OSError:  # a host that is not known
            self._waiting.append(packet)
            self.close()
            return False
        self._nodes.selector.register(self._socket, selectors.EVENT_WRITE, self)
        return True

    def send(self, packet: Packet) -> None:
        """Send a request behind those before it."""
        try:
            framed = _framed_request(packet)
        except ProtocolError:
            self._nodes.disconnect(packet)
            raise
        if self._login is None:
            self._unsent += framed
        else:
            self._after_login += framed
        self._waiting.append(packet)
        self._watch()

    def ready(self, mask: int) -> None:
        """The socket can be read from, or written to."""
        try:
            if mask & selectors.EVENT_WRITE and self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
            if mask & selectors.EVENT_READ:
                data = self._socket.recv(RECEIVE_BYTES)
                if not data:
                    self.close()
                    return
                self._received += data
                self._responses()
            self._watch()
        except BlockingIOError:
            return
        except SaslFailure as failure:
            self._nodes.on_problem(self._key[1], str(failure))
            self.close()
        except (OSError, ProtocolError):
            self.close()

    def close(self) -> None:
        """End the connection; its requests are disconnected."""
        if self._closed:
            return
        self._closed = True
        if self._socket in self._nodes.selector.get_map():
            self._nodes.selector.unregister(self._socket)
        self._socket.close()
        waiting, self._waiting = self._waiting, deque()
        self._nodes.ended(self._key, waiting)

    def _watch(self) -> None:
        if not self._closed:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
            self._nodes.selector.modify(self._socket, events, self)

    def _responses(self) -> None:
        received = self._received
        while len(received) >= _SIZE and self._waiting:
            size = int.from_bytes(received[:_SIZE], "big")
            if len(received) < _SIZE + size:
                return
            frame = bytes(received[_SIZE : _SIZE + size])
            del received[: _SIZE + size]
            if self._login is not None:
                self._on_login(self._login, frame)
                continue
            packet = self._waiting.popleft()
            response = _read_response(packet, frame)
            network = self._nodes.network
            network.rt.inject(partial(network.respond, packet, response))

    def _on_login(self, login: ClientLogin, frame: bytes) -> None:
        """Take a step of the login; after the last one the requests go that have waited."""
        login.on_response(frame)
        if login.is_complete:
            self._login = None
            self._unsent += self._after_login
        else:
            self._unsent += _sized(login.frame())


def _framed_request(packet: Packet) -> bytes:
    api = APIS[packet.body.api_key]
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=packet.version,
        correlation_id=packet.exchange.id & _SECONDARY,
        client_id=str(packet.src),
    )
    head = encode(header, api.request_header_version(packet.version))
    return _sized(head + encode(packet.body, packet.version))


def _sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(_SIZE, "big") + frame


def _read_response(packet: Packet, frame: bytes) -> Any:
    """The response in a frame.

    Errors:  ProtocolError for a frame that is none, or the response to another request.
    """
    api = APIS[packet.body.api_key]
    header_version = api.response_header_version(packet.version)
    header, end = decode_prefix(ResponseHeader, frame, header_version)
    if header.correlation_id != packet.exchange.id & _SECONDARY:
        raise ProtocolError(packet.api, "correlation_id", "is that of another request")
    return decode(api.response, frame[end:], packet.version)
