"""The worker's side of the views: the rows of one table, as evidence streams by.

A task gets the rows of some runs, one after the other, each in order, as
``spark.judging_worker`` does; it keeps what the table keeps. A run's trace is held where the table
is about its clients.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from minicluster.log.checkpoint import decode_snapshot
from minicluster.log.committed_log import no_start
from minicluster.log.control import control_records
from minicluster.log.errors import LogError
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import LeaderChangeMessage, decode_record
from minicluster.values import dataclass
from minicluster.verify.evidence.operations import Entry, OperationDivider
from minicluster.verify.evidence.packed_rows import Packed, PackedRows
from minicluster.verify.evidence.run import Run
from minicluster.verify.histories.committed_log import CommittedLog
from minicluster.verify.histories.timeline import CommittedStates, Timeline
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence
from minicluster.verify.promises import promises_of
from minicluster.verify.shown import operations
from minicluster.verify.shown.states import STATE_TABLES, Moments, Row, ShownStates, columns_of
from minicluster.verify.spark.evidence_rows import (
    BATCH,
    ENDS,
    OFFSET,
    RECORD,
    SUBJECT,
    TIME,
    DamagedWhileShown,
    EventRow,
    Heading,
    Phase,
    batch_of,
    by_phase,
)

QUORUM_LEADERS, CLIENT_OPERATIONS = "quorum_leaders", "client_operations"
_ROWS = 2_000  # of one batch that goes back to Spark

_FIRST = (Phase.HEADING, Phase.DAMAGE)
_LOG = (*_FIRST, Phase.START, Phase.RECORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedTable:
    """A table that workers make of evidence.

    Shapes:  schema: without ``run``. phases, tables: the evidence that it is made of.
    """

    schema: pa.Schema
    phases: tuple[Phase, ...]
    tables: tuple[str, ...] = ()


FOLDED: Mapping[str, FoldedTable] = {
    **{
        name: FoldedTable(schema=states.schema, phases=_LOG)
        for name, states in STATE_TABLES.items()
    },
    QUORUM_LEADERS: FoldedTable(
        schema=pa.schema(
            {
                "offset": pa.int64(),
                "ms": pa.int64(),
                "epoch": pa.int32(),
                "elected": pa.int32(),
            }
        ),
        phases=(*_FIRST, Phase.BATCH),
    ),
    CLIENT_OPERATIONS: FoldedTable(
        schema=operations.SCHEMA, phases=(*_LOG, Phase.TRACE), tables=operations.TABLES
    ),
}


def with_run(schema: pa.Schema) -> pa.Schema:
    """The schema of a table of several runs."""
    return pa.schema([pa.field("run", pa.string()), *schema])


def show_rows(table: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make the rows of a table of the runs whose evidence this is, one after the other.

    Shapes:  rows of ``evidence_rows.TIMED_SCHEMA``, in order -> rows of the table's schema.
    Errors:  UserError where a path holds nothing to show; DamagedWhileShown.
    """
    showing: _Showing | None = None
    for run, _, phase, rows in by_phase(batches):
        if showing is None or showing.run != run:
            if showing is not None:
                yield from showing.rest()
            showing = _Showing(table, run)
        showing.take(phase, rows)
        while showing.is_full:
            yield showing.taken()
    if showing is not None:
        yield from showing.rest()


class _Showing:
    """One run."""

    def __init__(self, table: str, run: str) -> None:
        self.run = run
        self._table = table
        self._rows: list[Row] = []
        self._heading = Heading(run=None)
        self._moments = Moments()
        self._states: CommittedStates = Timeline()
        self._log: CommittedLog | None = None
        self._divider = OperationDivider()
        self._entries: list[Entry] = []
        self._batch = self._ends = -1
        self._leaders: set[Row] = set()
        self._trace: dict[str, list[Packed]] = {}

    @property
    def is_full(self) -> bool:
        """Many rows are complete."""
        return len(self._rows) >= _ROWS

    def take(self, phase: int, rows: Iterable[EventRow]) -> None:
        """Take rows of one phase.

        Errors:  UserError where there is nothing to show; DamagedWhileShown.
        """
        try:
            match phase:
                case Phase.HEADING:
                    self._begin(pickle.loads(next(iter(rows))[RECORD]))
                case Phase.DAMAGE:
                    raise DamagedWhileShown(f"{self.run}: {next(iter(rows))[RECORD].decode()}")
                case Phase.START:
                    self._load(next(iter(rows)))
                case Phase.RECORD:
                    self._take_records(rows)
                case Phase.BATCH:
                    self._take_batches(rows)
                case Phase.TRACE:
                    for row in rows:
                        self._trace.setdefault(row[SUBJECT], []).append(pickle.loads(row[RECORD]))
        except (LogError, ProtocolError) as error:
            raise DamagedWhileShown(f"{self.run}: {error}") from None

    def _begin(self, heading: Heading) -> None:
        self._heading = heading
        if heading.rejected is not None:
            kind, why = heading.rejected
            raise kind(why)
        run = heading.run
        if run is None or run.on_zookeeper:
            return
        states = STATE_TABLES.get(self._table)
        if states is None and not (self._table == CLIENT_OPERATIONS and run.is_run):
            return
        if heading.start is None and run.extent.first_offset > 0:
            raise DamagedWhileShown(f"{self.run}: {_why_unknown(run)}")
        promises = promises_of(run.rules)
        if states is not None:
            config = {} if run.header is None else run.header.config
            static = {name: _text(value) for name, value in config.items()}
            self._states = states(self._moments, static)
        judge = Judge(self.run, ())
        self._log = CommittedLog(judge, promises, timeline=self._states)

    def _load(self, row: EventRow) -> None:
        if self._log is None or self._heading.start is None:
            return
        end, _, file = self._heading.start
        snapshot = decode_snapshot(row[RECORD], file)
        self._moments.add(end - 1, snapshot.last_contained_log_timestamp)
        self._log.load(snapshot.records, end)
        self._moments.forget()
        self._collect()

    def _take_records(self, rows: Iterable[EventRow]) -> None:
        if self._log is None:
            return
        for row in rows:
            offset, batch = row[OFFSET], row[BATCH]
            if batch != self._batch:
                self._end_batch()
                self._batch, self._ends = batch, row[ENDS]
            versioned = decode_record(row[RECORD])
            self._moments.add(offset, row[TIME])
            record, version = versioned.record, versioned.version
            self._entries.append(Entry(offset, record, version, offset, offset))
        self._collect()

    def _end_batch(self) -> None:
        if not self._entries or self._log is None:
            return
        operation = self._divider.on_entries(self._ends, self._entries)
        self._entries = []
        self._divider.markers.clear()
        if operation is not None:
            self._log.take(operation)
        if not self._divider.has_open_records:
            self._moments.forget()

    def _take_batches(self, rows: Iterable[EventRow]) -> None:
        """The leaders of the quorum, as the control batches of any controller's log name them."""
        for row in rows:
            batch = batch_of(row[RECORD])
            controls = control_records(batch) if batch.is_control else ()
            first = controls[0].message if controls else None
            if not isinstance(first, LeaderChangeMessage):
                continue
            leader = batch.base_offset, batch.leader_epoch, first.leader_id
            if leader not in self._leaders:
                self._leaders.add(leader)
                offset, epoch, elected = leader
                self._rows.append((offset, batch.records[0].timestamp, epoch, elected))

    def _collect(self) -> None:
        if isinstance(self._states, ShownStates):
            self._rows += self._states.rows
            self._states.rows.clear()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What is complete once the evidence has ended.

        Errors:  DamagedWhileShown.
        """
        try:
            self._end_batch()
        except (LogError, ProtocolError) as error:
            raise DamagedWhileShown(f"{self.run}: {error}") from None
        if isinstance(self._states, ShownStates) and self._log is not None:
            self._states.end(self._log.cluster)
        self._collect()
        run = self._heading.run
        if self._table == CLIENT_OPERATIONS and run is not None and run.is_run:
            timeline = self._states if isinstance(self._states, Timeline) else Timeline()
            tables = {table: PackedRows(pieces) for table, pieces in self._trace.items()}
            traced = TracedRun(run, tables, timeline, promises_of(run.rules))
            self._rows += operations.client_operations(traced)
        while self._rows:
            yield self.taken()

    def taken(self) -> pa.RecordBatch:
        """Some of the rows that are complete, which are forgotten here."""
        rows, self._rows = self._rows[:_ROWS], self._rows[_ROWS:]
        schema = FOLDED[self._table].schema
        names = pa.array([self.run] * len(rows), pa.string())
        arrays = [names, *columns_of(rows, schema)]
        return pa.RecordBatch.from_arrays(arrays, schema=with_run(schema))


def _why_unknown(run: Run) -> str:
    """Why the states are unknown of a log that begins above 0 and has no snapshot before it."""
    of_log = (problem.why for problem in run.problems if problem.evidence is Evidence.LOG)
    return next(of_log, no_start(run.path, run.extent.first_offset))


def _text(value: Any) -> str:
    """A config of a run's header as Kafka's files have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
