"""Runs and logs as rows of Spark: read by tasks that get their places, or as a log grows.

Internal: the judge and the views read them; users have ``kraft``, a row for each record. A row here
is a batch as Kafka wrote it, beside what is known of its log (``log_rows``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec.structs import asdict
from pyspark.sql.datasource import DataSource, InputPartition

from minicluster.log.batch import RecordBatch
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.verify.log_rows import Item, Row, rows_of
from minicluster.verify.spark.data_source import KraftStream, Piece, batches_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT = "kraft-logs"
SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "place": pa.int64(),
        "log": pa.int32(),
        "kind": pa.string(),
        "about": pa.string(),
        "content": pa.binary(),
    }
)
ORDER = ("run", "place", "log")
_ITEM = pa.schema(
    {"path": pa.string(), "name": pa.string(), "is_run": pa.bool_(), "origin": pa.string()}
)
_BATCH_BYTES = 1 << 20
_SQL = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.list_(pa.int32()): "array<int>",
    pa.list_(pa.int64()): "array<bigint>",
    pa.list_(pa.string()): "array<string>",
}


def sql_of(schema: pa.Schema) -> str:
    """An Arrow schema as SQL has it."""
    return ", ".join(f"`{column.name}` {_SQL[column.type]}" for column in schema)


def listed(items: Sequence[Item]) -> pa.Table:
    """Runs and logs that are to be read, a row for each."""
    return pa.Table.from_pylist([asdict(item) for item in items], _ITEM)


def scan_logs(limits: ReadLimits, items: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the runs and logs that a task gets.

    Shapes:  rows of ``listed`` -> rows of ``SCHEMA``, each run's in any order.
    """
    for batch in items:
        for item in batch.to_pylist():
            yield from arrow_batches(rows_of(Item(**item), limits))


class LogSource(DataSource):
    """``readStream.format("kraft-logs")``: the batches of a log as it grows.

    Source:  pyspark.sql.datasource.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of ``log_rows``."""
        return sql_of(SCHEMA)

    def streamReader(self, schema: StructType) -> LogStream:
        """Follow one controller's log as it grows."""
        return LogStream(self.options["path"], (), DEFAULT_LIMITS)


class LogStream(KraftStream):
    """A reader that follows one controller's log: rows of batches alone."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of a part of the log."""
        assert isinstance(partition, Piece)
        yield from arrow_batches(
            Row("", batch.base_offset, 0, "batch", None, batch.encoded)
            for batch in batches_of(partition, self._limits)
        )


def batches_between(path: Path, start: int, end: int) -> Iterator[RecordBatch]:
    """The batches of a log from one offset to another, exclusive."""
    if start < end:
        log = LogStream(str(path), (), DEFAULT_LIMITS)
        for piece in log.partitions({"offset": start}, {"offset": end}):
            yield from batches_of(piece, DEFAULT_LIMITS)


def arrow_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows as Spark takes them, about a megabyte at a time."""
    some: list[Row] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row.content or b"") + 100
        if size >= _BATCH_BYTES:
            yield _arrow(some)
            some, size = [], 0
    if some:
        yield _arrow(some)


def _arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def by_run(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Iterator[Row]]]:
    """Sorted rows as a task gets them, run by run."""
    rows = (
        Row(*cells)
        for batch in batches
        for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    return groupby(rows, key=attrgetter("run"))
