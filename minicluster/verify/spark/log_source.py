"""``spark.read.format("kraft-logs")``: runs and logs as rows, ``readStream`` as a log grows.

Internal: the judge and the views read it; users have ``kraft``, a row for each record. A row here
is a batch as Kafka wrote it, beside what is known of its log (``log_rows``).

Source:  pyspark.sql.datasource.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec.structs import asdict
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.values import dataclass
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


@dataclass(frozen=True)
class Some(InputPartition):
    """Runs and logs that one task reads, one after the other."""

    items: tuple[Item, ...]


class LogSource(DataSource):
    """The logs of controllers."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of ``log_rows``."""
        return sql_of(SCHEMA)

    def reader(self, schema: StructType) -> LogReader:
        """Read what is there now."""
        return LogReader(json.loads(self.options["request"]))

    def streamReader(self, schema: StructType) -> LogStream:
        """Follow one controller's log as it grows."""
        return LogStream(self.options["path"], (), DEFAULT_LIMITS)


def options_of(items: Sequence[Item], limits: ReadLimits, *, tasks: int) -> dict[str, str]:
    """The options by which the source reads these, in at most so many tasks."""
    of_items = [asdict(item) for item in items]
    request = {"items": of_items, "limits": asdict(limits), "tasks": tasks}
    return {"request": json.dumps(request)}


class LogReader(DataSourceReader):
    """A reader of runs and logs."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._items = [Item(**item) for item in request["items"]]
        self._limits = ReadLimits(**request["limits"])
        self._tasks: int = request["tasks"]

    def partitions(self) -> Sequence[Some]:
        """Several runs to a task, where there are many."""
        several = -(-len(self._items) // self._tasks)
        starts = range(0, len(self._items), several)
        return [Some(tuple(self._items[start : start + several])) for start in starts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some runs."""
        assert isinstance(partition, Some)
        for item in partition.items:
            yield from arrow_batches(rows_of(item, self._limits))


class LogStream(KraftStream):
    """A reader that follows one controller's log: rows of batches alone."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of a part of the log."""
        assert isinstance(partition, Piece)
        yield from arrow_batches(
            Row("", batch.base_offset, 0, "batch", None, batch.encoded)
            for batch in batches_of(partition, self._limits)
        )


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
