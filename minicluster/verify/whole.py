"""The driver over a whole run in this process: no JVM, and Arrow for reading Parquet alone."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from pathlib import Path

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.committed_log import Start
from minicluster.log.format.limits import ReadLimits
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.rules import Rules
from minicluster.trace import TABLES
from minicluster.values import replace
from minicluster.verify.evidence.file_systems import at_hand
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Problem, Run, without_contents
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.histories.timeline import Timeline
from minicluster.verify.histories.traced_run import History, Rows, TracedRun
from minicluster.verify.judged import Judged
from minicluster.verify.judging import Judge
from minicluster.verify.log_fold import HeldLogs, LogFold, Logs, fold_logs, images_of
from minicluster.verify.log_rows import IN_ORDER, Item, Rejected, StreamedRun, rows_of
from minicluster.verify.model import Evidence
from minicluster.verify.promises import promises_of
from minicluster.verify.rules.every import HISTORIES
from minicluster.verify.rules.rule import Rule

Tables = Mapping[str, Rows]


def judge_whole(run: Run, rules: Sequence[Rule], own_histories: Sequence[History] = ()) -> Judged:
    """Judge a run that was read, with its trace from disk.

    Shapes:  own_histories: of a user's rules.
    """
    tables, problems = read_trace(run)
    run = replace(run, problems=(*run.problems, *problems))
    return _judged(run, judge_run(run, rules, tables, own_histories))


def judge_item(
    item: Item, rules: Sequence[Rule], own_histories: Sequence[History], limits: ReadLimits
) -> Judged:
    """Judge what is at a path, a log without holding what has been folded of it.

    Errors:  UserError for a path that holds nothing to judge.
    """
    rows = sorted(rows_of(item, limits), key=IN_ORDER)
    try:
        streamed = StreamedRun(item.name, iter(rows), limits)
    except Rejected as error:
        read_run(Path(item.path), item.name, limits)  # raises what the scan has met
        raise UserError(str(error)) from None
    return judge_rows_of(streamed, rules, own_histories)


def judge_rows_of(
    streamed: StreamedRun, rules: Sequence[Rule], own_histories: Sequence[History] = ()
) -> Judged:
    """Judge a log as its rows come, or the run that they name, which is read now.

    Shapes:  own_histories: of a user's rules.
    Errors:  UserError for a path that is not a run.
    """
    if (folder := streamed.folder) is not None:
        with at_hand(Path(folder.path), folder.origin) as path:
            run = read_run(path, folder.name, streamed.limits)
            return judge_whole(run, rules, own_histories)
    run = streamed.run
    return _judged(run, judge_run(run, rules, {}, own_histories, logs=streamed))


def _judged(run: Run, judge: Judge) -> Judged:
    run = replace(run, problems=(*run.problems, *judge.problems))
    return Judged(run=without_contents(run), tallies=judge.tallies, crashes=judge.crashes)


def judge_in_memory(
    name: str,
    rules: Sequence[Rule],
    batches: Sequence[RecordBatch],
    tables: Tables,
    *,
    played_by: Rules,
    protocol: InterBrokerProtocol | None = None,
    start: Start | None = None,
    cleaned: Collection[tuple[str, int]] = (),
    header: RunHeader | None = None,
) -> Judge:
    """Judge a run that is not on disk: its committed batches, and the rows of its trace.

    Shapes:  protocol: of a run on ZooKeeper, which has no batches. start: the snapshot from which
             its log begins. cleaned: partitions, by topic id, whose
             logs do not show any more what they held: their records are not judged. header: what
             else ``run.json`` would say, of programs and of when the run was disturbed last.
    """
    run = Run(
        name=name,
        path=Path(),
        header=replace(header or RunHeader(), rules=played_by, protocol=protocol),
        nodes=(),
        committed=tuple(batches),
        start=start,
        uncommitted=0,
    )
    return judge_run(run, rules, tables, cleaned=cleaned)


def read_trace(run: Run, names: Container[str] = TABLES) -> tuple[Tables, list[Problem]]:
    """The rows of a run's trace by table, and a problem for each that cannot be read."""
    from minicluster.verify.evidence.packed_rows import PackedRows
    from minicluster.verify.evidence.trace_tables import DamagedTable, read_packed

    tables: dict[str, Rows] = {}
    problems: list[Problem] = []
    written = (run.header and run.header.written) or {}
    for table, file in run.trace.items():
        if table not in names:
            continue
        as_written = f"trace/{table}.parquet" in written
        try:
            tables[table] = PackedRows(read_packed(file, table, as_written=as_written))
        except DamagedTable as error:
            problems.append(Problem(evidence=Evidence.TRACE, why=str(error), table=table))
    return tables, problems


def judge_run(
    run: Run,
    rules: Sequence[Rule],
    tables: Tables,
    own_histories: Sequence[History] = (),
    cleaned: Collection[tuple[str, int]] = (),
    logs: Logs | None = None,
) -> Judge:
    """Judge a run by its committed log, and by its trace if it has one.

    Shapes:  tables: the rows of the trace by table. cleaned: as in ``judge_in_memory``. logs: where
             its batches come from, if the run does not hold them.
    """
    judge = Judge(run.name, rules)
    timeline = Timeline() if run.is_run else None
    promises = promises_of(run.rules)
    fold = LogFold(judge, promises, timeline=timeline, images=images_of(judge, run))
    if not run.on_zookeeper:
        fold_logs(fold, logs or HeldLogs(run))
    traced = TracedRun(
        run, tables, timeline or Timeline(), promises, cleaned, fold.images, fold.epoch_starts
    )
    for history in (*HISTORIES, *own_histories):
        if run.is_run or not history.needs_trace:
            history(traced, judge)
    judge.problems += traced.problems
    return judge
