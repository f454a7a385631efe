"""The columns of trace tables as Arrow's arrays, laid out here: validity bits, offsets, values.

``pyarrow.array`` and ``pyarrow.scalar`` load pandas, which takes 44 MB and holds up the actor that
happens to make the first column for 0.3 s.

Source:  Arrow's columnar format, variable-size binary and list layouts.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def column(kind: str, values: Sequence[Any]) -> pa.Array:
    """A column of a kind (``trace.TABLES``), from values that may be lazy, or None.

    Errors:  TypeError or ValueError for a value that is not of this kind.
    """
    import pyarrow as pa

    if values.count(None) == len(values):
        return pa.nulls(len(values), arrow_type(kind))
    return _COLUMNS[kind](values)


def repeated(kind: str, value: Any, count: int) -> pa.Array:
    """A column of one value."""
    import pyarrow as pa

    return pa.repeat(column(kind, [value])[0], count)


def arrow_type(kind: str) -> pa.DataType:
    """Arrow's type of a kind of column."""
    import pyarrow as pa

    types: Mapping[str, pa.DataType] = {
        "int": pa.int64(),
        "str": pa.string(),
        "bool": pa.bool_(),
        "ints": pa.list_(pa.int64()),
        "json": pa.string(),
    }
    return types[kind]


def text_column(encoded: Sequence[bytes], validity: pa.Buffer | None = None) -> pa.Array:
    """A column of texts, from their bytes in UTF-8."""
    import pyarrow as pa

    return pa.Array.from_buffers(
        pa.string(),
        len(encoded),
        [validity, _offsets(map(len, encoded)), pa.py_buffer(b"".join(encoded))],
    )


def _ints(values: Sequence[int | None]) -> pa.Array:
    import pyarrow as pa

    validity = None
    try:
        content = array("q", map(int, values))  # type: ignore[arg-type]
    except TypeError:
        content = array("q", [0 if value is None else int(value) for value in values])
        validity = _validity(values)
    return pa.Array.from_buffers(pa.int64(), len(values), [validity, pa.py_buffer(content)])


def _texts(values: Sequence[Any]) -> pa.Array:
    encoded = [b"" if value is None else str(value).encode() for value in values]
    return text_column(encoded, _validity(values))


def _json_texts(values: Sequence[Any]) -> pa.Array:
    return _texts([v if v is None or isinstance(v, str) else _to_json(v) for v in values])


def _bools(values: Sequence[bool | None]) -> pa.Array:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(values), [_validity(values), _bits(values)])


def _lists(values: Sequence[Sequence[int] | None]) -> pa.Array:
    import pyarrow as pa

    content = array("q", [int(one) for value in values if value is not None for one in value])
    numbers = pa.Array.from_buffers(pa.int64(), len(content), [None, pa.py_buffer(content)])
    offsets = _offsets(0 if value is None else len(value) for value in values)
    return pa.Array.from_buffers(
        arrow_type("ints"), len(values), [_validity(values), offsets], children=[numbers]
    )


_COLUMNS: Mapping[str, Callable[[Sequence[Any]], pa.Array]] = {
    "int": _ints,
    "str": _texts,
    "bool": _bools,
    "ints": _lists,
    "json": _json_texts,
}

_to_json = json.JSONEncoder(separators=(",", ":")).encode


def _offsets(sizes: Iterable[int]) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(array("i", accumulate(sizes, initial=0)))


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    """Which values there are; None where all are."""
    if None not in values:
        return None
    return _bits([value is not None for value in values])


def _bits(values: Sequence[Any]) -> pa.Buffer:
    """A bit for each value, the first one the lowest."""
    import pyarrow as pa

    text = "".join(["1" if value else "0" for value in reversed(values)])
    return pa.py_buffer(int(text, 2).to_bytes((len(values) + 7) // 8, "little"))
