"""Connections of programs that run inside the simulation: bytes in memory, no socket, no thread.

::

    program ──bytes──▶ MemoryCarrier ──▶ ServedConnection ──▶ Network
    program ◀─bytes─── MemoryCarrier ◀── ServedConnection ◀── Network

Bytes are handed over at once. What takes time, is cut or lost are the requests and responses that
they carry, in the Network. The node of a connection is the program, whatever its ``client.id`` is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from minicluster.actors.listeners.carrier import Carried
from minicluster.actors.listeners.client_nodes import ClientNodes
from minicluster.actors.listeners.connection import Decode, Encode
from minicluster.actors.listeners.endpoints import Advertised
from minicluster.actors.listeners.limits import ConnectionLimits
from minicluster.actors.listeners.security import ListenerSecurity
from minicluster.actors.listeners.served import ServedConnections
from minicluster.actors.network import Network
from minicluster.security.principals import KafkaPrincipal

WINDOW_BYTES = 256 * 1024  # that wait for the program to read them, as in the kernel's buffers


class Peer(Protocol):
    """The program's end of a connection."""

    def arrived(self, data: bytes) -> None:
        """Bytes have arrived; the program tells the carrier when it has read them."""

    def writable(self) -> None:
        """All that the program has written has left its buffer."""

    def ended(self, *, reset: bool) -> None:
        """The other side has ended the connection."""


class MemoryCarrier:
    """The bytes of a program's connection, between its two ends."""

    connection: Carried | None = None  # None while it waits to be accepted

    def __init__(self, program: str, peer: Peer, address: str) -> None:
        self.client = program
        self.address = address
        self.unread = 0  # bytes that the program has not read
        self.unsent = bytearray()  # by the program, until its node reads
        self._peer = peer
        self._reads = False
        self._hands_over = False
        self._stream_ended = self._ended = False

    # The program's side.

    def send(self, data: bytes) -> None:
        """Take bytes that the program has written."""
        self.unsent += data
        self._hand_over()

    def end_of_stream(self) -> None:
        """The program writes nothing more."""
        self._stream_ended = True
        self._hand_over()

    def abandon(self) -> None:
        """The program has ended; its system ends the connection."""
        self._ended = True
        if self.connection is not None:
            self.connection.on_end_of_stream()

    def read(self, count: int) -> None:
        """The program has read bytes that had arrived."""
        was_full = self.unread > WINDOW_BYTES
        self.unread -= count
        if was_full and self.unread <= WINDOW_BYTES and self.connection is not None:
            self.connection.touch()
            self.connection.on_written()

    # The node's side.

    def begin(self, connection: Carried) -> None:
        """The node has accepted the connection."""
        self.connection = connection
        self.reads(True)
        if self._ended:
            connection.on_end_of_stream()

    def write(self, data: bytes) -> bool:
        if self._ended:
            return True
        self.unread += len(data)
        self._peer.arrived(data)
        return self.unread <= WINDOW_BYTES

    def reads(self, wanted: bool) -> None:
        self._reads = wanted
        self._hand_over()

    def end(self, *, reset: bool) -> None:
        self.connection = None  # a program that was killed keeps its carriers, not its cluster
        if not self._ended:
            self._ended = True
            self._peer.ended(reset=reset)

    def _hand_over(self) -> None:
        """Give the node what it reads; reading more may follow from what it has read."""
        if self._hands_over:
            return
        self._hands_over = True
        while self._reads and self.unsent and self.connection is not None:
            data = bytes(self.unsent)
            self.unsent.clear()
            self.connection.on_bytes(data)
            self._peer.writable()
        self._hands_over = False
        if self._stream_ended and not self.unsent and self.connection is not None:
            self._stream_ended = False
            self.connection.on_end_of_stream()


class MemoryListeners:
    """The listeners of a cluster whose clients are programs inside the simulation."""

    def __init__(
        self,
        network: Network,
        clients: ClientNodes,
        versions: Mapping[int, Mapping[int, range]],  # of each node: the versions of each API
        *,
        limits: Callable[[int], ConnectionLimits],  # of a node, as they are now
        log: Any,  # a structlog logger bound to the listeners
        security: Callable[[str], ListenerSecurity],  # of each listener
        advertised: Advertised,
    ) -> None:
        self.network = network
        self.served = ServedConnections(
            network,
            clients,
            versions,
            limits=limits,
            log=log,
            security=security,
            call=lambda call: call(),
            work=_at_once,
            advertise=advertised.advertise,
            on_slot=self._admit,
        )
        # Of each node: the carriers that wait to be accepted, with their listeners, and who they
        # are.
        self._waiting: dict[int, deque[tuple[MemoryCarrier, str, KafkaPrincipal | None]]] = {}
        network.on_node = self._node_changed
        network.on_lift = self.served.drop_stale

    def connect(
        self,
        node_id: int,
        listener: str,
        program: str,
        peer: Peer,
        address: str,
        principal: KafkaPrincipal | None = None,
    ) -> MemoryCarrier | None:
        """Connect a program to a node; None where no process listens, which refuses it.

        Shapes:  principal: whose the connection is, unless it logs in.
        """
        endpoint = self.network.running.get(node_id)
        if endpoint is None or not endpoint.listens:
            return None
        carrier = MemoryCarrier(program, peer, address)
        self._waiting.setdefault(node_id, deque()).append((carrier, listener, principal))
        self._admit(node_id)
        return carrier

    def close(self) -> None:
        """End every connection."""
        self._waiting.clear()
        self.served.close()

    def _admit(self, node_id: int) -> None:
        """Accept those that wait, as far as the node has slots."""
        waiting, endpoint = self._waiting.get(node_id), self.network.running.get(node_id)
        while waiting and endpoint is not None and self.served.has_slot(node_id):
            carrier, listener, principal = waiting.popleft()
            connection = self.served.accept(
                node_id, listener, endpoint.incarnation, carrier, principal
            )
            if connection is None:
                carrier.end(reset=False)
            else:
                carrier.begin(connection)

    def _node_changed(self, node_id: int, up: bool, reset: bool) -> None:
        if not up:
            for carrier, _, _ in self._waiting.pop(node_id, ()):
                carrier.end(reset=reset)
            self.served.node_ended(node_id, reset=reset)


def _at_once(effect: Decode | Encode, then: Callable[[Any], None]) -> None:
    then(effect.result())
