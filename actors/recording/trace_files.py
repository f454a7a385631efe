"""The trace on disk: its tables as Parquet, and a shelf for the rows beyond the memory bound.

A table is written in row groups of one size. A long run puts its oldest rows on the shelf, a chunk
of that size at a time, so what is saved in the end is the same file, byte for byte, whether or not
anything was on the shelf (``tests/actors/test_long_runs.py``).
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster import trace

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
Refresh = Callable[[], Row]


class Shelf:
    """Rows in files of a temporary folder, which goes when the shelf does.

    Rows that may still change stay in memory besides, and are read from there.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._chunks: dict[str, list[tuple[Path, int, dict[int, Refresh]]]] = {}

    def put(self, table: str, rows: Sequence[Row], unsettled: dict[int, Refresh]) -> None:
        """Put a chunk away.

        Shapes:  unsettled: index in the chunk -> the row as it is when it is read.
        """
        from pyarrow import feather

        from minicluster.own_folders import temporary_folder

        if self._folder is None:
            own = temporary_folder("trace")
            weakref.finalize(self, own.remove)
            self._folder = own.path
        chunks = self._chunks.setdefault(table, [])
        path = self._folder / f"{table}-{len(chunks)}.arrow"
        feather.write_feather(arrow_table(table, rows), str(path), compression="zstd")
        chunks.append((path, len(rows), unsettled))

    def count(self, table: str) -> int:
        """The number of rows of a table on the shelf."""
        return sum(count for _, count, _ in self._chunks.get(table, ()))

    def chunks(self, table: str) -> Iterator[pa.Table]:
        """The chunks of a table that are here now, oldest first."""
        return (_read(table, *chunk) for chunk in tuple(self._chunks.get(table, ())))

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table that are here now, oldest first."""
        parsed = [name for name, kind in trace.TABLES[table].items() if kind == "json"]
        return (
            {**row, **{name: _from_json(row[name]) for name in parsed}}
            for chunk in self.chunks(table)
            for row in chunk.to_pylist()
        )


def _read(table: str, path: Path, count: int, unsettled: Mapping[int, Refresh]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import feather

    read = feather.read_table(str(path), memory_map=False)
    if unsettled:
        now = arrow_table(table, [refresh() for refresh in unsettled.values()])
        places = list(range(count))
        for number, index in enumerate(unsettled):
            places[index] = count + number
        read = pa.concat_tables([read, now]).take(places)
    return read.combine_chunks()


def write_table(
    path: Path, table: str, shelved: Iterable[pa.Table], rows: Iterable[Row], group_rows: int
) -> None:
    """Write a table as Parquet: whole chunks first, then rows, in groups of one size."""
    from pyarrow import parquet

    left = iter(rows)
    with parquet.ParquetWriter(path, _schema(table), compression="zstd") as writer:
        for chunk in shelved:
            writer.write_table(chunk)
        while group := list(islice(left, group_rows)):
            writer.write_table(arrow_table(table, group))


def arrow_table(table: str, rows: Sequence[Row]) -> pa.Table:
    """Rows as columns."""
    import pyarrow as pa

    schema = _schema(table)
    kinds = {**trace.COMMON, **trace.TABLES[table]}
    columns = [
        pa.array(_cells(kind, [row.get(name) for row in rows]), type=schema.field(name).type)
        for name, kind in kinds.items()
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _schema(table: str) -> pa.Schema:
    import pyarrow as pa

    types: dict[str, Any] = {
        "int": pa.int64(),
        "str": pa.string(),
        "bool": pa.bool_(),
        "ints": pa.list_(pa.int64()),
        "json": pa.string(),
    }
    kinds = {**trace.COMMON, **trace.TABLES[table]}
    return pa.schema({name: types[kind] for name, kind in kinds.items()})


def _cells(kind: str, values: list[Any]) -> list[Any]:
    """The values of a column as Arrow takes them: no enumerations, nothing lazy."""
    match kind:
        case "int":
            return [one if one.__class__ is int or one is None else int(one) for one in values]
        case "str":
            return [one if one.__class__ is str or one is None else str(one) for one in values]
        case "ints":
            return [None if one is None else list(map(int, one)) for one in values]
        case "json":
            return [one if one is None or isinstance(one, str) else _to_json(one) for one in values]
    return values


_to_json = json.JSONEncoder(separators=(",", ":")).encode


def _from_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
