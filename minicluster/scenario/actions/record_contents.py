"""The contents of records, as a test or a file writes them: values, keys, headers, timestamps.

Bytes that are not a text are ``{base64: gIE=}`` in a file, which has text alone.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from minicluster.errors import UserError
from minicluster.scenario.actions.arguments import Kind
from minicluster.scenario.checks import limits
from minicluster.scenario.checks.limits import checked_text, shown, whole_number

_BASE64 = "base64"
_TEXT = "text, bytes or null"


class HeadersOfOne(tuple[tuple[str, bytes | None], ...]):
    """The headers of one record that have been read: a list has those of several."""

    __slots__ = ()


def _content(value: object, where: str) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping) and [*value] == [_BASE64]:
        try:
            return base64.b64decode(value[_BASE64], validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise UserError(f"{where}: {shown(value[_BASE64])} is not base64") from None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UserError(f"{where}: {shown(value)} is not {_TEXT}")
    return checked_text(value if isinstance(value, str) else shown(value), where).encode()


def _written(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {_BASE64: base64.b64encode(content).decode()}


def is_list(value: object) -> bool:
    """An entry for each record, as opposed to one of all."""
    return isinstance(value, list | tuple) and not isinstance(value, HeadersOfOne)


def _contents(value: Any, where: str) -> tuple[bytes | None, ...]:
    """The values of records; one alone is that of one record."""
    items = value if is_list(value) else (value,)
    return tuple(_content(item, where) for item in items)


def _keys(value: Any, where: str) -> bytes | tuple[bytes | None, ...] | None:
    """A key of all records, or a list with one for each."""
    return _contents(value, where) if is_list(value) else _content(value, where)


def _headers(value: Any, where: str) -> HeadersOfOne | tuple[HeadersOfOne, ...]:
    """Headers of all records, or a list with those of each."""
    if not is_list(value) or (value and all(map(_is_pair, value))):
        return _headers_of_one(value, where)
    return tuple(_headers_of_one(item, where) for item in value)


def _headers_of_one(value: Any, where: str) -> HeadersOfOne:
    if isinstance(value, HeadersOfOne):
        return value
    pairs = list(value.items()) if isinstance(value, Mapping) else [] if value is None else value
    if not isinstance(pairs, list | tuple) or not all(map(_is_pair, pairs)):
        raise UserError(f"{where}: {shown(value)} is not {HEADERS.text}")
    return HeadersOfOne(
        (checked_text(name, where), _content(content, f"{where}: {name}"))
        for name, content in pairs
    )


def _is_pair(item: object) -> bool:
    return isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str)


def _headers_written(headers: HeadersOfOne | tuple[HeadersOfOne, ...]) -> Any:
    if not isinstance(headers, HeadersOfOne):
        return [_headers_written(one) for one in headers]
    pairs = [(name, _written(content)) for name, content in headers]
    unique = dict(pairs)
    return unique if len(unique) == len(pairs) else [list(pair) for pair in pairs]


def _timestamps(value: Any, where: str) -> int | tuple[int, ...]:
    """A time of all records, or a list with one for each."""
    if is_list(value):
        return tuple(whole_number(item, where, 0, limits.OFFSET_MAX) for item in value)
    return whole_number(value, where, 0, limits.OFFSET_MAX)


VALUES = Kind(
    "values",
    f"{_TEXT}, or a list of them",
    _contents,
    lambda values: [_written(value) for value in values],
)
KEYS = Kind(
    "keys",
    f"{_TEXT} for all records, or a list with one for each",
    _keys,
    lambda keys: [_written(key) for key in keys] if isinstance(keys, tuple) else _written(keys),
)
HEADERS = Kind(
    "headers",
    "names and values for all records, or a list with those of each",
    _headers,
    _headers_written,
)
TIMESTAMPS = Kind(
    "timestamps", "milliseconds for all records, or a list with those of each", _timestamps
)

Content = str | bytes | None
OneHeaders = Mapping[str, Content] | Sequence[tuple[str, Content]]
Values = Annotated[Content | Sequence[Content], VALUES]
Keys = Annotated[Content | Sequence[Content], KEYS]
Headers = Annotated[OneHeaders | Sequence[OneHeaders | None], HEADERS]
Timestamps = Annotated[int | Sequence[int], TIMESTAMPS]
