"""The timers of all shards, behind one timer of the shell.

Source:  CoordinatorTimerImpl; a failed task is tried again after 500 ms where it retries.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from msgspec import Struct

from minicluster.effects import CancelTimer, Effect, SetTimer

RETRY_BACKOFF_MS = 500
Task = Callable[[int], None]


class Timer(Struct, eq=False):
    """One task at one time; cancelled once it has no task any more.

    Units:   at_ms is the time of the machine.
    """

    at_ms: int
    task: Task | None

    def cancel(self) -> None:
        """Never run the task."""
        self.task = None


class Timers:
    """Tasks by time; of two at one time, the one that was added first runs first."""

    def __init__(self, name: str, effects: list[Effect]) -> None:
        self.name = name
        self._effects = effects
        self._heap: list[tuple[int, int, Timer]] = []
        self._numbers = count()
        self._set_for: int | None = None

    def add(self, at_ms: int, task: Task) -> Timer:
        """Run a task at a time."""
        timer = Timer(at_ms, task)
        heapq.heappush(self._heap, (at_ms, next(self._numbers), timer))
        return timer

    def run(self, now_ms: int) -> None:
        """Run what is due."""
        self._set_for = None
        while self._heap and self._heap[0][0] <= now_ms:
            timer = heapq.heappop(self._heap)[2]
            task, timer.task = timer.task, None
            if task is not None:
                task(now_ms)

    def arm(self) -> None:
        """Set the timer of the shell for the next task, once all of an input is done."""
        while self._heap and self._heap[0][2].task is None:
            heapq.heappop(self._heap)
        at_ms = self._heap[0][0] if self._heap else None
        if at_ms == self._set_for:
            return
        self._set_for = at_ms
        self._effects.append(
            CancelTimer(self.name) if at_ms is None else SetTimer(self.name, at_ms)
        )


class ShardTimers:
    """The timers of one shard, by key; a later one of the same key replaces the earlier one."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._by_key: dict[str, Timer] = {}

    def schedule(self, key: str, at_ms: int, task: Task) -> None:
        """Run a task at a time, unless it is cancelled or replaced before."""
        self.cancel(key)

        def run(now_ms: int) -> None:
            del self._by_key[key]
            task(now_ms)

        self._by_key[key] = self._timers.add(at_ms, run)

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def cancel(self, key: str) -> None:
        """Drop the task of a key, if there is one."""
        timer = self._by_key.pop(key, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        """Drop every task of the shard."""
        for key in list(self._by_key):
            self.cancel(key)
