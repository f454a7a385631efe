"""``spark.read.format("kraft-tables")``: tables of runs and logs that lie there as they are.

Internal: the views read it. A table is ``records`` of the committed log, ``snapshot_records``, one
of the trace, or one of ZooKeeper's log. A task reads some runs, or a piece of a long log, and gives
its rows at once: there is nothing to exchange. A run that lacks a table, or has a damaged one, adds
no row to it.

Source:  pyspark.sql.datasource.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import checked_snapshot
from minicluster.log.errors import LogError
from minicluster.log.format.limits import ReadLimits
from minicluster.log.segment import check_contents, read_segment, segment_name
from minicluster.protocol.errors import ProtocolError
from minicluster.trace import TABLES
from minicluster.verify.evidence.file_systems import at_hand
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.trace_tables import ARROW_TYPES as TRACE_TYPES
from minicluster.verify.evidence.trace_tables import DamagedTable, read_table
from minicluster.verify.spark.data_source import Wanted
from minicluster.verify.spark.evidence_rows import DamagedWhileShown, sql_of
from minicluster.verify.spark.evidence_source import (
    EvidenceReader,
    LogPiece,
    Part,
    Request,
    Rest,
    Whole,
)
from minicluster.verify.spark.rows import ARROW_TYPES, COLUMNS, Rows
from minicluster.zookeeper.log.columns import COLUMNS as ZNODE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT = "kraft-tables"
RECORDS, SNAPSHOT_RECORDS = "records", "snapshot_records"
_OF_LOGS = (RECORDS, SNAPSHOT_RECORDS)
_RECORD_NAMES = [name for name, _ in COLUMNS]
_FILE = segment_name(0)
_ZNODE_TYPES = {
    "text": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "ints": pa.list_(pa.int32()),
    "flag": pa.bool_(),
}


def schema_of(table: str) -> pa.Schema:
    """The columns of a table.

    Errors:  KeyError for a table that there is not.
    """
    run = {"run": pa.string()}
    if table in _OF_LOGS:
        return pa.schema(run | {name: ARROW_TYPES[name] for name in _RECORD_NAMES})
    if table in TABLES:
        columns = {name: TRACE_TYPES[kind] for name, kind in TABLES[table].items()}
        return pa.schema(run | {"vt": pa.int64(), "seq": pa.int64()} | columns)
    columns = {name: _ZNODE_TYPES[kind] for name, kind in ZNODE_COLUMNS[table].items()}
    return pa.schema(run | columns)


class TableSource(DataSource):
    """One table of runs and logs."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of the table."""
        return sql_of(schema_of(self.options["table"]))

    def reader(self, schema: StructType) -> TableReader:
        """Read what is there now."""
        return reader_of(Request.of_option(self.options["request"]), self.options["table"])


class TableReader(EvidenceReader, DataSourceReader):
    """A reader of a table that is held by one task for each run."""

    def __init__(self, request: Request, table: str) -> None:
        super().__init__(request)
        self._table = table
        self._schema = schema_of(table)

    def partitions(self) -> Sequence[Part]:
        """Several runs to a task; a log alone has neither trace nor znodes."""
        return [part for part in super().partitions() if isinstance(part, Whole)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some runs.

        Errors:  UserError where a path holds nothing to show.
        """
        if not isinstance(partition, Whole):
            return  # Spark asks once where there is no partition
        for item in partition.items:
            with at_hand(Path(item.path), item.origin) as path:
                run = read_run(path, item.name, self._request.limits)
                for columns in self._of_run(run):
                    yield self._named(run.name, columns)

    def _of_run(self, run: Run) -> Iterator[Sequence[pa.Array]]:
        if self._table in run.trace:
            written = (run.header and run.header.written) or {}
            as_written = f"trace/{self._table}.parquet" in written
            try:
                pieces = list(
                    read_table(run.trace[self._table], self._table, as_written=as_written)
                )
            except DamagedTable:
                return
            for piece in pieces:
                for batch in piece.to_batches(max_chunksize=2_000):
                    yield [batch.column(name) for name in self._schema.names[1:]]
        elif self._table in ZNODE_COLUMNS:
            rows = list(run.znode_rows(self._table))
            schema = pa.schema(list(self._schema)[1:])
            yield pa.RecordBatch.from_pylist(rows, schema).columns

    def _named(self, run: str, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        names = pa.array([run] * len(columns[0]), pa.string())
        return pa.RecordBatch.from_arrays([names, *columns], schema=self._schema)


class RecordReader(TableReader):
    """A reader of the committed log or of the snapshots beside it; it applies filters itself."""

    def __init__(self, request: Request, table: str) -> None:
        super().__init__(request, table)
        self._wanted = Wanted()
        self._rows = Rows(_RECORD_NAMES)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters on offset and type; leave the others to Spark."""
        for pushed in filters:
            if not self._wanted.take(pushed):
                yield pushed

    def partitions(self) -> Sequence[Part]:
        """Several short runs to a task, long logs in pieces."""
        parts = EvidenceReader.partitions(self)
        return [part for part in parts if not isinstance(part, self._left_out)]

    @property
    def _left_out(self) -> type[InputPartition]:
        return Rest if self._table == RECORDS else LogPiece

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a part of the evidence.

        Errors:  UserError where a path holds nothing to show; DamagedWhileShown.
        """
        match partition:
            case Rest(item, logs):
                with at_hand(Path(item.path), item.origin) as path:
                    for log in logs.facts:
                        for end, _, file in log.snapshots:
                            here = path / file.relative_to(item.path)
                            yield from self._of_snapshot(item.name, end, here, self._request.limits)
            case LogPiece(item, _):
                try:
                    yield from self._of(item.name, self._committed(partition), _FILE)
                except (LogError, ProtocolError) as error:
                    raise DamagedWhileShown(f"{item.name}: {error}") from None
            case _:
                yield from super().read(partition)

    def _committed(self, part: LogPiece) -> Iterator[RecordBatch]:
        piece = part.piece
        for placed in self._batches(part.item, piece):
            batch = placed.batch
            if piece.committed_to is not None and batch.base_offset < piece.committed_to:
                check_contents(piece.segment, placed)
                yield batch

    def _of_run(self, run: Run) -> Iterator[Sequence[pa.Array]]:
        if self._table == RECORDS:
            yield from (part.columns for part in self._decoded(run.committed, _FILE, None))
            return
        for log in run.nodes:
            for end, _, file in log.snapshots:
                batches = _of_file(file, log.files.limits)
                yield from (part.columns for part in self._decoded(batches, file.name, end))

    def _of_snapshot(
        self, run: str, end: int, file: Path, limits: ReadLimits
    ) -> Iterator[pa.RecordBatch]:
        yield from self._of(run, _of_file(file, limits), file.name, end)

    def _of(
        self, run: str, batches: Iterable[RecordBatch], file: str, end: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        for part in self._decoded(batches, file, end):
            yield self._named(run, part.columns)

    def _decoded(
        self, batches: Iterable[RecordBatch], file: str, end: int | None
    ) -> Iterator[pa.RecordBatch]:
        yield from self._rows.of(batches, file=file, snapshot_end=end, keep=self._wanted.keeper())


def _of_file(file: Path, limits: ReadLimits) -> Iterator[RecordBatch]:
    content = read_segment(file, whole=True, limits=limits)
    checked_snapshot(content)
    return (placed.batch for placed in content.batches)


def reader_of(request: Request, table: str) -> TableReader:
    """The reader of a table."""
    return (RecordReader if table in _OF_LOGS else TableReader)(request, table)


def options_of(request: Request, table: str) -> dict[str, str]:
    """The options by which the source reads a table."""
    return {"request": request.option(), "table": table}
