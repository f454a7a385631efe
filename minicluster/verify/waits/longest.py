"""How long each thing was waited for: of each promise and subject the longest stretch of time.

A stretch begins where something has to come, or at the moment from which its promise counts, and
lasts to the event that ends it. Bounded by the subjects: brokers, partitions, groups.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple


class Subject(NamedTuple):
    """The one that waits: a node, a partition, a partition on a node, or the cluster."""

    topic: str | None = None
    partition: int | None = None
    node: int | None = None


class Longest(NamedTuple):
    """The longest time for which a subject waited; since_ms: None where it did not."""

    waited_ms: int
    since_ms: int | None


class Waits:
    """The longest stretch of each promise and subject; promises by their ids.

    Shapes:  unjudged: why nothing can be said of a promise.
    Units:   from_ms: the moment from which each promise counts.
    """

    def __init__(
        self,
        bounds_ms: Mapping[str, int],
        from_ms: Mapping[str, int],
        ended_ms: int,
        unjudged: Mapping[str, str],
    ) -> None:
        self.bounds_ms, self.from_ms, self.ended_ms = bounds_ms, from_ms, ended_ms
        self.unjudged = unjudged
        self.longest: dict[str, dict[Subject, Longest]] = defaultdict(dict)
        self._open: dict[tuple[str, Subject], int] = {}

    def judges(self, promise: str) -> bool:
        """The run has a bound for a promise, and lasts longer."""
        return promise in self.bounds_ms and promise not in self.unjudged

    def case(self, promise: str, subject: Subject) -> None:
        """The promise has a case, whether anything waits or not."""
        self.note(promise, subject, 0)

    def note(
        self, promise: str, subject: Subject, waited_ms: int, since_ms: int | None = None
    ) -> None:
        """A subject has waited for some time."""
        longest = self.longest[promise].get(subject)
        if self.judges(promise) and (longest is None or longest.waited_ms < waited_ms):
            self.longest[promise][subject] = Longest(waited_ms, since_ms)

    def stretch(self, promise: str, subject: Subject, since_ms: int | None, until_ms: int) -> None:
        """A whole stretch, None: of nothing; the part from which the promise counts."""
        self.case(promise, subject)
        if since_ms is not None and promise in self.from_ms:
            since_ms = max(since_ms, self.from_ms[promise])
            self.note(promise, subject, until_ms - since_ms, since_ms)

    def begin(self, promise: str, subject: Subject, at_ms: int) -> None:
        """Something is waited for from here on, unless it is waited for already."""
        self._open.setdefault((promise, subject), at_ms)

    def end(self, promise: str, subject: Subject, at_ms: int) -> None:
        """End a wait: what was waited for holds, or need not hold any more."""
        self.stretch(promise, subject, self._open.pop((promise, subject), None), at_ms)

    def set(self, promise: str, subject: Subject, waits: bool, at_ms: int) -> None:
        """Begin or end a wait."""
        (self.begin if waits else self.end)(promise, subject, at_ms)

    def end_all(self) -> None:
        """The run has ended, and with it what was still waited for."""
        for promise, subject in list(self._open):
            self.end(promise, subject, self.ended_ms)


class Rising:
    """Offsets that rise, each with the time at which it was there; others have to reach them.

    Shapes:  last: the highest; at first where it begins, at no time.
    """

    __slots__ = ("last", "offsets", "times_ms")

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self.offsets = array("q")
        self.times_ms = array("q")

    def add(self, offset: int, at_ms: int) -> None:
        """An offset, unless it is there already."""
        if offset > self.last:
            self.last = offset
            self.offsets.append(offset)
            self.times_ms.append(at_ms)

    def cut(self, offset: int) -> None:
        """Everything beyond an offset is gone."""
        kept = bisect_right(self.offsets, offset)
        del self.offsets[kept:], self.times_ms[kept:]
        self.last = min(self.last, offset)

    def beyond_ms(self, offset: int, *, up_to: int | None = None) -> int | None:
        """The time of the first one beyond an offset, and up to another; None: there is none."""
        place = bisect_right(self.offsets, offset)
        if place == len(self.offsets) or (up_to is not None and self.offsets[place] > up_to):
            return None
        return self.times_ms[place]
