"""Aggregates, over groups and over windows.

Windows over the same keys share one sort.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from minicluster.verify.engine import tree as t
from minicluster.verify.engine.expressions import Evaluate, Row, Scope, compiled, row_of
from minicluster.verify.engine.parser import SqlError

Step = Callable[[Any, Any], Any]


def _max_by(held: Any, value: Any) -> Any:
    if value[1] is None:
        return held
    return value if held is None or value[1] >= held[1] else held


# Function -> its first value, and the step that takes one more.
_STEPS: dict[str, tuple[Any, Step]] = {
    "last": (None, lambda held, value: held if value is None else value),
    "first": (None, lambda held, value: value if held is None else held),
    "any_value": (None, lambda held, value: value if held is None else held),
    "min": (
        None,
        lambda held, value: (
            held if value is None else value if held is None or value < held else held
        ),
    ),
    "max": (
        None,
        lambda held, value: (
            held if value is None else value if held is None or value > held else held
        ),
    ),
    "sum": (None, lambda held, value: held if value is None else (held or 0) + value),
    "count": (0, lambda held, value: held if value is None else held + 1),
    "count_if": (0, lambda held, value: held + 1 if value else held),
    "bool_or": (None, lambda held, value: held if value is None else bool(held or value)),
    "max_by": (None, _max_by),
}
AGGREGATES = frozenset(_STEPS)


def _argument(call: t.Call, scope: Scope) -> Evaluate:
    """The function from a row to the value that an aggregate takes."""
    if call.name == "max_by":
        return row_of(call.args, scope)
    if isinstance(call.args[0], t.Star):
        return lambda row: True
    return compiled(call.args[0], scope)


def aggregate(call: t.Call, scope: Scope) -> Callable[[Sequence[Row]], Any]:
    """A function from the rows of a group to the value of an aggregate.

    Errors:  SqlError.
    """
    take = _argument(call, scope)
    begin, step = _STEPS[call.name]
    if call.distinct:
        return lambda rows: len({value for value in map(take, rows) if value is not None})

    def over(rows: Sequence[Row]) -> Any:
        held = begin
        for value in map(take, rows):
            held = step(held, value)
        return held[0] if call.name == "max_by" and held is not None else held

    return over


class Windows:
    """Values of window functions over the rows of one select."""

    def __init__(self, windows: Sequence[t.Window], named: dict[str, t.Spec], scope: Scope) -> None:
        self._work: dict[tuple[Any, ...], tuple[Evaluate, Any, list[Any]]] = {}
        for place, window in enumerate(windows):
            spec = named[window.spec] if isinstance(window.spec, str) else window.spec
            key = (spec.partition, spec.order)
            if key not in self._work:
                order = [(compiled(value, scope), down) for value, down in spec.order]
                self._work[key] = row_of(spec.partition, scope), order, []
            self._work[key][2].append((place, _function(window.call, spec, scope)))
        self._count = len(windows)

    def columns(self, rows: Sequence[Row]) -> list[list[Any]]:
        """A column for each window, in the order of the rows."""
        made: list[list[Any]] = [[None] * len(rows) for _ in range(self._count)]
        for partition, order, functions in self._work.values():
            groups: dict[Row, list[int]] = {}
            for index, key in enumerate(map(partition, rows)):
                groups.setdefault(key, []).append(index)
            for indices in groups.values():
                keys = _sort(indices, rows, order)
                sorted_rows = [rows[index] for index in indices]
                for place, function in functions:
                    column = made[place]
                    for index, value in zip(indices, function(sorted_rows, keys), strict=True):
                        column[index] = value
        return made


def _sort(
    indices: list[int], rows: Sequence[Row], order: Sequence[tuple[Evaluate, bool]]
) -> list[Any]:
    """Sort places of rows, nulls first where it ascends; the keys in the new order."""
    keyed = [([_sortable(value(rows[index])) for value, _ in order], index) for index in indices]
    for at in range(len(order) - 1, -1, -1):
        keyed.sort(key=lambda one: one[0][at], reverse=order[at][1])
    indices[:] = [index for _, index in keyed]
    return [key for key, _ in keyed]


def _sortable(value: Any) -> tuple[bool, Any]:
    return value is not None, value


Function = Callable[[Sequence[Row], Sequence[Any]], Sequence[Any]]


def _function(call: t.Call, spec: t.Spec, scope: Scope) -> Function:
    """The function of a window, over sorted rows and their keys."""
    if call.name == "row_number":
        return lambda rows, keys: range(1, len(rows) + 1)
    if call.name in ("lag", "lead"):
        take = compiled(call.args[0], scope)
        if call.name == "lag":
            return lambda rows, keys: [None, *map(take, rows[:-1])]
        return lambda rows, keys: [*map(take, rows[1:]), None]
    if call.name not in _STEPS:
        raise SqlError(f"SQL: {call.name} is no function over a window here")
    take = _argument(call, scope)
    begin, step = _STEPS[call.name]
    ends = _ends(spec)

    def over(rows: Sequence[Row], keys: Sequence[Any]) -> Sequence[Any]:
        held = begin
        totals = [held]
        for value in map(take, rows):
            held = step(held, value)
            totals.append(held)
        if call.name == "max_by":
            totals = [one and one[0] for one in totals]
        return [totals[end] for end in ends(keys)]

    return over


def _ends(spec: t.Spec) -> Callable[[Sequence[Any]], Sequence[int]]:
    """The size of each sorted row's frame, in rows."""
    frame = spec.frame
    if not spec.order:
        return lambda keys: [len(keys)] * len(keys)
    if frame is not None and not frame.by_value:
        return lambda keys: range(1 + frame.end, len(keys) + 1 + frame.end)
    distance = 0 if frame is None else frame.end

    def by_value(keys: Sequence[Any]) -> Sequence[int]:
        if not distance:
            return _peers(keys)
        return [
            bisect_right(keys, [(True, key[0][1] + distance)]) if key[0][0] else 0 for key in keys
        ]

    return by_value


def _peers(keys: Sequence[Any]) -> list[int]:
    """For each row the place behind the last row with an equal key."""
    ends = [len(keys)] * len(keys)
    for index in range(len(keys) - 2, -1, -1):
        ends[index] = ends[index + 1] if keys[index] == keys[index + 1] else index + 1
    return ends
