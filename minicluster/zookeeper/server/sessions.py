"""Sessions: each lives as long as its client sends something within the timeout.

Source:  org.apache.zookeeper.server.SessionTrackerImpl, ExpiryQueue (deadlines on whole ticks).
"""

from __future__ import annotations

from msgspec import Struct

FIRST_SESSION = 0x10000000000


class Session(Struct):
    """One session and its deadline."""

    timeout_ms: int
    deadline_ms: int


class Sessions:
    """All live sessions, by id."""

    def __init__(self, tick_ms: int) -> None:
        self._tick_ms = tick_ms
        self._sessions: dict[int, Session] = {}
        self._next = FIRST_SESSION

    def __contains__(self, session: int) -> bool:
        return session in self._sessions

    def open(self, timeout_ms: int, now_ms: int) -> int:
        """Open a session."""
        session, self._next = self._next, self._next + 1
        self._sessions[session] = Session(timeout_ms, self._deadline(timeout_ms, now_ms))
        return session

    def touch(self, session: int, now_ms: int) -> bool:
        """Prolong a session; False if it has expired."""
        live = self._sessions.get(session)
        if live is None:
            return False
        live.deadline_ms = max(live.deadline_ms, self._deadline(live.timeout_ms, now_ms))
        return True

    def close(self, session: int) -> None:
        """Close a session, if it lives."""
        self._sessions.pop(session, None)

    def expired(self, now_ms: int) -> list[int]:
        """The sessions whose deadline has passed, oldest first."""
        return [session for session, live in self._sessions.items() if live.deadline_ms <= now_ms]

    def next_deadline_ms(self) -> int | None:
        """The deadline that comes first."""
        return min((live.deadline_ms for live in self._sessions.values()), default=None)

    def _deadline(self, timeout_ms: int, now_ms: int) -> int:
        return ((now_ms + timeout_ms) // self._tick_ms + 1) * self._tick_ms
