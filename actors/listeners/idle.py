"""The connections of a cluster by their last activity, and those that were idle for too long.

One timer for all: it fires when the connection that was active longest ago may have expired.

Source:  Selector.IdleExpiryManager (connections.max.idle.ms).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from minicluster.actors.listeners.limits import NO_IDLE_TIMEOUT_MS
from minicluster.actors.runtime.runtime import Runtime

C = TypeVar("C")


class IdleExpiry(Generic[C]):
    """The time at which each connection was last active; the thread of I/O alone uses it."""

    def __init__(self, rt: Runtime, wake: Callable[[], None]) -> None:
        self._rt = rt
        self._wake = wake  # called by the runtime when ``expired`` is due
        self._active_ms: dict[C, int] = {}  # the connection that was active longest ago is first
        self._max_ms: dict[C, int] = {}
        self._scheduled = False

    def touch(self, connection: C, max_idle_ms: int | None = None) -> None:
        """A connection is active; with a limit, from now on."""
        if max_idle_ms is not None and max_idle_ms > NO_IDLE_TIMEOUT_MS:
            self._max_ms[connection] = max_idle_ms
        if connection in self._max_ms:
            self._active_ms.pop(connection, None)
            self._active_ms[connection] = self._rt.now_ms
            if not self._scheduled:
                self._schedule(self._rt.now_ms + self._max_ms[connection])

    def forget(self, connection: C) -> None:
        """A connection is closed."""
        self._active_ms.pop(connection, None)
        self._max_ms.pop(connection, None)

    def expired(self) -> list[C]:
        """The connections that have been idle for too long."""
        self._scheduled = False
        now_ms = self._rt.now_ms
        expired: list[C] = []
        for connection, active_ms in self._active_ms.items():
            expires_ms = active_ms + self._max_ms[connection]
            if expires_ms > now_ms:
                self._schedule(expires_ms)
                break
            expired.append(connection)
        return expired

    def _schedule(self, at_ms: int) -> None:
        self._scheduled = True
        rt = self._rt
        rt.inject(lambda: rt.post(at_ms, lambda _: self._wake(), None))
