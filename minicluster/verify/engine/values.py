"""Values of SQL in Python: structs are named tuples, arrays lists, maps dicts, null is None."""

from __future__ import annotations

import json
import re
from collections import namedtuple
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

_INT_MAX = 2**31
_BIGINT_MAX = 2**63
Convert = Callable[[Any], Any]


@cache
def struct_type(names: tuple[str, ...]) -> Any:
    """The type of a struct with these fields."""
    return namedtuple("Struct", names)


@cache
def getter(name: str) -> Callable[[Any], Any]:
    """A field of a struct; null of a null struct."""
    return lambda value: None if value is None else getattr(value, name)


def cast(value: Any, kind: str, *, lenient: bool) -> Any:
    """A value as another type.

    Errors:  ValueError for a text that is no number, unless lenient.
    """
    if value is None:
        return None
    if kind in ("int", "bigint"):
        if not isinstance(value, str):
            return int(value)
        try:
            return int(value)
        except ValueError:
            if lenient:
                return None
            raise
    if kind == "string" and not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return value


# --- JSON -------------------------------------------------------------------------------------


def _number(bound: int) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return value if -bound <= value < bound else None

    return convert


def _text(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))


_SCALARS: dict[str, Convert] = {
    "int": _number(_INT_MAX),
    "bigint": _number(_BIGINT_MAX),
    "string": _text,
    "boolean": lambda value: value if isinstance(value, bool) else None,
}
_WORD = re.compile(r"\s*([A-Za-z_]\w*|[<>:,])")


class _Kinds:
    """Reads a type of Spark's DDL as a conversion of parsed JSON."""

    def __init__(self, text: str) -> None:
        self._words = _WORD.findall(text)
        self._at = 0

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _take(self) -> str:
        self._at += 1
        return str(self._words[self._at - 1])

    def top(self) -> Convert:
        """A type, or the columns of a struct."""
        if self._words[0].lower() in ("map", "array") and self._words[1] == "<":
            return self.kind()
        return self._struct("")

    def kind(self) -> Convert:
        """One type."""
        name = self._take().lower()
        if name in _SCALARS:
            return _SCALARS[name]
        self._take()  # <
        if name == "struct":
            found = self._struct(">")
        elif name == "array":
            found = _array(self.kind())
        else:
            self.kind()
            self._take()  # ,
            found = _map(self.kind())
        self._take()  # >
        return found

    def _struct(self, end: str) -> Convert:
        fields: dict[str, Convert] = {}
        while self._peek() != end:
            name = self._take()
            if self._peek() == ":":
                self._take()
            fields[name] = self.kind()
            if self._peek() == ",":
                self._take()
        return _struct(fields)


def _array(each: Convert) -> Convert:
    return lambda value: [each(one) for one in value] if isinstance(value, list) else None


def _map(each: Convert) -> Convert:
    return lambda value: (
        {key: each(one) for key, one in value.items()} if isinstance(value, dict) else None
    )


def _struct(fields: dict[str, Convert]) -> Convert:
    made = struct_type(tuple(fields))

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return None
        return made(*(each(value.get(name)) for name, each in fields.items()))

    return convert


@lru_cache(maxsize=256)
def _conversion(ddl: str) -> Convert:
    return _Kinds(ddl).top()


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def from_json(text: str | None, ddl: str) -> Any:
    """A JSON text as a value of a type; what does not fit is null."""
    return None if text is None else _conversion(ddl)(_parsed(text))


_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def get_json_object(text: str | None, path: str) -> str | None:
    """The value at a path (``$.a[0].b``) of a JSON text, as text."""
    value: Any = None if text is None else _parsed(text)
    for name, index in _STEP.findall(path):
        if name:
            value = value.get(name) if isinstance(value, dict) else None
        else:
            fits = isinstance(value, list) and int(index) < len(value)
            value = value[int(index)] if fits else None
    found: str | None = _text(value)
    return found
