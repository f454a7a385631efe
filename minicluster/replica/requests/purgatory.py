"""Requests that wait: for a high watermark, for bytes, or for their time to run out.

An operation watches partitions. ``check`` asks the operations of a partition whether they are done
now; the one timer of the purgatory ends those whose time is over. Operations end exactly once.

Source:  DelayedOperationPurgatory, DelayedProduce, DelayedFetch.
"""

from __future__ import annotations

import heapq
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable

from minicluster.effects import Effect, SetTimer

Key = tuple[uuid.UUID, int]  # (topic id, partition)


class DelayedOperation(ABC):
    """Something that waits until a time at most."""

    deadline_ms: int

    @abstractmethod
    def try_complete(self, now_ms: int) -> list[Effect] | None:
        """The effects of completing it, or None while it has to wait on."""

    @abstractmethod
    def expire(self, now_ms: int) -> list[Effect]:
        """The effects of ending it because its time is over."""


class Purgatory:
    """The waiting operations of one kind."""

    def __init__(self, name: str) -> None:
        self.timer = name
        self._operations: dict[int, tuple[DelayedOperation, tuple[Key, ...]]] = {}
        self._watchers: dict[Key, dict[int, None]] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._timer_ms: int | None = None
        self._count = 0

    def __len__(self) -> int:
        return len(self._operations)

    def watched(self, key: Key) -> int:
        """How many operations wait for a partition."""
        return len(self._watchers.get(key, ()))

    def watch(self, operation: DelayedOperation, keys: Iterable[Key]) -> list[Effect]:
        """Let an operation wait for these partitions."""
        self._count += 1
        number = self._count
        watched = tuple(dict.fromkeys(keys))
        self._operations[number] = (operation, watched)
        for key in watched:
            self._watchers.setdefault(key, {})[number] = None
        heapq.heappush(self._deadlines, (operation.deadline_ms, number))
        if self._timer_ms is None or operation.deadline_ms < self._timer_ms:
            self._timer_ms = operation.deadline_ms
            return [SetTimer(self.timer, operation.deadline_ms)]
        return []

    def check(self, now_ms: int, keys: Iterable[Key]) -> list[Effect]:
        """Complete what can complete, among the operations that watch these partitions."""
        effects: list[Effect] = []
        for key in keys:
            for number in list(self._watchers.get(key, ())):
                entry = self._operations.get(number)
                if entry is None:
                    continue
                done = entry[0].try_complete(now_ms)
                if done is not None:
                    self._forget(number)
                    effects += done
        return effects

    def on_timer(self, now_ms: int) -> list[Effect]:
        """End what is due and say when to look again."""
        effects: list[Effect] = []
        self._timer_ms = None
        while self._deadlines:
            deadline_ms, number = self._deadlines[0]
            entry = self._operations.get(number)
            if entry is not None and deadline_ms > now_ms:
                self._timer_ms = deadline_ms
                effects.append(SetTimer(self.timer, deadline_ms))
                break
            heapq.heappop(self._deadlines)
            if entry is not None:
                self._forget(number)
                effects += entry[0].expire(now_ms)
        return effects

    def _forget(self, number: int) -> None:
        _, keys = self._operations.pop(number)
        for key in keys:
            watchers = self._watchers[key]
            del watchers[number]
            if not watchers:
                del self._watchers[key]
