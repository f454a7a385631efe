"""The functions of SQL that are called; operators are written out (``python_source``)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from minicluster.verify.engine.values import from_json, get_json_object


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Null where an argument is."""

    def one(value: Any) -> Any:
        return None if value is None else function(value)

    def two(left: Any, right: Any) -> Any:
        return None if left is None or right is None else function(left, right)

    return one if function in _UNARY else two


def _in(value: Any, *among: Any) -> Any:
    if value is None:
        return None
    if value in among:
        return True
    return None if None in among else False


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _concat(*values: Any) -> Any:
    if any(value is None for value in values):
        return None
    if isinstance(values[0], str):
        return "".join(values)
    return [one for value in values for one in value]


def _get(values: Any, index: Any) -> Any:
    if values is None or index is None or not 0 <= index < len(values):
        return None
    return values[index]


def _element_at(values: Any, key: Any) -> Any:
    if values is None or key is None:
        return None
    if isinstance(values, dict):
        return values.get(key)
    at = key - 1 if key > 0 else key + len(values)
    return values[at] if 0 <= at < len(values) else None


def _some(values: Any, test: Callable[[Any], Any]) -> Any:
    if values is None:
        return None
    seen = [test(value) for value in values]
    return True if True in seen else None if None in seen else False


def _every(values: Any, test: Callable[[Any], Any]) -> Any:
    if values is None:
        return None
    seen = [test(value) for value in values]
    return False if False in seen else None if None in seen else True


def _overlap(left: list[Any], right: list[Any]) -> Any:
    if any(value is not None and value in right for value in left):
        return True
    unsure = left and right and (None in left or None in right)
    return None if unsure else False


def _contains(values: list[Any], wanted: Any) -> Any:
    if wanted in values:
        return True
    return None if None in values else False


def _sorted(values: list[Any]) -> list[Any]:
    present = sorted(value for value in values if value is not None)
    return present + [None] * (len(values) - len(present))


def _greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)


def _words(separator: str, *values: Any) -> str:
    return separator.join(str(value) for value in values if value is not None)


def _of_array(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda values: (
        None
        if values is None
        else function((value for value in values if value is not None), default=None)
    )


def _position(values: list[Any], wanted: Any) -> int:
    return values.index(wanted) + 1 if wanted in values else 0


def _flatten(values: list[Any]) -> Any:
    if any(value is None for value in values):
        return None
    return [one for value in values for one in value]


_UNARY = (operator.neg, _distinct, _sorted, list, _flatten)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "negative": _strict(operator.neg),
    "in": _in,
    "greatest": _greatest,
    "array": lambda *values: list(values),
    "concat": _concat,
    "concat_ws": _words,
    "split": _strict(lambda text, sign: text.split(sign)),
    "get": _get,
    "try_element_at": _element_at,
    "array_contains": _strict(_contains),
    "array_except": _strict(lambda a, b: _distinct(value for value in a if value not in b)),
    "array_intersect": _strict(lambda a, b: _distinct(value for value in a if value in b)),
    "array_union": _strict(lambda a, b: _distinct([*a, *b])),
    "array_distinct": _strict(_distinct),
    "array_sort": _strict(_sorted),
    "array_max": _of_array(max),
    "array_min": _of_array(min),
    "array_position": _strict(_position),
    "arrays_overlap": _strict(_overlap),
    "flatten": _strict(_flatten),
    "map_keys": _strict(list),
    "transform": lambda values, each: None if values is None else [each(v) for v in values],
    "filter": lambda values, test: (
        None if values is None else [value for value in values if test(value) is True]
    ),
    "exists": _some,
    "forall": _every,
    "from_json": from_json,
    "get_json_object": get_json_object,
}
