"""Delayed operations: requests that wait for a high watermark, for bytes, or for their deadline.

An operation watches partitions. Each change of a partition has its operations tried; the one timer
of the purgatory expires those whose deadline has passed. An operation completes exactly once.

Source:  DelayedOperationPurgatory, DelayedOperation, DelayedOperations.
"""

from __future__ import annotations

import heapq
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable

from minicluster.effects import Effect, SetTimer

Key = tuple[uuid.UUID, int]  # (topic id, partition)


class DelayedOperation(ABC):
    """A request that waits until a deadline at most."""

    deadline_ms: int

    @abstractmethod
    def try_complete(self, now_ms: int) -> bool:
        """Check if the operation can complete now."""

    @abstractmethod
    def on_complete(self, now_ms: int) -> None:
        """Respond: the operation can complete, or its deadline has passed."""


class Purgatory:
    """The waiting operations of one kind."""

    def __init__(self, name: str, effects: list[Effect]) -> None:
        self.timer = name
        self._effects = effects
        # With the watchers of each partition: a topic id as part of a key is hashed in Python.
        self._operations: dict[int, tuple[DelayedOperation, list[tuple[Key, dict[int, None]]]]] = {}
        self._watchers: dict[Key, dict[int, None]] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._timer_ms: int | None = None
        self._count = 0

    def __len__(self) -> int:
        return len(self._operations)

    def watched(self, key: Key) -> int:
        """The number of operations that wait for a partition."""
        return len(self._watchers.get(key, ())) if self._watchers else 0

    def watch(self, operation: DelayedOperation, keys: Iterable[Key]) -> int:
        """Let an operation wait for these partitions.

        Shapes:  -> its number.
        """
        self._count += 1
        number = self._count
        watched: list[tuple[Key, dict[int, None]]] = []
        self._operations[number] = (operation, watched)
        for key in keys:
            self._watch(number, key, watched)
        heapq.heappush(self._deadlines, (operation.deadline_ms, number))
        if self._timer_ms is None or operation.deadline_ms < self._timer_ms:
            self._timer_ms = operation.deadline_ms
            self._effects.append(SetTimer(self.timer, operation.deadline_ms))
        return number

    def watch_also(self, number: int, key: Key) -> bool:
        """Let an operation wait for one more partition.

        Shapes:  -> whether it waits still.
        """
        entry = self._operations.get(number)
        if entry is None:
            return False
        self._watch(number, key, entry[1])
        return True

    def _watch(self, number: int, key: Key, watched: list[tuple[Key, dict[int, None]]]) -> None:
        watchers = self._watchers.get(key)
        if watchers is None:
            watchers = self._watchers[key] = {}
        if number not in watchers:
            watchers[number] = None
            watched.append((key, watchers))

    def check_and_complete(self, key: Key, now_ms: int) -> None:
        """Complete the operations of a partition that can complete."""
        watchers = self._watchers.get(key) if self._watchers else None
        if watchers is None:
            return
        # A copy, and each looked up again: completing one may complete, or add, others.
        for number in sorted(watchers):  # the one that has waited longest is first
            entry = self._operations.get(number)
            if entry is not None and entry[0].try_complete(now_ms):
                self._remove(number)
                entry[0].on_complete(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """Expire what is due and set the next timer."""
        self._timer_ms = None
        while self._deadlines:
            deadline_ms, number = self._deadlines[0]
            entry = self._operations.get(number)
            if entry is not None and deadline_ms > now_ms:
                if self._timer_ms is None:
                    self._timer_ms = deadline_ms
                    self._effects.append(SetTimer(self.timer, deadline_ms))
                break
            heapq.heappop(self._deadlines)
            if entry is not None:
                self._remove(number)
                entry[0].on_complete(now_ms)

    def _remove(self, number: int) -> None:
        """Take an operation out before it completes, so that it cannot complete twice.

        Completing a fetch of a follower may move a high watermark, which has operations tried
        again, this one among them.
        """
        _, watched = self._operations.pop(number)
        for key, watchers in watched:
            del watchers[number]
            if not watchers:
                del self._watchers[key]


class DelayedOperations:
    """The three purgatories of a broker."""

    def __init__(self, effects: list[Effect]) -> None:
        self.produces = Purgatory("purgatory-produce", effects)
        self.fetches = Purgatory("purgatory-fetch", effects)
        self.deletes = Purgatory("purgatory-delete-records", effects)
        self.all = self.fetches, self.produces, self.deletes

    def check_and_complete_all(self, key: Key, now_ms: int) -> None:
        """Try all operations of a partition whose high watermark or log start has moved."""
        self.fetches.check_and_complete(key, now_ms)
        self.produces.check_and_complete(key, now_ms)
        self.deletes.check_and_complete(key, now_ms)

    def complete_when_not_leader(self, key: Key, now_ms: int) -> None:
        """Try the operations that a partition can no longer fulfil: another broker leads now.

        A deletion of records is not tried: it ends by its deadline.

        Source:  ReplicaManager.completeDelayedOperationsWhenNotPartitionLeader.
        """
        self.produces.check_and_complete(key, now_ms)
        self.fetches.check_and_complete(key, now_ms)
