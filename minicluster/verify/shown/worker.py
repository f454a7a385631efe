"""The worker's side of the views: the rows of one table of the runs whose rows a task gets.

A log comes as its batches and is folded as they come; a run is read from its folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from minicluster.errors import UserError
from minicluster.log.checkpoint import checked_snapshot
from minicluster.log.committed_log import no_start
from minicluster.log.errors import LogError
from minicluster.log.format.limits import ReadLimits
from minicluster.log.segment import read_batches, segment_name
from minicluster.protocol.errors import ProtocolError
from minicluster.trace import TABLES
from minicluster.verify.evidence.file_systems import at_hand
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.trace_tables import ARROW_TYPES as TRACE_TYPES
from minicluster.verify.evidence.trace_tables import DamagedTable, read_table
from minicluster.verify.histories.timeline import Timeline
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.log_fold import HeldLogs, LogFold, Logs, fold_logs
from minicluster.verify.log_rows import Rejected, StreamedRun
from minicluster.verify.log_rows import Row as LogRow
from minicluster.verify.model import Evidence
from minicluster.verify.promises import promises_of
from minicluster.verify.quorum.controller_logs import leader_of
from minicluster.verify.shown import operations
from minicluster.verify.shown.states import STATE_TABLES, Row, ShownStates
from minicluster.verify.spark.rows import ARROW_TYPES, Rows
from minicluster.verify.whole import read_trace
from minicluster.zookeeper.log.columns import COLUMNS as ZNODE_COLUMNS

RECORDS, SNAPSHOT_RECORDS = "records", "snapshot_records"
QUORUM_LEADERS, CLIENT_OPERATIONS = "quorum_leaders", "client_operations"
_ROWS = 2_000  # of one batch that goes back to Spark
_FILE = segment_name(0)
_LEADERS = {"offset": pa.int64(), "ms": pa.int64(), "epoch": pa.int32(), "elected": pa.int32()}
_ZNODE_TYPES = {
    "text": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "ints": pa.list_(pa.int32()),
    "flag": pa.bool_(),
}


class CannotBeShown(UserError):
    """The states of a log are not known."""

    exit_code = 65


def schema_of(table: str) -> pa.Schema:
    """The columns of a table.

    Errors:  KeyError for a table that there is not.
    """
    return pa.schema({"run": pa.string(), **_columns(table)})


def _columns(table: str) -> Mapping[str, pa.DataType]:
    if table in (RECORDS, SNAPSHOT_RECORDS):
        return ARROW_TYPES
    if table in STATE_TABLES:
        return _types(STATE_TABLES[table].schema)
    if table == QUORUM_LEADERS:
        return _LEADERS
    if table == CLIENT_OPERATIONS:
        return _types(operations.SCHEMA)
    if table in TABLES:
        columns = {name: TRACE_TYPES[kind] for name, kind in TABLES[table].items()}
        return {"vt": pa.int64(), "seq": pa.int64(), **columns}
    of_znodes = ZNODE_COLUMNS[table].items()
    return {name: _ZNODE_TYPES[kind] for name, kind in of_znodes if name != "run"}


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def show_rows(
    table: str, limits: ReadLimits, runs: Iterable[tuple[str, Iterator[LogRow]]]
) -> Iterator[pa.RecordBatch]:
    """Make the rows of a table of some runs.

    Shapes:  runs: name, and its rows in order -> rows of the table's schema.
    Errors:  UserError where a path holds nothing to show; CannotBeShown.
    """
    schema = schema_of(table)
    for name, rows in runs:
        try:
            for batch in _of_run(table, StreamedRun(name, rows, limits), limits):
                names = pa.array([name] * batch.num_rows, pa.string())
                yield pa.RecordBatch.from_arrays([names, *batch.columns], schema=schema)
        except (Rejected, LogError, ProtocolError) as error:
            raise CannotBeShown(f"{name}: {error}") from None


def _of_run(table: str, streamed: StreamedRun, limits: ReadLimits) -> Iterator[pa.RecordBatch]:
    """The rows of a run, without its name, some at a time."""
    if (folder := streamed.folder) is None:
        yield from _of_logs(table, streamed)
        return
    with at_hand(Path(folder.path), folder.origin) as path:
        run = read_run(path, folder.name, limits)
        if table in TABLES:
            yield from _of_trace(table, run)
        elif table in ZNODE_COLUMNS:
            schema = pa.schema(_columns(table))
            yield pa.RecordBatch.from_pylist(list(run.znode_rows(table)), schema)
        elif table == CLIENT_OPERATIONS:
            yield from _batches(_operations(run), operations.SCHEMA)
        elif not run.on_zookeeper:
            yield from _of_logs(table, HeldLogs(run))


def _of_logs(table: str, logs: Logs) -> Iterator[pa.RecordBatch]:
    if table == RECORDS:
        batches = (batch for batch, _ in logs.steps() if batch is not None)
        yield from Rows().of(batches, file=_FILE)
    elif table == SNAPSHOT_RECORDS:
        for log in logs.run.nodes:
            for end, _, file in log.snapshots:
                content = logs.content(file)
                read = read_batches(file, content, whole=True, limits=log.files.limits)
                checked_snapshot(read)
                batches = (placed.batch for placed in read.batches)
                yield from Rows().of(batches, file=file.name, snapshot_end=end)
    elif table == QUORUM_LEADERS:
        yield from _batches(_leaders(logs), pa.schema(_LEADERS))
    elif table in STATE_TABLES:
        states = STATE_TABLES[table]
        yield from _batches(_states(states, logs), states.schema)


def _states(table: type[ShownStates], logs: Logs) -> Iterator[Row]:
    """Rows of committed states, as they are complete.

    Errors:  CannotBeShown.
    """
    run = logs.run
    if not run.foldable:
        raise CannotBeShown(f"{run.name}: {_why_unknown(run)}")
    config = {} if run.header is None else run.header.config
    static = {name: _text(value) for name, value in config.items()}
    states = table(static)
    fold = LogFold(Judge(run.name, ()), promises_of(run.rules), timeline=states)
    if run.start is not None:
        end = run.start.end_offset
        states.moments[end - 1] = run.start.snapshot.last_contained_log_timestamp
        fold.load(run.start.records, end)
    for batch in (batch for batch, _ in logs.steps() if batch is not None):
        states.moments |= () if batch.is_control else {o: ms for o, ms, _, _ in batch.contents()}
        fold.commit(batch)
        if not fold.has_open_records:
            states.moments.clear()
        yield from states.rows
        states.rows.clear()
    states.end()
    yield from states.rows


def _leaders(logs: Logs) -> Iterator[Row]:
    """The leaders of the quorum, as the control batches of any controller's log name them."""
    known: set[Row] = set()
    for batch in chain.from_iterable((b for _, b in copies) for _, copies in logs.steps()):
        if (leader := leader_of(batch)) is None:
            continue
        row = batch.base_offset, batch.records[0].timestamp, batch.leader_epoch, leader
        if row not in known:
            known.add(row)
            yield row


def _operations(run: Run) -> Iterator[Row]:
    timeline, promises = Timeline(), promises_of(run.rules)
    if not run.on_zookeeper:
        fold_logs(LogFold(Judge(run.name, ()), promises, timeline=timeline), HeldLogs(run))
    tables, _ = read_trace(run, operations.TABLES)
    return operations.client_operations(TracedRun(run, tables, timeline, promises))


def _of_trace(table: str, run: Run) -> Iterator[pa.RecordBatch]:
    """The rows of a table of the trace; one that is damaged has none."""
    written = (run.header and run.header.written) or {}
    as_written = f"trace/{table}.parquet" in written
    try:
        pieces = list(read_table(run.trace[table], table, as_written=as_written))
    except (DamagedTable, KeyError):
        return
    for piece in pieces:
        yield from piece.select(list(_columns(table))).to_batches(max_chunksize=_ROWS)


def _batches(rows: Iterable[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = iter(rows)
    while some := list(islice(rows, _ROWS)):
        columns = zip(*some, strict=True)
        arrays = [pa.array(cells, field.type) for cells, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _why_unknown(run: Run) -> str:
    """Why the states are unknown of a log that begins above 0 and has no snapshot before it."""
    of_log = (problem.why for problem in run.problems if problem.evidence is Evidence.LOG)
    return next(of_log, no_start(run.path, run.extent.first_offset))


def _text(value: Any) -> str:
    """A config of a run's header as Kafka's files have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
