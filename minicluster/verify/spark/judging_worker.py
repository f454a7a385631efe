"""The worker's side: histories and rules over the rows of evidence, as they stream by.

A task gets the rows of some shares of runs, one share after the other, each in order. The records
of a log are folded as they come, so that memory is bounded by the cluster that the log describes.
The trace of a run is held while it is judged, packed as its readers have packed it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import decode_snapshot
from minicluster.log.committed_log import NodeLog, Start, committed_log
from minicluster.log.errors import LogError
from minicluster.own_folders import OwnFolder, temporary_folder
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import PartitionChangeRecord, decode_record
from minicluster.values import dataclass
from minicluster.verify.evidence.operations import Entry, Operation, OperationDivider
from minicluster.verify.evidence.operations import History as Operations
from minicluster.verify.evidence.packed_rows import Packed, PackedRows
from minicluster.verify.evidence.run import Run
from minicluster.verify.histories.batches import ControllerLogs, Copies, copied_batch, releases
from minicluster.verify.histories.committed_log import CommittedLog
from minicluster.verify.histories.images import ImageFold, images
from minicluster.verify.histories.partitions import Change, Sets
from minicluster.verify.histories.releases import Releases
from minicluster.verify.histories.snapshots import SnapshotFile
from minicluster.verify.histories.timeline import Timeline
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge, Tally
from minicluster.verify.promises import promises_of
from minicluster.verify.rules.every import HISTORIES
from minicluster.verify.rules.rule import Rule
from minicluster.verify.spark.evidence_rows import (
    CHANGE,
    KEY,
    NODE,
    RECORD,
    SUBJECT,
    EventRow,
    Heading,
    Phase,
    RecordsOfBatch,
    batch_of,
    by_phase,
)
from minicluster.verify.spark.progress import Meter

RESULT = pa.schema(
    {
        "run": pa.string(),
        "kind": pa.string(),  # count, exempt, finding, crash, problem, heading, rejected, damaged
        "rule": pa.string(),
        "looked_at": pa.int64(),
        "not_promised": pa.int64(),
        "offset": pa.int64(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "broker": pa.int32(),
        "event": pa.int64(),
        "earlier": pa.int64(),
        "request": pa.int64(),
        "message": pa.string(),  # of a finding; why something is exempt, crashed, or a problem
        "heading": pa.binary(),  # the run without its contents
    }
)
_PLACE = ("offset", "topic", "partition", "broker", "event", "earlier", "request")
FINDING = ("run", "rule", *_PLACE, "message")
_SETS_MAX = 20_000  # of changes whose fields are remembered
_OF_A_CHANGE = (-1, -1)  # nobody asks where the log is clean before one
_METER_ROWS = 20_000  # between two marks of how far a run is


@dataclass(frozen=True, slots=True)
class Task:
    """What workers judge by.

    Shapes:  rules: of this package. own_rules, own_histories: of a user's file, not of a module
             that a worker could import. meters: the folder in which each slot leaves how far it is.
    """

    rules: tuple[Rule, ...]
    own_rules: tuple[Rule, ...] = ()
    own_histories: tuple[History, ...] = ()
    own_module: ModuleType | None = None
    meters: Path | None = None

    @property
    def histories(self) -> tuple[History, ...]:
        """All histories, of which those without a rule cost nothing."""
        return (*HISTORIES, *self.own_histories)

    @property
    def every_rule(self) -> tuple[Rule, ...]:
        """All rules."""
        return (*self.rules, *self.own_rules)

    def pickled(self) -> bytes:
        """The task for workers; what is a user's own goes by value."""
        own = (tuple(map(_parts_of, self.own_rules)), self.own_histories)
        if self.own_module is None:
            return pickle.dumps((self.rules, pickle.dumps(own), self.meters))
        from pyspark import cloudpickle

        by_value: Any = cloudpickle
        by_value.register_pickle_by_value(self.own_module)
        return pickle.dumps((self.rules, by_value.dumps(own), self.meters))


def _parts_of(rule: Rule) -> Mapping[str, Any]:
    return vars(rule)


def _rule_of(parts: Mapping[str, Any]) -> Rule:
    rule = Rule.__new__(Rule)
    vars(rule).update(parts)
    return rule


@cache
def _task_of(pickled: bytes) -> Task:
    """The task as a worker has it; a worker judges for several of Spark's tasks."""
    rules, own, meters = pickle.loads(pickled)
    own_rules, own_histories = pickle.loads(own)
    return Task(rules, tuple(map(_rule_of, own_rules)), own_histories, None, meters)


def judge_rows(pickled: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Judge the runs whose rows these are, one after the other.

    Shapes:  rows of ``evidence_rows.SCHEMA``, in order -> rows of ``RESULT``.
    """
    task = _task_of(pickled)
    judging: _Judging | None = None
    for run, slot, phase, rows in by_phase(batches):
        if judging is None or judging.run != run:
            if judging is not None:
                yield judging.result()
            judging = _Judging(task, run, slot)
        judging.take(phase, rows)
    if judging is not None:
        yield judging.result()


class _Judging:
    """One run.

    Shapes:  fold: that of the log up to its snapshots, if it has any.
    """

    def __init__(self, task: Task, run: str, slot: int) -> None:
        self.run = run
        self._task = task
        self._meter = Meter(None if task.meters is None else task.meters / str(slot))
        self._judge = Judge(run, task.every_rule)
        self._heading = Heading(run=None)
        self._is_damaged = False
        self._rows = self._rows_metered = 0
        self._timeline = Timeline()
        self._log: CommittedLog | None = None
        self._fold: _Fold | None = None
        self._logs = ControllerLogs(self._judge, Releases())
        self._begun: set[int] = set()
        self._copies = Copies(self._judge, copied_batch)
        self._divider = OperationDivider()
        self._operations: list[Operation] = []
        self._open_at: list[int] = []
        self._markers: list[tuple[int, str]] = []
        self._decoder = _Decoder(None)
        self._start: Start | None = None
        self._batches: dict[int, list[RecordBatch]] = {}
        self._committed: list[RecordBatch] = []
        self._snapshots: dict[tuple[int, str], bytes | None] = {}
        self._tables: dict[str, list[Packed]] = {}
        self._znodes: list[Any] = []

    @property
    def _is_held(self) -> bool:
        """It is a run, whose histories look back at all of it."""
        run = self._heading.run
        return run is not None and run.is_run

    def take(self, phase: int, rows: Iterable[EventRow]) -> None:
        """Take rows of one phase."""
        if self._is_damaged:
            return
        try:
            match phase:
                case Phase.HEADING:
                    self._begin(next(iter(rows))[RECORD])
                case Phase.DAMAGE:
                    self._is_damaged = True
                case Phase.START:
                    self._load(next(iter(rows)))
                case Phase.RECORD:
                    self._take_records(rows)
                case Phase.BATCH:
                    self._take_batches(rows)
                case Phase.END:
                    self._committed += (batch_of(row[RECORD]) for row in rows)
                    if self._fold is not None:
                        self._fold.begin_at(self._committed[0].last_offset)
                case Phase.SNAPSHOT:
                    for row in rows:
                        self._snapshots[row[NODE], row[SUBJECT]] = row[RECORD]
                case Phase.TRACE:
                    for row in rows:
                        self._tables.setdefault(row[SUBJECT], []).append(pickle.loads(row[RECORD]))
                case Phase.ZNODES:
                    for row in rows:
                        self._znodes += pickle.loads(row[RECORD])
        except (LogError, ProtocolError):
            self._is_damaged = True  # who reads the run with more care finds the place

    def _begin(self, pickled: bytes) -> None:
        self._heading = heading = pickle.loads(pickled)
        run = heading.run
        if run is None or run.on_zookeeper:
            return
        if not self._is_held:
            ends = [end - 1 for log in heading.logs for end, _, _ in log.snapshots]
            self._fold = _Fold(ends) if ends and self._judge.judges(SnapshotFile) else None
        timeline = self._timeline if run.is_run else None
        self._log = CommittedLog(self._judge, promises_of(run.rules), timeline=timeline)
        self._logs = ControllerLogs(self._judge, self._log.cluster.releases)
        if self._fold is None and not self._is_held:
            self._decoder = _Decoder(self._log.partitions.sets_of)

    def _load(self, row: EventRow) -> None:
        assert self._heading.start is not None
        end, epoch, file = self._heading.start
        snapshot = decode_snapshot(row[RECORD], file)
        self._start = Start(end_offset=end, epoch=epoch, snapshot=snapshot, file=file)
        if self._fold is not None:
            self._fold.load(self._start)
        if self._log is not None:
            self._log.load(snapshot.records, end)

    # --- the committed log ------------------------------------------------------------------------

    def _take_records(self, rows: Iterable[EventRow]) -> None:
        decoded = self._decoder.decoded
        for row in rows:
            batches: list[RecordsOfBatch] = pickle.loads(row[RECORD])
            for ends, offsets, values, seen_from in batches:
                entries = [
                    Entry(offset, *decoded(value), *seen_from.get(offset, _OF_A_CHANGE))
                    for offset, value in zip(offsets, values, strict=True)
                ]
                self._take_entries(entries, ends)
                self._rows += len(entries)
                self._mark()

    def _take_entries(self, entries: list[Entry], ends: int) -> None:
        """What a batch completes takes effect."""
        divider = self._divider
        operation = divider.on_entries(ends, entries)
        for offset, kind in divider.markers:
            self._markers.append((offset, kind))
            if self._log is not None and offset >= self._begins_at:
                self._log.mark(offset, kind)
        divider.markers.clear()
        if divider.has_open_records and self._is_held:
            self._open_at.append(ends)
        if self._fold is not None:
            self._fold.take_batch(operation, ends, divider.has_open_records)
        if operation is not None:
            if self._is_held:
                self._operations.append(operation)
            if self._log is not None:
                self._log.take(operation)

    @property
    def _begins_at(self) -> int:
        return 0 if self._start is None else self._start.end_offset

    def _mark(self) -> None:
        """Leave the part that is done, now and then."""
        if self._rows - self._rows_metered < _METER_ROWS or (run := self._heading.run) is None:
            return
        self._rows_metered = self._rows
        expected = max(1, run.extent.records)
        self._meter.done(min(0.99, self._rows / expected))

    # --- what is beside it ------------------------------------------------------------------------

    def _take_batches(self, rows: Iterable[EventRow]) -> None:
        if self._heading.in_files:
            for row in rows:
                self._batches.setdefault(row[NODE], []).append(batch_of(row[RECORD]))
            return
        for row in rows:
            node, batch = row[NODE], batch_of(row[RECORD])
            if node not in self._begun:
                self._begun.add(node)
                begins_well = self._begins_well(node, batch.base_offset)
                self._logs.begin(node, begins_well=begins_well)
            self._logs.on_batch(node, batch)
            self._copies.on_copy(node, batch.leader_epoch, batch.base_offset, batch.crc)

    def _begins_well(self, node: int, offset: int) -> bool:
        """A log may begin at an offset."""
        for facts in self._heading.logs if offset else ():
            if facts.node == node and not facts.alone:
                return any(end >= offset for end, _, _ in facts.snapshots)
        return True

    def _evidence(self, folder: OwnFolder) -> Run:
        """The run with as much of its contents as histories read here."""
        run = self._heading.run
        assert run is not None
        logs: list[NodeLog] = []
        for facts in self._heading.logs:
            log = NodeLog(
                node=facts.node,
                files=facts.files,
                batches=tuple(self._batches.get(facts.node, ())),
                snapshots=facts.snapshots,
                alone=facts.alone,
                torn=facts.torn,
            )
            own = tuple(
                self._snapshot(folder, facts.node, *snapshot) for snapshot in facts.snapshots
            )
            alone = log.begins_well  # without its snapshots nobody could tell
            logs.append(replace(log, snapshots=own, alone=alone))
        committed = committed_log(logs)[0] if self._is_held else tuple(self._committed)
        return replace(
            run,
            nodes=tuple(logs),
            committed=committed,
            history=Operations(
                operations=tuple(self._operations),
                markers=tuple(self._markers),
                open_at=frozenset(self._open_at),
            ),
            start=self._start,
            znodes=tuple(self._znodes),
        )

    def _snapshot(
        self, folder: OwnFolder, node: int, end: int, epoch: int, file: Path
    ) -> tuple[int, int, Path]:
        """A snapshot as a file of this machine's, which histories read."""
        content = self._snapshots.get((node, file.name))
        path = folder.path / str(node) / file.name
        if content is not None:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return end, epoch, path

    # --- what has come out ------------------------------------------------------------------------

    def result(self) -> pa.RecordBatch:
        """The counts and findings, once all rows have come."""
        rows: list[Mapping[str, Any]]
        try:
            rows = self._judged() if not self._is_damaged and self._heading.run else []
        except (LogError, ProtocolError):
            self._is_damaged = True
        if self._is_damaged:
            why = "the log is damaged; verify finds the place and judges what is left"
            rows = [{"kind": "damaged", "message": why}]
        elif self._heading.rejected is not None:
            rejected = pickle.dumps(self._heading.rejected)
            rows = [{"kind": "rejected", "message": self._heading.rejected[1], "heading": rejected}]
        self._meter.done(1.0)
        return pa.RecordBatch.from_pylist([{"run": self.run, **row} for row in rows], RESULT)

    def _judged(self) -> list[Mapping[str, Any]]:
        judge, run = self._judge, self._heading.run
        self._copies.finish()
        assert run is not None
        with temporary_folder("judged") as folder:
            tables = {table: PackedRows(pieces) for table, pieces in self._tables.items()}
            evidence = self._evidence(folder)
            traced = TracedRun(evidence, tables, self._timeline, promises_of(run.rules))
            if self._log is not None:
                traced.provide(releases, self._log.cluster.releases)
            if self._fold is not None:
                self._fold.reach(2**63)
                traced.provide(images, self._fold.images())
            for history in self._task.histories:
                if run.is_run or not history.needs_trace:
                    history(traced, judge)
            judge.problems += traced.problems
        if self._fold is not None and self._fold.problem is not None:
            judge.problems.append(self._fold.problem)
        rows: list[Mapping[str, Any]] = [{"kind": "heading", "heading": pickle.dumps(run)}]
        for problem in judge.problems:
            pickled = pickle.dumps(problem)
            rows.append({"kind": "problem", "message": problem.why, "heading": pickled})
        for rule, why in judge.crashes.items():
            rows.append({"kind": "crash", "rule": rule, "message": why})
        for rule, tally in judge.tallies.items():
            rows += _rows_of(rule, tally)
        return rows


class _Decoder:
    """Decodes records; of changes of partitions, what many have in common once.

    Shapes:  sets_of: None where the receiver of the records needs all of each.
    """

    def __init__(self, sets_of: Callable[[PartitionChangeRecord], Sets] | None) -> None:
        self._sets_of = sets_of
        self._sets: dict[bytes, Sets] = {}  # by the bytes around the key

    def decoded(self, value: bytes) -> tuple[Any, int]:
        """A record, or a ``Change``, and its version.

        Errors:  ProtocolError.
        """
        if self._sets_of is None or value[:2] != CHANGE:
            versioned = decode_record(value)
            return versioned.record, versioned.version
        around = value[2:3] + value[KEY.stop :]
        sets = self._sets.get(around)
        if sets is None:
            record = decode_record(value).record
            assert isinstance(record, PartitionChangeRecord)
            if len(self._sets) >= _SETS_MAX:
                self._sets.clear()
            sets = self._sets[around] = self._sets_of(record)
        return Change(value[KEY], sets), value[2]


class _Fold(ImageFold):
    """Notes the fold wherever a snapshot ends.

    Shapes:  ends: the last offsets that snapshots hold.
    """

    def __init__(self, ends: Iterable[int]) -> None:
        super().__init__()
        self._ends = sorted(set(ends))
        self._is_open = False

    def take_batch(self, operation: Operation | None, ends: int, is_open: bool) -> None:
        """Apply what a batch that ends at an offset completes, if a snapshot ends behind it."""
        self.reach(ends)
        self._is_open = is_open
        if operation is not None and self._ends:
            self.take(operation)

    def reach(self, offset: int) -> None:
        """Note the digests of all that ends before an offset."""
        while self._ends and self._ends[0] < offset:
            self.note(self._ends.pop(0), is_open=self._is_open)


def _rows_of(rule: str, tally: Tally) -> Iterator[Mapping[str, Any]]:
    if tally.looked_at or tally.not_promised:
        counts = {"looked_at": tally.looked_at, "not_promised": tally.not_promised}
        yield {"kind": "count", "rule": rule, **counts}
    for why, times in tally.exempt.items():
        yield {"kind": "exempt", "rule": rule, "message": why, "looked_at": times}
    for finding in sorted(set(tally.findings)):
        yield {
            "kind": "finding",
            "rule": rule,
            "offset": finding.offset,
            "topic": finding.topic,
            "partition": finding.partition,
            "broker": finding.broker,
            "message": finding.message,
            "event": finding.event,
            "earlier": finding.earlier,
            "request": finding.request,
        }
