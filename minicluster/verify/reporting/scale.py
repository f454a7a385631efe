"""The time axis of a run: from offsets to moments, and from moments to places on the page.

Time advances evenly where something happens. A long while in which nothing changes is shortened and
marked, so that an idle hour takes no room.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import accumulate, pairwise

from minicluster.verify.evidence.run import Run
from minicluster.zookeeper.log.columns import OPERATIONS

WIDTH = 1000
LEFT = 76
RIGHT = 6
TICKS = 9
IDLE_SHARE = 12  # a while of more than this part of the busy time is shortened
FEW = 4  # gaps: nothing is shortened
WALL_CLOCK_MS = 10**11  # above, a timestamp is a moment of the calendar


class Clock:
    """The moment at which each offset was appended; the offset where no time is kept."""

    def __init__(self, run: Run) -> None:
        stamps = [(batch.base_offset, batch.max_timestamp) for batch in run.committed]
        stamps += [(row["offset"], row["ms"]) for row in run.znode_rows(OPERATIONS)]
        self._offsets = [offset for offset, _ in stamps]
        self._times = list(accumulate((ms for _, ms in stamps), max))
        self.is_timed = bool(self._times) and self._times[-1] > self._times[0]
        self.end_offset = run.extent.end_offset
        self.is_wall = self.is_timed and self._times[0] > WALL_CLOCK_MS
        self.first_ms = self.of(self._offsets[0]) if self._offsets else 0
        self.last_ms = self.of(self._offsets[-1]) if self._offsets else 1

    def of(self, offset: int) -> int:
        """The moment of an offset."""
        if not self.is_timed:
            return offset
        place = bisect_right(self._offsets, offset) - 1
        return self._times[max(0, place)]

    def text(self, at_ms: int) -> str:
        """A moment for people: seconds of the run, the time of day, or an offset."""
        if not self.is_timed:
            return f"offset {at_ms}"
        if self.is_wall:
            return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S.%f}"[:-3]
        return f"{at_ms / 1000:.3f}s"


class Scale:
    """Places on the page, by moments."""

    def __init__(self, clock: Clock, moments: Iterable[int], end_ms: int | None) -> None:
        self.clock = clock
        first = clock.first_ms if clock.is_wall or not clock.is_timed else 0
        last = max([clock.last_ms, *([end_ms] if end_ms and not clock.is_wall else [])])
        points = sorted({first, *(m for m in moments if first <= m <= last), max(last, first + 1)})
        gaps = [after - before for before, after in pairwise(points)]
        busy = sorted(gaps)[: max(1, len(gaps) * 9 // 10)]
        longest = max(gaps) if len(gaps) < FEW else max(sum(busy) // IDLE_SHARE, 1)
        self._points = points
        self._places = [0.0]
        self.breaks: list[tuple[int, int]] = []  # from, to
        for start, gap in zip(points, gaps, strict=False):
            if gap > longest:
                self.breaks.append((start, start + gap))
            self._places.append(self._places[-1] + min(gap, longest))

    @property
    def end_ms(self) -> int:
        """The last moment."""
        return self._points[-1]

    @property
    def first_ms(self) -> int:
        """The first moment."""
        return self._points[0]

    def at(self, moment: int) -> float:
        """The place of a moment."""
        points = self._points
        moment = min(max(moment, points[0]), points[-1])
        place = min(bisect_right(points, moment) - 1, len(points) - 2)
        start, end = points[place], points[place + 1]
        low, high = self._places[place], self._places[place + 1]
        value = low + (high - low) * (moment - start) / (end - start)
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self._places[-1]

    def moment(self, offset: int) -> int:
        """The moment of an offset; the end of the log is the end of the run."""
        is_end = self.clock.is_timed and offset >= self.clock.end_offset
        return self.end_ms if is_end else self.clock.of(offset)

    def of(self, offset: int) -> float:
        """The place of an offset."""
        return self.at(self.moment(offset))

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Places of round moments with their texts, none too near to another."""
        room = -1.0
        distance = (WIDTH - LEFT) / TICKS
        for number in range(TICKS + 1):
            wanted = LEFT + number * distance
            moment = self._moment(wanted)
            if self.clock.is_timed:
                moment = round(moment, -2 if self.end_ms - self.first_ms < 20_000 else -3)
            x = self.at(moment)
            if x >= room and x < WIDTH - 30:
                yield x, self._label(moment)
                room = x + distance * 0.7

    def _label(self, moment: int) -> str:
        if self.clock.is_wall:
            return f"{datetime.fromtimestamp(moment / 1000, UTC):%H:%M:%S}"
        return f"{moment / 1000:g}s" if self.clock.is_timed else str(moment)

    def _moment(self, x: float) -> int:
        share = (x - LEFT) / (WIDTH - LEFT - RIGHT) * self._places[-1]
        place = min(bisect_right(self._places, share) - 1, len(self._points) - 2)
        low, high = self._places[place], self._places[place + 1]
        start, end = self._points[place], self._points[place + 1]
        part = 0.0 if high == low else (share - low) / (high - low)
        return int(start + (end - start) * min(1.0, max(0.0, part)))
