"""The parts of a coordinator's large works, which follow behind other inputs of its broker.

A work is begun with its input, and most are whole then. What is left continues by ``Continue``, as
other large works of a broker do. A work of the coordinator itself, such as the look-up of what a
request names, waits for nothing and holds nobody up; an event of a shard does both
(``runtime.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from typing import TypeVar

from minicluster.effects import Continue, Effect, Work

T = TypeVar("T")

ELEMENTS_PER_PART = 2_000  # some 10 ms of the processor


def listed(items: Iterable[T]) -> Work[list[T]]:
    """The items of a generator as a list, so many in a part."""
    taken = []
    for item in items:
        taken.append(item)
        if ends_part(len(taken)):
            yield
    return taken


def ends_part(count: int) -> bool:
    """True where so many elements are a number of whole parts."""
    return count % ELEMENTS_PER_PART == 0


def is_large(items: Sized) -> bool:
    """True where work with the items is a part of its own."""
    return len(items) > ELEMENTS_PER_PART


def portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items, as many at a time as a part has."""
    for begin in range(0, len(items), ELEMENTS_PER_PART):
        yield items[begin : begin + ELEMENTS_PER_PART]


class Parts:
    """What of a coordinator's works is still to be carried out.

    Shapes:  take_effects: ends an input of the coordinator at a time.
    """

    def __init__(self, effects: list[Effect], take_effects: Callable[[int], list[Effect]]) -> None:
        self._effects = effects
        self._take_effects = take_effects

    def carry_out(self, work: Iterator[None]) -> None:
        """Carry the first part of a work out, and have the others follow this input."""
        if next(work, _ENDED) is not _ENDED:
            self.follow(lambda _: self.carry_out(work))

    def follow(self, part: Callable[[int], None]) -> None:
        """Have a part carried out behind the inputs that have come meanwhile, with its time."""
        self._effects.append(Continue(partial(self._carry_out, part)))

    def _carry_out(self, part: Callable[[int], None], now_ms: int) -> list[Effect]:
        part(now_ms)
        return self._take_effects(now_ms)


_ENDED = object()
