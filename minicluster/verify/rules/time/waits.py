"""Stretches of time in which something is waited for, after the last disturbance of a run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.lazy_dataclass import dataclass

Key = tuple[str | None, int | None, int | None]  # topic, partition, node


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The moments of a run, and the bounds of its promises in milliseconds."""

    healed_ms: int
    ended_ms: int
    bounds: Mapping[str, int]

    def is_over(self, promise: str) -> bool:
        """The run goes on for longer than a promise's bound."""
        bound_ms = self.bounds.get(promise)
        return bound_ms is not None and self.ended_ms - self.healed_ms > bound_ms


class Waits:
    """The longest stretch of each promise and key, and its beginning."""

    def __init__(self, times: Times) -> None:
        self.times = times
        self._open: dict[tuple[str, Key], int] = {}
        self.longest: dict[tuple[str, Key], int] = {}
        self.since_ms: dict[tuple[str, Key], int] = {}

    def case(self, promise: str, key: Key) -> None:
        """The promise has a case, whether anything waits or not."""
        if self.times.is_over(promise):
            self.longest.setdefault((promise, key), 0)

    def begin(self, promise: str, key: Key, at_ms: int) -> None:
        """Something is waited for from here on, unless it is waited for already."""
        self._open.setdefault((promise, key), at_ms)

    def end(self, promise: str, key: Key, at_ms: int) -> None:
        """End a wait: what was waited for holds, or need not hold any more."""
        since_ms = self._open.pop((promise, key), None)
        self.stretch(promise, key, since_ms, at_ms)

    def set(self, promise: str, key: Key, waits: bool, at_ms: int) -> None:
        """Begin or end a stretch."""
        (self.begin if waits else self.end)(promise, key, at_ms)

    def drop(self, promise: str, key: Key) -> None:
        """Drop a wait for what is not promised any more."""
        self._open.pop((promise, key), None)

    def stretch(self, promise: str, key: Key, since_ms: int | None, until_ms: int) -> None:
        """A whole stretch; the part after the last disturbance counts."""
        self.case(promise, key)
        if since_ms is not None and (promise, key) in self.longest:
            since_ms = max(since_ms, self.times.healed_ms)
            if until_ms - since_ms > self.longest[promise, key]:
                self.longest[promise, key] = until_ms - since_ms
                self.since_ms[promise, key] = since_ms

    def end_all(self) -> None:
        """The run has ended, and with it what was still waited for."""
        for promise, key in list(self._open):
            self.end(promise, key, self.times.ended_ms)


class Committed:
    """When each offset of the metadata log was committed."""

    def __init__(self, raft_events: Iterable[Mapping[str, Any]]) -> None:
        self._ends: list[int] = []
        self._times: list[int] = []
        for row in sorted(raft_events, key=lambda row: row["seq"]):
            if row["kind"] == "hw" and row["offset"] > (self._ends[-1] if self._ends else -1):
                self._ends.append(row["offset"])
                self._times.append(row["vt"])

    def at_ms(self, offset: int) -> int | None:
        """The time at which an offset was committed, None if it never was."""
        place = bisect_right(self._ends, offset)
        return self._times[place] if place < len(self._times) else None

    def last_at(self, at_ms: int) -> int | None:
        """The last offset that was committed by a moment, None where none was."""
        place = bisect_right(self._times, at_ms) - 1
        return self._ends[place] - 1 if place >= 0 and self._ends[place] else None
