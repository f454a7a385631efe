"""Work that never changes, for a measure that does not depend on the machine or on its load."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any


class Item:
    """An object with slots, as messages are."""

    __slots__ = ("number", "text")

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text


def fixed_work() -> float:
    """Objects, calls and dictionaries, as simulating makes them; the processor time in seconds.

    Units:   on an idle machine about 25 ms.
    """
    begun = time.process_time()
    held: dict[int, Item] = {}
    total = 0
    for number in range(60_000):
        item = Item(number, "text")
        held[number & 1_023] = item
        total += len(item.text) + held[(number * 7) & 1_023 & number].number
    assert total > 0
    return time.process_time() - begun


def beside_fixed_work(
    benchmark: Any, work: Callable[[], object], *, rounds: int, setup: Callable[[], object]
) -> float:
    """Measure work in processor time, each round beside fixed work.

    Shapes:  -> the median of the work as a multiple of that of the fixed work, which the benchmark
             keeps in its extra information.
    """
    fixed: list[float] = []

    def prepare() -> None:
        setup()
        fixed.append(fixed_work())

    benchmark.pedantic(work, rounds=rounds, warmup_rounds=1, setup=prepare)
    ratio: float = benchmark.stats.stats.median / median(fixed[1:])
    benchmark.extra_info["of_fixed_work"] = round(ratio, 3)
    return ratio
