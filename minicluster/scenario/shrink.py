"""Shrinking: from steps that break a promise to the few of them that matter.

A candidate is played from the start and counts only if *the same* invariant is broken, whatever
else goes wrong; the player decides that. Only what was played in its final form is returned. Chance
must be stateless (a hash of seed and step number, never a shared stream).

Passes, in this order, again and again until none of them helps:

1. end: what comes after the step at which the promise was broken, or after the wait for the next;
2. ddmin: halves, quarters, … and at last single steps are left out;
3. groups: all steps of one broker, one partition, one producer are left out together;
4. simpler: each step is replaced by a simpler one (shorter wait, rounder time, fewer records).

Source:  Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input (ddmin).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from minicluster.values import Value

T = TypeVar("T")

Play = Callable[[Sequence[T]], int | None]
"""Play steps from the start: how many were played until the promise was broken, None if it held."""

REPLAYS_MAX = 2_000


class Shrunk(Value, Generic[T], kw_only=True):
    """The steps that remain.

    Shapes:  complete: no single step can be left out; otherwise the replays or the time ran out.
    """

    steps: tuple[T, ...]
    replays: int
    complete: bool


class _OutOfReplays(Exception):
    pass


class _Trials(Generic[T]):
    """The best steps so far; each candidate that fails in the same way takes their place."""

    def __init__(
        self, steps: Sequence[T], play: Play[T], replays_max: int, in_time: Callable[[], bool]
    ) -> None:
        self.best = tuple(steps)
        self.replays = 0
        self._play, self._replays_max, self._in_time = play, replays_max, in_time

    def accept(self, candidate: Sequence[T]) -> bool:
        """Play a candidate; where the promise is broken again, it is the best.

        What comes after the violation goes if the promise is broken without it.
        """
        played = self._played(candidate)
        if played is None:
            return False
        self.best = tuple(candidate)
        for end in (played, played + 1):  # the promise may break in the wait for the next step
            if end < len(candidate) and self._played(candidate[:end]) is not None:
                self.best = tuple(candidate[:end])
                break
        return True

    def _played(self, candidate: Sequence[T]) -> int | None:
        if self.replays >= self._replays_max or not self._in_time():
            raise _OutOfReplays
        self.replays += 1
        return self._play(candidate)


def shrink(
    steps: Sequence[T],
    play: Play[T],
    *,
    groups: Callable[[T], Iterable[Hashable]] = lambda _: (),
    simpler: Callable[[T], Iterable[T]] = lambda _: (),
    replays_max: int = REPLAYS_MAX,
    in_time: Callable[[], bool] = lambda: True,
) -> Shrunk[T]:
    """Leave out and simplify as much as possible.

    Shapes:  groups names whom a step is about; simpler gives a step's simpler forms, the simplest
             first, each of which must be simpler than the step by some measure that ends; in_time:
             False ends the search with the best so far.
    Errors:  ValueError, when the steps as given break no promise.
    """
    trials = _Trials(steps, play, replays_max, in_time)
    try:
        if not trials.accept(trials.best):
            raise ValueError("nothing to shrink: the steps as given break no promise")
        while True:
            before = trials.best
            _ddmin(trials)
            _drop_groups(trials, groups)
            _simplify(trials, simpler)
            if trials.best == before:
                return Shrunk(steps=trials.best, replays=trials.replays, complete=True)
    except _OutOfReplays:
        return Shrunk(steps=trials.best, replays=trials.replays, complete=False)


def _ddmin(trials: _Trials[T]) -> None:
    """Leave out ever smaller pieces, from the end, until no single step can go."""
    size = max(1, len(trials.best) // 2)
    while True:
        end, shorter = len(trials.best), False
        while end > 0:
            best = trials.best
            start = max(0, end - size)
            if trials.accept(best[:start] + best[end:]):
                shorter = True
                # The steps after the piece may be gone as well.
                end = min(start, len(trials.best))
            else:
                end = start
        if size > 1:
            size = max(1, min(size // 2, len(trials.best) // 2))
        elif not shorter:
            return


def _drop_groups(trials: _Trials[T], groups: Callable[[T], Iterable[Hashable]]) -> None:
    names = dict.fromkeys(name for step in trials.best for name in groups(step))
    for name in names:
        candidate = [step for step in trials.best if name not in tuple(groups(step))]
        if len(candidate) < len(trials.best):
            trials.accept(candidate)


def _simplify(trials: _Trials[T], simpler: Callable[[T], Iterable[T]]) -> None:
    place = 0
    while place < len(trials.best):
        best = trials.best
        for form in simpler(best[place]):
            if trials.accept((*best[:place], form, *best[place + 1 :])):
                break
        else:
            place += 1
