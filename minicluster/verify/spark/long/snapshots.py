"""Snapshots beside long plain logs (E34), each against the fold of the log up to its end.

One worker reads a log piece by piece, so memory is bounded by the cluster that it describes and not
by its length. What a metadata transaction has written counts once it ends.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import parse_checkpoint_name, read_checkpoint
from minicluster.log.errors import LogError
from minicluster.log.format.limits import ReadLimits
from minicluster.metadata.errors import ReplayError
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from minicluster.verify.engine.checks import Held, Views
from minicluster.verify.evidence.independent_fold import IndependentFold
from minicluster.verify.spark.fold_job import Task, in_workers
from minicluster.verify.spark.images import expected_content, snapshot_content
from minicluster.verify.spark.long.logs import LongLog, log_at_hand, log_batches
from minicluster.verify.spark.progress import Meter, Watch
from minicluster.verify.spark.tables import SNAPSHOT_SCHEMA, table_columns
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VIEW = "snapshot_states"
_Row = dict[str, Any]


def judge_snapshots(
    spark: SparkSession, logs: Sequence[LongLog], task: Task, tallies: Tallies
) -> None:
    """Judge the snapshots beside these logs in one job."""
    checks = [(rule, check) for rule in task.rules for check in rule.checks if check.view == _VIEW]
    logs = [
        log
        for log in logs
        if log.is_foldable and any(of.checkpoints for of in (log.files, *log.others))
    ]
    if not checks or not logs:
        return
    watch = Watch("folding logs up to their snapshots", task.on_progress, len(logs))
    with watch.over(spark):
        items = [
            pickle.dumps((log, task.limits, watch.meter_file(place)))
            for place, log in enumerate(logs)
        ]
        done = in_workers(spark, fold_up_to_snapshots, items)
    views = Views(task.views, table_columns())
    for log, one in zip(logs, done, strict=True):
        found: list[_Row] | str = pickle.loads(one)
        if isinstance(found, str):
            tallies.crashes[_VIEW] = found
            continue
        rows = [tuple(row.get(name) for name in SNAPSHOT_SCHEMA.names) for row in found]
        held = Held(views, lambda table: [], {"snapshots": rows})
        for rule, check in checks:
            judged = views.check(rule, check, held.rows(_VIEW))
            counts = judged.looked_at, judged.not_promised
            tallies.add_check(rule, check, log.name, counts, judged.findings)


def fold_up_to_snapshots(item: bytes) -> bytes:
    """The rows of one log's snapshots, in a worker.

    Shapes:  a ``LongLog``, limits, the file of its meter -> rows, or why there are none. Bytes that
             cannot be read end the fold: who judges the log reports them.
    """
    log, limits, meter_file = pickle.loads(item)
    try:
        with log_at_hand(log) as here:
            return pickle.dumps(_rows(here, limits, Meter(meter_file)))
    except ReplayError as error:
        return pickle.dumps(f"{log.name}: the log cannot be folded: {error}")


def _rows(log: LongLog, limits: ReadLimits, meter: Meter) -> list[_Row]:
    fold = _Fold(log, limits)
    expected: dict[int, _Row] = {}
    beside = {file: log_of for log_of in (log.files, *log.others) for file in log_of.checkpoints}
    named = {file: parse_checkpoint_name(file.name) for file in beside}
    ends = {name[0] for name in named.values() if name is not None}
    first: int | None = None
    try:
        for _, placed in log_batches(log.files, limits, meter):
            batch = placed.batch
            if log.end is not None and batch.base_offset >= log.end:
                break
            first = batch.last_offset if first is None else first
            fold.take(batch)
            if batch.next_offset in ends:
                expected[batch.next_offset] = expected_content(batch, fold.digest)
    except (LogError, ProtocolError):
        ends = {end for end in ends if end in expected}
    begins = max(fold.start, 0 if first is None else first)
    rows: list[_Row] = []
    for file, name in sorted(named.items()):
        if name is not None and (name[0] in ends or name[0] <= begins):
            node = -1 if beside[file].node_id is None else beside[file].node_id
            row = {"run": log.name, "node": node, "offset": name[0], "epoch": name[1]}
            row |= {"in_log": name[0] > begins} | expected.get(name[0], {})
            rows.append(row | snapshot_content(file, limits))
    return rows


class _Fold:
    """The fold of a log, batch by batch.

    Shapes:  start: the end of the snapshot from which the log goes on, 0 where it begins.
    """

    def __init__(self, log: LongLog, limits: ReadLimits) -> None:
        self.start = 0
        self.held: list[Any] | None = None  # the records of a metadata transaction that is open
        self.state = IndependentFold()
        if log.start is not None:
            self.start = log.start[0]
            self.state = IndependentFold(read_checkpoint(log.start[2], limits).records)

    def take(self, batch: RecordBatch) -> None:
        """Apply what a batch brings.

        Errors:  ReplayError, ProtocolError.
        """
        if batch.last_offset < self.start:
            return
        for versioned in batch.metadata_records:
            record = versioned.record
            if isinstance(record, BeginTransactionRecord):
                self.held = []
            elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
                held, self.held = self.held or [], None
                for one in held if isinstance(record, EndTransactionRecord) else ():
                    self.state.apply(one)
            elif self.held is not None:
                self.held.append(record)
            else:
                self.state.apply(record)

    @property
    def digest(self) -> str | None:
        """The digest of the state; None within a metadata transaction."""
        return None if self.held is not None else self.state.digest()
