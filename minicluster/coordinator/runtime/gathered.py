"""The outcomes of several events that one response is made of.

Source:  CompletableFuture.allOf, FutureUtils.combineFutures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Gathered(Generic[T]):
    """Outcomes by their places; ``respond`` gets all of them, in order, once the last one is there.

    An event may end long after the next one, where its shard is in the midst of a large one.
    """

    def __init__(self, count: int, respond: Callable[[list[T]], None]) -> None:
        self._count = count
        self._respond = respond
        self._outcomes: dict[int, T] = {}
        if not count:
            respond([])

    def take(self, place: int, outcome: T) -> None:
        """Take the outcome of an event."""
        self._outcomes[place] = outcome
        if len(self._outcomes) == self._count:
            self._respond([self._outcomes[i] for i in range(self._count)])
