"""The rows of trace tables as Arrow's columns."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec.json import Encoder

from minicluster import trace

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]


def load_arrow() -> None:
    """Load what writes the trace now, so that the end does not wait for it."""
    import pyarrow as pa

    importlib.import_module("pyarrow.parquet")
    pa.array([0])  # the first array loads pandas, for 0.3 s


def arrow_table(table: str, rows: Sequence[Row]) -> pa.Table:
    """Rows as columns."""
    import pyarrow as pa

    columns = [
        column(kind, list(map(itemgetter(name), rows))) for name, kind in kinds_of(table).items()
    ]
    return pa.Table.from_arrays(columns, schema=schema_of(table))


def arrow_tables(table: str, rows: Iterable[Row], count: int) -> Iterator[pa.Table]:
    """Rows as columns, so many at a time."""
    left = iter(rows)
    while piece := list(islice(left, count)):
        yield arrow_table(table, piece)


def kinds_of(table: str) -> Mapping[str, str]:
    """The kind of each column of a table."""
    return {**trace.COMMON, **trace.TABLES[table]}


@cache
def schema_of(table: str) -> pa.Schema:
    """Arrow's schema of a table."""
    import pyarrow as pa

    return pa.schema({name: arrow_type(kind) for name, kind in kinds_of(table).items()})


def column(kind: str, values: Sequence[Any]) -> pa.Array:
    """A column of a kind (``trace.TABLES``), from values that may be lazy, or None.

    Errors:  TypeError, ValueError or OverflowError for a value that is not of this kind.
    """
    import pyarrow as pa

    if kind == "json":
        values = [v if v is None or isinstance(v, str) else _to_json(v) for v in values]
    try:
        return pa.array(values, type=arrow_type(kind))
    except (TypeError, ValueError):
        return pa.array(_cells(kind, values), type=arrow_type(kind))


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


def _cells(kind: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values of a column that Arrow does not take as they are, such as UUIDs."""
    match kind:
        case "int":
            return [v if v.__class__ is int or v is None else int(v) for v in values]
        case "str":
            return [v if v.__class__ is str or v is None else str(v) for v in values]
        case "ints":
            return [None if v is None else list(map(int, v)) for v in values]
    return values


def _to_json(value: Any) -> str:
    return _encoded(value).decode()


# A third of the time that ``json`` takes. The hook is called for numbers of a class of their own.
_encoded = Encoder(enc_hook=int).encode
