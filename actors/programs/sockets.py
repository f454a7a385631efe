"""Sockets and selectors in memory, for clients that have their own loop (kafka-python).

They are those of one process, in the terms of ``socket`` and ``selectors``: a socket that does not
block says so with the same errors, and ``select`` waits in virtual time.
"""

from __future__ import annotations

import errno
import itertools
import selectors
import socket
from collections import deque
from collections.abc import Mapping
from typing import Any

from minicluster.actors.programs.locks import wake
from minicluster.actors.programs.threads import Carried
from minicluster.actors.runtime import tripwire

SEND_BUFFER_BYTES = 64 * 1024
_FIRST_DESCRIPTOR = 100_000  # none of the system's
_descriptors = itertools.count(_FIRST_DESCRIPTOR)


def _process() -> Any:
    """The process whose step it is."""
    process = tripwire.program()
    assert process is not None, "the shim of a client is for programs alone"
    return process


class Socket:
    """A stream socket of a program."""

    def __init__(
        self, family: int = socket.AF_INET, type: int = socket.SOCK_STREAM, proto: int = 0
    ) -> None:
        self.family, self.type, self.proto = family, type, proto
        self.carrier: Any = None  # once it is connected
        self._process = _process()
        self._descriptor = next(_descriptors)
        self._inbox: deque[bytes] = deque()
        self._ended = False
        self._error: OSError | None = None
        self._connects = False
        self._timeout_s: float | None = None
        self._peername: tuple[str, int] | None = None
        self._sockname = self._process.program.address, self._process.next_port()
        self._waiting: list[Carried] = []
        self.selectors: list[Selector] = []

    # What programs ask for.

    def fileno(self) -> int:
        return self._descriptor

    def setblocking(self, flag: bool) -> None:
        self._timeout_s = None if flag else 0.0

    def settimeout(self, value: float | None) -> None:
        self._timeout_s = value

    def gettimeout(self) -> float | None:
        return self._timeout_s

    def setsockopt(self, *option: Any) -> None:
        """There is no system that it could tell."""

    def getsockopt(self, level: int, option: int) -> int:
        error, self._error = self._error, None
        return 0 if error is None or error.errno is None else error.errno

    def getpeername(self) -> tuple[str, int]:
        if self._peername is None or self.carrier is None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return self._peername

    def getsockname(self) -> tuple[str, int]:
        return self._sockname

    def connect_ex(self, address: tuple[Any, ...]) -> int:
        if self.carrier is not None:
            return errno.EISCONN
        if self._error is not None:
            return self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if not self._connects:
            self._connects = True
            host, port = str(address[0]), int(address[1])
            self._peername = host, port
            self._process.dial(host, port, self, self._dialed)
        if self._timeout_s == 0:
            return errno.EINPROGRESS
        if not self._wait(self.is_writable):
            return errno.ETIMEDOUT
        return 0 if self.carrier is not None else self.connect_ex(address)

    def connect(self, address: tuple[Any, ...]) -> None:
        number = self.connect_ex(address)
        if number not in (0, errno.EISCONN):
            raise OSError(number, f"connect to {address}")

    def recv(self, size: int, flags: int = 0) -> bytes:
        if not self.is_readable() and not self._wait(self.is_readable):
            raise self._would_block()
        if self._inbox:
            data = self._inbox.popleft()
            if len(data) > size:
                self._inbox.appendleft(data[size:])
                data = data[:size]
            if self.carrier is not None:
                self.carrier.read(len(data))
            return data
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return b""

    def send(self, data: Any, flags: int = 0) -> int:
        if self.carrier is None or self._ended:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        if not self.is_writable() and not self._wait(self.is_writable):
            raise self._would_block()
        self.carrier.send(bytes(data))
        return len(data)

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.send(data)

    def shutdown(self, how: int) -> None:
        if self.carrier is None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        if how != socket.SHUT_RD:
            self.carrier.end_of_stream()

    def close(self) -> None:
        if self.carrier is not None:
            self.carrier.end_of_stream()
        self._process.forget(self)
        self._descriptor = -1

    def is_readable(self) -> bool:
        """``recv`` would return at once."""
        return bool(self._inbox) or self._ended or self._error is not None

    def is_writable(self) -> bool:
        """``send`` would, or the connection attempt has ended."""
        if self._error is not None:
            return True
        return self.carrier is not None and len(self.carrier.unsent) < SEND_BUFFER_BYTES

    # The other side.

    def arrived(self, data: bytes) -> None:
        """Bytes have arrived."""
        self._inbox.append(data)
        self._changed()

    def writable(self) -> None:
        """All that was sent has left."""
        self._changed()

    def ended(self, *, reset: bool) -> None:
        """The other side has ended the connection."""
        self._ended = True
        if reset:
            self._error = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        self._changed()

    def _dialed(self, outcome: Any) -> None:
        if isinstance(outcome, OSError):
            self._error, self._connects = outcome, False
        self._changed()

    def _changed(self) -> None:
        wake(self._waiting)
        for selector in self.selectors:
            selector.changed()

    def _wait(self, holds: Any) -> bool:
        return self._timeout_s != 0 and self._process.block(holds, self._timeout_s, self._waiting)

    def _would_block(self) -> OSError:
        if self._timeout_s == 0:
            return BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return TimeoutError("timed out")


class _Pipe:
    """What one end of a pair sends is with the other at once."""

    unsent = b""

    def __init__(self, other: Socket) -> None:
        self._other = other

    def send(self, data: bytes) -> None:
        self._other.arrived(data)

    def end_of_stream(self) -> None:
        self._other.ended(reset=False)

    def read(self, count: int) -> None:
        """Nothing waits for that."""


def socketpair(*options: Any) -> tuple[Socket, Socket]:
    """Two sockets that are connected to each other: loops wake themselves by one."""
    one, other = Socket(), Socket()
    one.carrier, other.carrier = _Pipe(other), _Pipe(one)
    return one, other


class Selector:
    """``selectors.DefaultSelector`` of a program's sockets."""

    def __init__(self) -> None:
        self._process = _process()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._waiting: list[Carried] = []

    def register(self, fileobj: Socket, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj.fileno(), events, data)
        if key.fd in self._keys:
            raise KeyError(f"{fileobj!r} is registered")
        self._keys[key.fd] = key
        fileobj.selectors.append(self)
        self.changed()
        return key

    def unregister(self, fileobj: Socket) -> selectors.SelectorKey:
        key = self.get_key(fileobj)
        del self._keys[key.fd]
        fileobj.selectors.remove(self)
        return key

    def modify(self, fileobj: Socket, events: int, data: Any = None) -> selectors.SelectorKey:
        self.unregister(fileobj)
        return self.register(fileobj, events, data)

    def get_key(self, fileobj: Socket) -> selectors.SelectorKey:
        for key in self._keys.values():
            if key.fileobj is fileobj:
                return key
        raise KeyError(f"{fileobj!r} is not registered")

    def get_map(self) -> Mapping[int, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        limit_s = None if timeout is None else max(0.0, timeout)
        if not self._ready() and limit_s != 0:
            self._process.block(lambda: bool(self._ready()), limit_s, self._waiting)
        return self._ready()

    def close(self) -> None:
        for key in list(self._keys.values()):
            self.unregister(key.fileobj)  # type: ignore[arg-type]

    def changed(self) -> None:
        """A socket may be ready."""
        wake(self._waiting)

    def _ready(self) -> list[tuple[selectors.SelectorKey, int]]:
        ready = []
        for key in self._keys.values():
            fileobj: Any = key.fileobj
            events = selectors.EVENT_READ if fileobj.is_readable() else 0
            events |= selectors.EVENT_WRITE if fileobj.is_writable() else 0
            if events & key.events:
                ready.append((key, events & key.events))
        return ready
