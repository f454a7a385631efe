"""Runs and logs judged in Spark, by the DataFrame API alone.

::

    scan        the tasks: a run, some runs, or a piece of a long log
    mapInArrow  each task reads its evidence: rows of events (``evidence_source``)
    exchange    by slot: each share of each run has one
    sort        by run, share, phase and place
    mapInArrow  the histories and rules of each share as its rows stream by (``judging_worker``)
    exchange    by run
    aggregate   counts are added up, a finding is there once

A log is shared among workers by its partitions; a run with a trace has one judge. A record is its
bytes, so Spark neither looks into it nor copies lists.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minicluster.errors import UserError, counted
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.locating import locate
from minicluster.trace import TABLES
from minicluster.verify.evidence.reading import named_paths
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.histories.snapshots import SnapshotFile
from minicluster.verify.judged import Judged
from minicluster.verify.judging import Judge, Tally
from minicluster.verify.model import Finding
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.rule import Rule
from minicluster.verify.spark.evidence_rows import SCHEMA, TIMED_SCHEMA, sql_of
from minicluster.verify.spark.evidence_source import (
    EvidenceReader,
    Item,
    Part,
    Request,
    Whole,
    is_plain,
    sizes_of,
)
from minicluster.verify.spark.judging_worker import FINDING, RESULT, Task, judge_rows
from minicluster.verify.spark.progress import OnProgress, Watch
from minicluster.verify.spark.travel import ship_package
from minicluster.verify.spark.workers import WorkerDied, worker_died, workers_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Of a log, for each of its judges. One more worker takes half a second of a processor to start,
# in which another judges so much.
SHARE_BYTES = 8 << 20
_TASKS_PER_WORKER = 4
_SLOTS_PER_WORKER = 16
_WEIGHTS = (0.3, 0.7)  # of reading and of judging in the progress that is shown, an estimate
_ORDER = ("run", "share", "phase", "place")
_KEYS = (*FINDING, "kind", "heading")


def judge_in_spark(
    spark: SparkSession,
    named: Sequence[tuple[Path, str]],
    task: Task,
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    origins: Sequence[str | None] | None = None,
    on_progress: OnProgress | None = None,
) -> list[Judged]:
    """Judge runs and logs in one job; a damaged long log takes another.

    Shapes:  named: paths on this machine, with the names of their runs. origins: the URIs of which
             they are copies.
    Errors:  UserError for a path that holds nothing to judge; WorkerDied.
    """
    items = items_of(spark, named, task, limits, origins)
    judged = _collected(spark, items, task, limits, on_progress)
    damaged = [replace(item, is_careful=True) for item in items if judged[item.name] is None]
    if damaged:
        judged |= _collected(spark, _in_order(damaged), task, limits, on_progress)
    done = [judged[item.name] for item in items]
    if (place := next((n for n, result in enumerate(done) if result is None), None)) is not None:
        raise UserError(f"{named[place][0]}: changed while it was read")
    return [result for result in done if result is not None]


def verdicts(spark: SparkSession, *paths: Path | str) -> tuple[DataFrame, DataFrame]:
    """The counts and the findings of all rules over runs and logs, as two data frames.

    Nothing is read before an action asks for rows; they are then cached, since both come from one
    reading.

    Shapes:  counts: run, rule, looked_at, not_promised, and rows with ``why``: a reason why
             something was exempt (looked_at: how often), why a rule crashed, or without a rule what
             is wrong with the evidence. findings: run, rule, offset, topic, partition, broker,
             message.
    Errors:  UserError for a path that holds nothing to judge.
    """
    from pyspark.sql import functions as f

    task = Task(RULES)
    with_names = named_paths(paths)
    items = items_of(spark, with_names, task, DEFAULT_LIMITS)
    added_up = results_of(spark, items, task, DEFAULT_LIMITS).cache()
    counts = added_up.where("kind not in ('finding', 'heading')").select(
        "run", "rule", "looked_at", "not_promised", f.col("message").alias("why")
    )
    findings = added_up.where("kind = 'finding'").select(*FINDING)
    return counts, findings


def items_of(
    spark: SparkSession,
    named: Sequence[tuple[Path, str]],
    task: Task,
    limits: ReadLimits,
    origins: Sequence[str | None] | None = None,
) -> list[Item]:
    """Each run with its shares: a long plain log has at most as many as there are workers.

    Errors:  UserError for a path that holds nothing to judge.
    """
    workers = workers_of(spark)
    folds = Judge("", task.every_rule).judges(SnapshotFile)
    items: list[Item] = []
    for place, (path, name) in enumerate(named):
        path = path.absolute()
        located = locate(path, partly=True, limits=limits)
        longest = max(sizes_of(located)) if is_plain(path, located) else 0
        shares = max(1, min(workers, -(-longest // SHARE_BYTES)))
        beside = folds and shares > 1 and any(log.checkpoints for log in located.logs)
        origin = None if origins is None else origins[place]
        items.append(Item(str(path), name, origin, 0, shares, beside))
    return _in_order(items)


def _in_order(items: Sequence[Item]) -> list[Item]:
    """The same, each with slots of its own."""
    slots = 0
    placed: list[Item] = []
    for item in items:
        placed.append(replace(item, first_slot=slots))
        slots += len(item.target.every)
    return placed


def tables_of(task: Task) -> tuple[str, ...]:
    """The tables of a trace that the rules need."""
    judge = Judge("", task.every_rule)
    named = {table for rule in task.every_rule for table in rule.tables}
    named |= {
        table
        for declared in task.histories
        if judge.judges(*declared.yields)
        for table in declared.reads
    }
    return tuple(table for table in TABLES if table in named)


def request_of(
    spark: SparkSession, items: Sequence[Item], limits: ReadLimits, tables: Sequence[str] = ()
) -> Request:
    """What is to be read of runs and logs, in as many tasks as suit the session."""
    return Request(tuple(items), limits, tuple(tables), _TASKS_PER_WORKER * workers_of(spark))


def evidence_of(spark: SparkSession, request: Request) -> DataFrame:
    """The events of runs and logs; each share is in one partition, in order.

    A Python data source would read the same, but Spark starts Python three times to plan one.
    """
    ship_package(spark)
    reader = EvidenceReader(request)
    tasks = pa.table({"task": [pickle.dumps(parts) for parts in _tasks(reader)]})
    schema = TIMED_SCHEMA if request.timed else SCHEMA

    def evidence(tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch["task"].to_pylist():
                for part in pickle.loads(task):
                    yield from reader.read(part)

    return (
        spark.createDataFrame(tasks)
        .mapInArrow(evidence, sql_of(schema))
        .repartitionById(_partitions(spark, request.items), "slot")
        .sortWithinPartitions(*_ORDER)
    )


def _tasks(reader: EvidenceReader) -> list[list[Part]]:
    """Parts of the evidence by the tasks that read them.

    The pieces of a log with one judge are one task, so that no other worker starts for them.
    """
    tasks: list[list[Part]] = []
    of_one_judge: dict[str, list[Part]] = {}
    for part in reader.partitions():
        if isinstance(part, Whole) or len(part.item.target.every) > 1:
            tasks.append([part])
        elif part.item.name in of_one_judge:
            of_one_judge[part.item.name].append(part)
        else:
            tasks.append(of_one_judge.setdefault(part.item.name, [part]))
    return tasks


def _partitions(spark: SparkSession, items: Sequence[Item]) -> int:
    """Of each exchange; what a session has set for others is too many for a few runs."""
    slots = sum(len(item.target.every) for item in items)
    return min(slots, _SLOTS_PER_WORKER * workers_of(spark))


def results_of(
    spark: SparkSession, items: Sequence[Item], task: Task, limits: ReadLimits
) -> DataFrame:
    """What the rules say of runs and logs, added up over the shares of each."""
    from pyspark.sql import functions as f

    pickled = task.pickled()

    def histories_and_rules(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return judge_rows(pickled, rows)

    request = request_of(spark, items, limits, tables_of(task))
    return (
        evidence_of(spark, request)
        .mapInArrow(histories_and_rules, sql_of(RESULT))
        .repartition(_partitions(spark, items), "run")
        .groupBy(*_KEYS)
        .agg(f.sum("looked_at").alias("looked_at"), f.sum("not_promised").alias("not_promised"))
    )


def _collected(
    spark: SparkSession,
    items: Sequence[Item],
    task: Task,
    limits: ReadLimits,
    on_progress: OnProgress | None,
) -> dict[str, Judged | None]:
    """The results of each run, None for one in which a reader has found damage.

    Errors:  UserError, WorkerDied.
    """
    slots = sum(len(item.target.every) for item in items)
    watch = Watch(f"judging {counted(len(items), 'run')}", on_progress, slots, _WEIGHTS)
    with watch.over(spark):
        metered = replace(task, meters=watch.folder)
        try:
            rows = results_of(spark, items, metered, limits).collect()
        except Exception as error:
            if worker_died(error):
                raise WorkerDied from None
            raise
    runs = {item.name: _Added(item.name, task.every_rule) for item in items}
    for row in rows:
        runs[row.run].add(row)
    return {name: added.judged() for name, added in runs.items()}


class _Added:
    """The rows of one run."""

    def __init__(self, name: str, rules: Sequence[Rule]) -> None:
        self._name = name
        self._run: Run | None = None
        self._problems: list[Problem] = []
        self._tallies = {rule.id: Tally.empty() for rule in rules}
        self._crashes: dict[str, str] = {}
        self._is_damaged = False

    def add(self, row: Any) -> None:
        """Take a row.

        Errors:  UserError where there is nothing to judge.
        """
        match row.kind:
            case "heading":
                self._run = pickle.loads(row.heading)
            case "rejected":
                kind, why = pickle.loads(row.heading)
                raise kind(why)
            case "damaged":
                self._is_damaged = True
            case "problem":
                self._problems.append(pickle.loads(row.heading))
            case "crash":
                self._crashes[row.rule] = row.message
            case "count":
                self._tallies[row.rule].looked_at = row.looked_at
                self._tallies[row.rule].not_promised = row.not_promised
            case "exempt":
                self._tallies[row.rule].exempt += Counter({row.message: row.looked_at})
            case "finding":
                finding = Finding(
                    run=self._name,
                    offset=row.offset,
                    rule=row.rule,
                    topic=row.topic,
                    partition=row.partition,
                    broker=row.broker,
                    message=row.message,
                    event=row.event,
                    earlier=row.earlier,
                    request=row.request,
                )
                self._tallies[row.rule].findings.append(finding)

    def judged(self) -> Judged | None:
        """The run and what the rules say of it."""
        if self._is_damaged or self._run is None:
            return None
        for tally in self._tallies.values():
            tally.findings.sort()
        run = replace(self._run, problems=(*self._run.problems, *self._problems))
        return Judged(run=run, tallies=self._tallies, crashes=self._crashes)
