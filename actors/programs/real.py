"""Connections to what is outside of the simulation, where a test allows them (``allow_real``).

The virtual clock stands still while an answer is waited for, at most a second of the wall's after
each write: else a minute of timeouts would pass in the milliseconds that a database takes. What
comes by itself is looked for every ten milliseconds of the cluster. Such a run does not repeat.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Any

from minicluster.actors.programs.loop import SimulatedLoop

ANSWERS_WITHIN_S = 1.0
LOOK_EVERY_MS = 10
_RECEIVE_BYTES = 256 * 1024


class RealTransport(asyncio.Transport):
    """A real connection of a program."""

    def __init__(
        self, loop: SimulatedLoop, connected: socket.socket, closed: Callable[[Any], None]
    ) -> None:
        names = {"peername": connected.getpeername(), "sockname": connected.getsockname()}
        super().__init__({**names, "socket": connected})
        self._loop, self._socket, self._closed = loop, connected, closed
        self._protocol: Any = None
        self._is_closing = self._is_paused = False

    def begin(self, protocol: Any) -> None:
        """The connection is there."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._look(None)

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not (self._is_paused or self._is_closing)

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered: a write waits for the system."""

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: Any) -> None:
        if not self._is_closing and data:
            self._socket.sendall(data)
            self._loop.call_soon(self._receive, ANSWERS_WITHIN_S)

    def write_eof(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        if not self._is_closing:
            self._loop.call_soon(self._lose, None)
        self._is_closing = True

    abort = close

    def abandon(self) -> None:
        """The process has ended."""
        self._is_closing = True
        self._socket.close()

    def _look(self, _: None) -> None:
        if not self._is_closing:
            rt = self._loop.rt
            rt.post(rt.now_ms + LOOK_EVERY_MS, self._look, None)
            if select.select([self._socket], [], [], 0)[0]:
                self._loop.arrival(self, lambda: self._receive(0))

    def _receive(self, within_s: float) -> None:
        if self._is_closing or self._is_paused:
            return
        if not select.select([self._socket], [], [], within_s)[0]:
            return
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            self._lose(error)
            return
        if data:
            self._protocol.data_received(data)
        elif not self._protocol.eof_received():
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        self._is_closing = True
        self._socket.close()
        self._closed(self)
        self._protocol.connection_lost(error)
