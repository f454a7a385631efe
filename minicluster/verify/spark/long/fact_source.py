"""The tables of facts of a long plain log as a format of Spark's, some thousands of rows at a time.

Each task reads the whole log, piece by piece, and has the rows of its share of the partitions. So
memory is bounded by the cluster that the log describes, and not by its length.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from minicluster.log.checkpoint import parse_checkpoint_name, read_checkpoint
from minicluster.log.directory import MetadataFiles
from minicluster.log.format.limits import ReadLimits
from minicluster.log.heads import batch_heads
from minicluster.verify.evidence.operations import OperationDivider
from minicluster.verify.online.share import Share
from minicluster.verify.online.shared_records import records_of
from minicluster.verify.rules.promises import promises_of
from minicluster.verify.spark.facts import FactReader, arrow_columns, batch_row
from minicluster.verify.spark.long.logs import LongLog, log_at_hand, log_batches
from minicluster.verify.spark.progress import Meter
from minicluster.verify.spark.schemas import SCHEMAS
from minicluster.verify.spark.tables import sql_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CHUNK_ROWS = 8_192
_OF_PARTITIONS = "partitions"
_Row = tuple[Any, ...]


def facts_frame(
    sql: SparkSession, log: LongLog, table: str, shares: int, limits: ReadLimits
) -> DataFrame:
    """One table of a log, by so many tasks where its rows are those of partitions."""
    sql.dataSource.register(FactSource)
    content = base64.b64encode(pickle.dumps((log, limits))).decode()
    count = shares if table == _OF_PARTITIONS else 1
    options = {"log": content, "table": table, "shares": str(count)}
    return sql.read.format(FactSource.name()).options(**options).load()


class FactSource(DataSource):
    """The tables of facts of a long log."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "minicluster_facts"

    def schema(self) -> str:
        """The columns of the table."""
        return sql_schema(SCHEMAS[self.options["table"]])

    def reader(self, schema: StructType) -> _FactsReader:
        """Read the log that is there now."""
        log, limits = pickle.loads(base64.b64decode(self.options["log"]))
        return _FactsReader(log, limits, self.options["table"], int(self.options["shares"]))


class _FactsReader(DataSourceReader):
    def __init__(self, log: LongLog, limits: ReadLimits, table: str, count: int) -> None:
        self._log = log
        self._limits = limits
        self._table = table
        self._count = count

    def partitions(self) -> Sequence[InputPartition]:
        """The shares."""
        return [InputPartition(index) for index in range(self._count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one share, in the order of the log."""
        share = Share(partition.value, self._count) if self._table == _OF_PARTITIONS else None
        with log_at_hand(self._log) as log:
            for rows in fact_rows(log, self._table, share, self._limits):
                columns = arrow_columns(self._table, rows)
                yield pa.RecordBatch.from_arrays(columns, schema=SCHEMAS[self._table])


def fact_rows(
    log: LongLog, table: str, share: Share | None, limits: ReadLimits
) -> Iterator[list[_Row]]:
    """The rows of one table as ``Facts`` has them, some thousands at a time.

    Shapes:  share: of the partitions, None for a table that has rows of none.
    """
    rows: Iterator[_Row] = iter(())
    if table == "batches":
        rows = (row for files in (log.files, *log.others) for row in _batches(log, files, limits))
    elif log.is_foldable:
        rows = _committed(log, table, share, limits)
    chunk: list[_Row] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) >= CHUNK_ROWS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _batches(log: LongLog, files: MetadataFiles, limits: ReadLimits) -> Iterator[_Row]:
    node = -1 if files.node_id is None else files.node_id
    begins_well = _begins_well(files)
    for pos, (_, placed) in enumerate(log_batches(files, limits, Meter(None))):
        yield batch_row(log.name, node, pos, placed.batch, begins_well=begins_well)


def _begins_well(files: MetadataFiles) -> bool:
    """It begins at 0, or a snapshot ends at its first offset or later (``NodeLog``)."""
    head = next(batch_heads(files.segments[0]), None) if files.segments else None
    if files.path.is_file() or head is None or head.base_offset == 0:
        return True
    names = [parse_checkpoint_name(file.name) for file in files.checkpoints]
    return any(name is not None and name[0] >= head.base_offset for name in names)


def _committed(log: LongLog, table: str, share: Share | None, limits: ReadLimits) -> Iterator[_Row]:
    rows: dict[str, list[_Row]] = {name: [] for name in SCHEMAS}
    reader = FactReader(log.name, promises_of(None), rows, is_run=False, share=share)
    divider = OperationDivider()
    skip_to = 0
    if log.start is not None:
        skip_to = log.start[0]
        reader.preload(read_checkpoint(log.start[2], limits).records, skip_to)
    for _, placed in log_batches(log.files, limits, Meter(None)):
        batch = placed.batch
        if log.end is not None and batch.base_offset >= log.end:
            break
        operation = divider.on_batch(batch, records_of(batch, share))
        if operation is not None and operation.end >= skip_to:
            reader.take(operation, skip_to)
        rows["transactions"] += [
            (log.name, offset, kind, None) for offset, kind in divider.markers if offset >= skip_to
        ]
        divider.markers.clear()
        yield from rows[table]
        for held in rows.values():
            held.clear()
    yield from rows[table]
