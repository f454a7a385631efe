"""The program's end of a connection, as asyncio has it: a transport over bytes in memory.

Responses arrive in pieces where chance says so, as from a socket: a client that takes a piece for a
frame is found out.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from minicluster.actors.listeners.memory import Peer
from minicluster.actors.programs.loop import SimulatedLoop

PIECES_IN = 8  # one response in so many arrives in two pieces
HIGH_WATER = 64 * 1024  # of bytes that the other side has not taken, as asyncio's default


class Carrier(Protocol):
    """The carrier of a program's bytes to the other side."""

    unsent: Any  # bytes that the other side has not taken

    def send(self, data: bytes) -> None: ...
    def end_of_stream(self) -> None: ...
    def abandon(self) -> None: ...
    def read(self, count: int) -> None: ...


class Transport(asyncio.Transport):
    """A connection of a program."""

    _protocol: Any  # from ``begin`` on

    def __init__(
        self,
        loop: SimulatedLoop,
        *,
        peername: tuple[str, int],
        sockname: tuple[str, int],
        draw: Callable[[], int],
        closed: Callable[[Transport], None],
    ) -> None:
        super().__init__({"peername": peername, "sockname": sockname})
        self.carrier: Any = None  # a Carrier, once it is connected
        self._loop = loop
        self._draw, self._closed = draw, closed
        self._inbox: deque[bytes | Exception | None] = deque()  # None: the end of the stream
        self._is_closing = self._is_lost = self._is_read_paused = False
        self._is_write_paused = False
        self._high, self._low = HIGH_WATER, HIGH_WATER // 4

    def begin(self, protocol: Any) -> None:
        """The connection is there."""
        self._protocol = protocol
        protocol.connection_made(self)

    # The program's side.

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not (self._is_read_paused or self._is_closing)

    def pause_reading(self) -> None:
        self._is_read_paused = True

    def resume_reading(self) -> None:
        if self._is_read_paused:
            self._is_read_paused = False
            for _ in self._inbox:
                self._loop.call_soon(self._take)

    def get_write_buffer_size(self) -> int:
        return len(self.carrier.unsent)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: Any) -> None:
        if self._is_closing or not data:
            return
        self.carrier.send(bytes(data))
        if len(self.carrier.unsent) > self._high and not self._is_write_paused:
            self._is_write_paused = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        self.carrier.end_of_stream()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.carrier.end_of_stream()
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.carrier.abandon()
            self._loop.call_soon(self._lose, None)

    def _force_close(self, error: Any) -> None:
        """Called by asyncio's TLS where a handshake fails."""
        self.abort()

    # The other side.

    def arrived(self, data: bytes) -> None:
        """Bytes have arrived."""
        drawn = self._draw() if self._loop.host.shuffles else 1
        cut = drawn // PIECES_IN % len(data) if drawn % PIECES_IN == 0 else 0
        if cut:
            self._arrive(data[:cut])
            self._inbox.append(data[cut:])
            rt = self._loop.rt
            rt.post(rt.now_ms + 1, self._loop.arrival_of, (self, self._take))
        else:
            self._arrive(data)

    def writable(self) -> None:
        """All that was written has left."""
        if self._is_write_paused and len(self.carrier.unsent) <= self._low:
            self._is_write_paused = False
            self._loop.arrival(self, self._protocol.resume_writing)

    def ended(self, *, reset: bool) -> None:
        """The other side has ended the connection."""
        self._arrive(ConnectionResetError(errno.ECONNRESET, "reset by peer") if reset else None)

    def _arrive(self, item: bytes | Exception | None) -> None:
        self._inbox.append(item)
        if not self._is_read_paused:
            self._loop.arrival(self, self._take)

    # In the loop.

    def _take(self) -> None:
        """Give the protocol what has arrived first."""
        if self._is_read_paused or not self._inbox:
            return
        item = self._inbox.popleft()
        if isinstance(item, bytes):
            self.carrier.read(len(item))
            if not self._is_closing:
                self._give(item)
        elif not self._is_lost:
            stays_open = item is None and not self._is_closing and self._protocol.eof_received()
            if not stays_open:
                self._is_closing = True
                self._lose(item)

    def _give(self, data: bytes) -> None:
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            self._protocol.data_received(data)
            return
        while data:
            buffer: Any = self._protocol.get_buffer(len(data))
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self._protocol.buffer_updated(count)
            data = data[count:]

    def _lose(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._closed(self)
            self._protocol.connection_lost(error)


class ProgramsCarrier:
    """The bytes that one program sends to another: they take time, and wait behind a cut."""

    unsent = b""  # the network takes everything

    def __init__(self, carry: Callable[[Callable[[], None]], None], peer: Peer) -> None:
        self._carry = carry  # makes a call when bytes that are sent now arrive
        self._peer = peer

    def send(self, data: bytes) -> None:
        self._carry(lambda: self._peer.arrived(data))

    def end_of_stream(self) -> None:
        self._carry(lambda: self._peer.ended(reset=False))

    def abandon(self) -> None:
        self.end_of_stream()

    def read(self, count: int) -> None:
        """Nothing waits for that."""
