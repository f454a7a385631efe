"""Aggregates, over groups and over windows.

Windows over the same keys share one sort.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from operator import add
from typing import Any

from minicluster.verify.engine import tree as t
from minicluster.verify.engine.expressions import Row, Scope, column_of, rows_of
from minicluster.verify.engine.parser import SqlError

Values = Sequence[Any]
Step = Callable[[Any, Any], Any]
Totals = Callable[[Values], list[Any]]  # before the first value, and after each


def _last(values: Values) -> list[Any]:
    held = None
    totals = [held]
    for value in values:
        if value is not None:
            held = value
        totals.append(held)
    return totals


def _max(values: Values) -> list[Any]:
    held = None
    totals = [held]
    for value in values:
        if value is not None and (held is None or value > held):
            held = value
        totals.append(held)
    return totals


def _count(values: Values) -> list[Any]:
    return list(accumulate((value is not None for value in values), initial=0))


def _count_if(values: Values) -> list[Any]:
    return list(accumulate((value is True for value in values), initial=0))


def _max_by(held: Any, value: Any) -> Any:
    if value[1] is None:
        return held
    return value if held is None or value[1] >= held[1] else held


def _stepwise(step: Step) -> Totals:
    """Null before the first value that is not null."""

    def both(held: Any, value: Any) -> Any:
        if value is None or held is None:
            return value if held is None else held
        return step(held, value)

    return lambda values: list(accumulate((None, *values), both))


_TOTALS: dict[str, Totals] = {
    "last": _last,
    "first": _stepwise(lambda held, value: held),
    "any_value": _stepwise(lambda held, value: held),
    "min": _stepwise(min),
    "max": _max,
    "sum": _stepwise(add),
    "count": _count,
    "count_if": _count_if,
    "bool_or": _stepwise(lambda held, value: held or value),
    "max_by": lambda values: [held and held[0] for held in accumulate((None, *values), _max_by)],
}
AGGREGATES = frozenset(_TOTALS)


def _argument(call: t.Call, scope: Scope) -> Callable[[Sequence[Row]], list[Any]]:
    """The function from rows to the values that an aggregate takes."""
    if call.name == "max_by":
        return rows_of(call.args, scope)
    if isinstance(call.args[0], t.Star):
        return lambda rows: [True] * len(rows)
    return column_of(call.args[0], scope)


def aggregate(call: t.Call, scope: Scope) -> Callable[[Sequence[Row]], Any]:
    """A function from the rows of a group to the value of an aggregate.

    Errors:  SqlError.
    """
    take = _argument(call, scope)
    totals = _TOTALS[call.name]
    if call.distinct:
        return lambda rows: len(set(take(rows)) - {None})
    return lambda rows: totals(take(rows))[-1]


class Windows:
    """Values of window functions over the rows of one select."""

    def __init__(self, windows: Sequence[t.Window], named: dict[str, t.Spec], scope: Scope) -> None:
        self._work: dict[tuple[Any, ...], _Sorted] = {}
        for place, window in enumerate(windows):
            spec = named[window.spec] if isinstance(window.spec, str) else window.spec
            key = (spec.partition, spec.order)
            if key not in self._work:
                self._work[key] = _Sorted(spec, scope)
            self._work[key].functions.append((place, _function(window.call, spec, scope)))
        self._count = len(windows)

    def columns(self, rows: Sequence[Row]) -> list[list[Any]]:
        """A column for each window, in the order of the rows."""
        made: list[list[Any]] = [[None] * len(rows) for _ in range(self._count)]
        for work in self._work.values():
            for indices, keys in work.groups(rows):
                sorted_rows = [rows[index] for index in indices]
                for place, function in work.functions:
                    column = made[place]
                    for index, value in zip(indices, function(sorted_rows, keys), strict=True):
                        column[index] = value
        return made


class _Sorted:
    """One partition and order of rows, and the functions that share it."""

    def __init__(self, spec: t.Spec, scope: Scope) -> None:
        self._partition = rows_of(spec.partition, scope)
        self._order = rows_of([value for value, _ in spec.order], scope)
        self._downs = [down for _, down in spec.order]
        self.functions: list[tuple[int, Function]] = []

    def groups(self, rows: Sequence[Row]) -> Iterator[tuple[list[int], list[Row]]]:
        """The places of each partition's rows in their order, and their keys in it."""
        groups: dict[Row, list[int]] = {}
        for index, key in enumerate(self._partition(rows)):
            groups.setdefault(key, []).append(index)
        keys = self._order(rows)
        for indices in groups.values():
            self._sort(indices, keys)
            yield indices, [keys[index] for index in indices]

    def _sort(self, indices: list[int], keys: Sequence[Row]) -> None:
        """Sort places by their keys, nulls first where it ascends."""
        if not any(self._downs) and not any(None in keys[index] for index in indices):
            indices.sort(key=keys.__getitem__)
            return
        for at in range(len(self._downs) - 1, -1, -1):
            indices.sort(
                key=lambda index: (keys[index][at] is not None, keys[index][at]),
                reverse=self._downs[at],
            )


Function = Callable[[Sequence[Row], Sequence[Row]], Sequence[Any]]


def _function(call: t.Call, spec: t.Spec, scope: Scope) -> Function:
    """The function of a window, over sorted rows and their keys."""
    if call.name == "row_number":
        return lambda rows, keys: range(1, len(rows) + 1)
    if call.name in ("lag", "lead"):
        column = column_of(call.args[0], scope)
        if call.name == "lag":
            return lambda rows, keys: [None, *column(rows[:-1])]
        return lambda rows, keys: [*column(rows[1:]), None]
    if call.name not in _TOTALS:
        raise SqlError(f"SQL: {call.name} is no function over a window here")
    take, totals = _argument(call, scope), _TOTALS[call.name]
    framed = _framed(spec)
    return lambda rows, keys: framed(totals(take(rows)), keys)


def _framed(spec: t.Spec) -> Callable[[list[Any], Sequence[Row]], Sequence[Any]]:
    """The value of each sorted row's frame, out of the totals of all rows."""
    frame = spec.frame
    if not spec.order:
        return lambda totals, keys: [totals[-1]] * len(keys)
    if frame is not None and not frame.by_value:
        first, end = 1 + frame.end, frame.end or None
        return lambda totals, keys: totals[first:end]
    distance = 0 if frame is None else frame.end

    def by_value(totals: list[Any], keys: Sequence[Row]) -> Sequence[Any]:
        return [totals[end] for end in (_ends(keys, distance) if distance else _peers(keys))]

    return by_value


def _ends(keys: Sequence[Row], distance: int) -> list[int]:
    """For each row the place behind the last row at a distance; nulls, the first, are at none."""
    nulls = sum(1 for (value,) in keys if value is None)
    values = [value for (value,) in keys[nulls:]]
    return [0] * nulls + [nulls + bisect_right(values, value + distance) for value in values]


def _peers(keys: Sequence[Row]) -> list[int]:
    """For each row the place behind the last row with an equal key."""
    ends = [len(keys)] * len(keys)
    for index in range(len(keys) - 2, -1, -1):
        ends[index] = ends[index + 1] if keys[index] == keys[index + 1] else index + 1
    return ends
