"""The tables of a run's trace as they lie on disk, each checked before it is used.

A table that is missing, that has lost rows or columns, or whose cells cannot be read is damaged:
the rules that read it are *unknown*. Columns of another type, and numbers beyond a column's range,
are not tables of a run: one line, exit code 65.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from minicluster.trace import COMMON, INT32_COLUMNS, OPTIONAL_COLUMNS, REQUIRED, TABLES
from minicluster.verify.evidence.packed_rows import Packed, pack
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.run_header import NotARun

_INT32_MAX = 2**31 - 1
_PIECE = 10_000  # rows that are read at a time
ARROW_TYPES = {
    "int": pa.int64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "ints": pa.list_(pa.int64()),
    "json": pa.string(),
}


def file_damage(file: Path, table: str, rows: int | None) -> str | None:
    """The reason why a file is not the table that the run wrote; None if it may be.

    Shapes:  rows: as many as the run wrote, where that is recorded.
    Errors:  NotARun for a column of another type.
    """
    if not file.is_file():
        return f"{file}: there is no such file"
    try:
        with file.open("rb") as content:
            metadata = parquet.read_metadata(content)
        schema = metadata.schema.to_arrow_schema()
    except (OSError, pa.ArrowException) as error:
        return _unreadable(file, error)
    kinds = {"vt": COMMON["vt"], "seq": COMMON["seq"], **TABLES[table]}
    optional = OPTIONAL_COLUMNS.get(table, ())
    if lacks := [name for name in kinds if name not in (*schema.names, *optional)]:
        return f"{file}: there is no column {', '.join(lacks)}"
    for name, kind in kinds.items():
        if name not in schema.names:
            continue
        arrow_type = schema.field(name).type
        if not _fits(arrow_type, kind):
            raise NotARun(f"{file}: the column {name} is {arrow_type}, where a run has {kind}")
    if rows is not None and metadata.num_rows != rows:
        return f"{file}: {metadata.num_rows} rows, where the run wrote {rows}"
    return None


class DamagedTable(Exception):
    """A table of the trace cannot be read; the message is the reason."""


def read_table(file: Path, table: str, *, as_written: bool) -> Iterator[pa.Table]:
    """The rows of a table, some at a time.

    Shapes:  as_written: the file's digest is the run's, so its texts need no check.
    Errors:  DamagedTable, also behind rows that could be read; NotARun for a number beyond its
             column's range.
    """
    first = 0
    for read in _pieces_of(file):
        try:
            read.validate(full=True)
            for name in OPTIONAL_COLUMNS.get(table, ()):
                if name not in read.column_names:
                    read = read.append_column(name, pa.nulls(read.num_rows))
            columns = {
                name: read[name].cast(ARROW_TYPES[kind]) for name, kind in TABLES[table].items()
            }
            columns |= {name: read[name].cast(pa.int64()) for name in ("vt", "seq")}
        except pa.ArrowException as error:
            raise DamagedTable(_unreadable(file, error)) from None
        for name in REQUIRED[table]:
            if columns[name].null_count:
                row = pc.index(pc.is_null(columns[name]), True).as_py()
                raise DamagedTable(f"{file}: {name} is null in row {first + row}")
        for name in INT32_COLUMNS & columns.keys():
            _check_range(file, name, columns[name])
        if not as_written:
            for name, kind in TABLES[table].items():
                row = _no_json(columns[name]) if kind == "json" else None
                if row is not None:
                    raise DamagedTable(f"{file}: {name} is no JSON in row {first + row}")
        yield pa.table(columns)
        first += read.num_rows


def trace_rows(
    run: Run, table: str, columns: str | None = None, keep: pc.Expression | None = None
) -> list[dict[str, Any]]:
    """Some rows of a table by ``seq``, or all of a small one; none where it is missing or damaged.

    Shapes:  columns: their names, ``seq`` among them; all where none are given.
    """
    names = None if columns is None else columns.split()
    try:
        with run.trace[table].open("rb") as content:
            rows = parquet.read_table(content, columns=names, filters=keep).to_pylist()
    except (OSError, ValueError, KeyError):
        return []
    return sorted(rows, key=lambda row: row["seq"])


def _pieces_of(file: Path) -> Iterator[pa.Table]:
    """The file as it is, some rows at a time: all of them may be some gigabytes.

    Errors:  DamagedTable.
    """
    try:
        # A dataset would start threads for each table, and Arrow opens no name that the locale's
        # encoding lacks.
        with file.open("rb") as content, parquet.ParquetFile(content) as opened:
            for batch in opened.iter_batches(_PIECE, use_threads=False):
                yield pa.Table.from_batches([batch])
    except (OSError, pa.ArrowException) as error:
        raise DamagedTable(_unreadable(file, error)) from None


def read_packed(file: Path, table: str, *, as_written: bool) -> list[Packed]:
    """The rows of a table, packed.

    Errors:  as ``read_table``.
    """
    pieces: list[Packed] = []
    for some in read_table(file, table, as_written=as_written):
        pieces += pack(some)
    return pieces


def _fits(arrow_type: pa.DataType, kind: str) -> bool:
    if pa.types.is_null(arrow_type):
        return True
    if kind == "int":
        return bool(pa.types.is_integer(arrow_type))
    if kind == "bool":
        return bool(pa.types.is_boolean(arrow_type))
    if kind == "ints":
        is_list = pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)
        return is_list and _fits(arrow_type.value_type, "int")
    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def _check_range(file: Path, name: str, column: pa.ChunkedArray) -> None:
    values = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    bounds = pc.min_max(values)
    for value in (bounds["min"].as_py(), bounds["max"].as_py()):
        if value is not None and not -_INT32_MAX <= value <= _INT32_MAX:
            raise NotARun(f"{file}: the column {name} holds {value}, which is no 32-bit number")


def _no_json(column: pa.ChunkedArray) -> int | None:
    """The first row whose text is not a JSON object or list."""
    for row, text in enumerate(column.to_pylist()):
        if text is not None and not _is_json(text):
            return row
    return None


def _is_json(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def _unreadable(file: Path, error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{file}: cannot be read: {lines[0]}"
