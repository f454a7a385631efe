"""Virtual time by hand, for machines without actors: events at their times, and timers."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

AT_ONCE_MAX = 10_000  # steps within one millisecond: beyond it, time does not advance


class Driving:
    """A clock that jumps to the next event, or to the next timer.

    Of one millisecond, events come first, in the order in which they were planned, then timers.
    ``timers`` is for what a machine sets and cancels: its key is a name, with a node before it
    where there are several.
    """

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.timers: dict[Any, int] = {}
        self.after_step: Callable[[], None] | None = None
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._at_once = 0

    def on_timer(self, timer: Any) -> None:
        """Hand a timer that has come to its machine."""
        raise NotImplementedError

    def describe(self) -> str:
        """The state of all, for who looks why a condition does not hold."""
        return ""

    def at(self, when_ms: int, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when_ms, next(self._order), do))

    def later(self, delay_ms: int, do: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, do)

    @property
    def next_ms(self) -> int | None:
        """The time of the next event or timer."""
        event_ms = [self._events[0][0]] if self._events else []
        return min([*event_ms, *self.timers.values()], default=None)

    def step(self) -> None:
        """The next event or timer."""
        when_ms = self.next_ms
        assert when_ms is not None, "nothing is left to happen"
        self._at_once = self._at_once + 1 if when_ms <= self.now_ms else 0
        assert self._at_once < AT_ONCE_MAX, f"time stands still at {when_ms}:\n{self.describe()}"
        self.now_ms = max(self.now_ms, when_ms)
        if self._events and self._events[0][0] == when_ms:
            heapq.heappop(self._events)[2]()
        else:
            timer = min(timer for timer, at_ms in self.timers.items() if at_ms == when_ms)
            del self.timers[timer]
            self.on_timer(timer)
        if self.after_step is not None:
            self.after_step()

    def advance(self, span_ms: int) -> None:
        """Let time pass: whatever comes in it happens at its time."""
        end_ms = self.now_ms + span_ms
        while (next_ms := self.next_ms) is not None and next_ms <= end_ms:
            self.step()
        self.now_ms = end_ms

    def run_until(self, condition: Callable[[], bool], within_ms: int = 30_000) -> None:
        end_ms = self.now_ms + within_ms
        while not condition():
            next_ms = self.next_ms
            assert next_ms is not None and next_ms <= end_ms, (
                f"not within {within_ms} ms:\n{self.describe()}"
            )
            self.step()
