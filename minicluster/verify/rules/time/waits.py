"""Stretches of time in which something is waited for, after the last disturbance of a run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.lazy_dataclass import dataclass

Key = tuple[str | None, int | None, int | None]  # topic, partition, node
ISR_CHANGES = ("AlterPartition", "AlterIsr")
BY_ISR_CHANGES = frozenset({"G4", "G5", "G6", "G7", "G9", "G11", "G12"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The moments of a run, and the bounds of its promises in milliseconds.

    Units:  settled_ms: the end of the ISR changes that were on their way when the last disturbance
            ended. A lost one ends by controller.socket.timeout.ms, and until then its leader
            proposes nothing else (DefaultAlterPartitionManager).
    """

    healed_ms: int
    settled_ms: int
    ended_ms: int
    bounds: Mapping[str, int]

    def from_ms(self, promise: str) -> int:
        """The moment from which a promise counts."""
        return self.settled_ms if promise in BY_ISR_CHANGES else self.healed_ms

    def is_over(self, promise: str) -> bool:
        """The run goes on for longer than a promise's bound."""
        bound_ms = self.bounds.get(promise)
        return bound_ms is not None and self.ended_ms - self.from_ms(promise) > bound_ms


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
            since_ms = max(since_ms, self.times.from_ms(promise))
            if until_ms - since_ms > self.longest[promise, key]:
                self.longest[promise, key] = until_ms - since_ms
                self.since_ms[promise, key] = since_ms

    def end_all(self) -> None:
        """The run has ended, and with it what was still waited for."""
        for promise, key in list(self._open):
            self.end(promise, key, self.times.ended_ms)


def settled_ms(requests: Iterable[Mapping[str, Any]], healed_ms: int, ended_ms: int) -> int:
    """When the ISR changes have ended that were on their way at a moment.

    Shapes:  requests: rows of ``rpc``. The next process of a broker ends the waits of the last one.
    """
    open_ms: dict[int, int] = {}
    processes: dict[int, str | None] = {}
    for row in sorted(requests, key=lambda row: row["send_seq"]):
        broker, sent_ms, process = row["src"], row["sent_ms"], row["src_incarnation"]
        if row["connection"] is not None or sent_ms is None:
            continue
        if processes.setdefault(broker, process) != process:
            processes[broker] = process
            open_ms[broker] = min(open_ms.get(broker, 0), sent_ms)
        if row["api"] in ISR_CHANGES and sent_ms <= healed_ms:
            open_ms[broker] = ended_ms if row["completed_ms"] is None else row["completed_ms"]
    return max((healed_ms, *open_ms.values()))


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
