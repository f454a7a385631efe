"""Runs and logs judged in Spark, by the DataFrame API alone.

::

    scan        the tasks: a run, some runs, or a piece of a long log
    mapInArrow  each task reads its evidence: rows of events (``evidence_source``)
    exchange    by slot: each run has one
    sort        by run, phase and place
    mapInArrow  the histories and rules of each run as its rows stream by (``judging_worker``)

A log is one fold. A record is its bytes, so Spark neither looks into it nor copies lists.
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
)
from minicluster.verify.spark.judging_worker import FINDING, RESULT, Task, judge_rows
from minicluster.verify.spark.progress import OnProgress, Watch
from minicluster.verify.spark.travel import ship_package
from minicluster.verify.spark.workers import WorkerDied, worker_died, workers_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASKS_PER_WORKER = 4
_SLOTS_PER_WORKER = 16
_WEIGHTS = (0.3, 0.7)  # of reading and of judging in the progress that is shown, an estimate
_ORDER = ("run", "phase", "place")


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
    items = items_of(named, limits, origins)
    judged = _collected(spark, items, task, limits, on_progress)
    damaged = [item for item in items if judged[item.name] is None]
    damaged = [replace(item, slot=n, is_careful=True) for n, item in enumerate(damaged)]
    if damaged:
        judged |= _collected(spark, damaged, task, limits, on_progress)
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
    items = items_of(with_names, DEFAULT_LIMITS)
    results = results_of(spark, items, task, DEFAULT_LIMITS).cache()
    counts = results.where("kind not in ('finding', 'heading')").select(
        "run", "rule", "looked_at", "not_promised", f.col("message").alias("why")
    )
    findings = results.where("kind = 'finding'").select(*FINDING)
    return counts, findings


def items_of(
    named: Sequence[tuple[Path, str]],
    limits: ReadLimits,
    origins: Sequence[str | None] | None = None,
) -> list[Item]:
    """Each run, with a slot of its own.

    Errors:  UserError for a path that holds nothing to judge.
    """
    items: list[Item] = []
    for slot, (path, name) in enumerate(named):
        locate(path.absolute(), partly=True, limits=limits)
        items.append(Item(str(path.absolute()), name, origins[slot] if origins else None, slot))
    return items


def tables_of(task: Task) -> tuple[str, ...]:
    """The tables of a trace that the rules need."""
    judge = Judge("", task.every_rule)
    named = {table for rule in task.every_rule for table in rule.tables}
    named |= {
        table for declared in task.histories if declared.is_asked(judge) for table in declared.reads
    }
    return tuple(table for table in TABLES if table in named)


def request_of(
    spark: SparkSession, items: Sequence[Item], limits: ReadLimits, tables: Sequence[str] = ()
) -> Request:
    """What is to be read of runs and logs, in as many tasks as suit the session."""
    return Request(tuple(items), limits, tuple(tables), _TASKS_PER_WORKER * workers_of(spark))


def evidence_of(spark: SparkSession, request: Request) -> DataFrame:
    """The events of runs and logs; each run is in one partition, in order.

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
    """Parts of the evidence by the tasks that read them: a log, or some short runs."""
    tasks: list[list[Part]] = []
    of_log: dict[str, list[Part]] = {}
    for part in reader.partitions():
        if isinstance(part, Whole):
            tasks.append([part])
        elif part.item.name in of_log:
            of_log[part.item.name].append(part)
        else:
            tasks.append(of_log.setdefault(part.item.name, [part]))
    return tasks


def _partitions(spark: SparkSession, items: Sequence[Item]) -> int:
    """Of the exchange; what a session has set for others is too many for a few runs."""
    return min(len(items), _SLOTS_PER_WORKER * workers_of(spark))


def results_of(
    spark: SparkSession, items: Sequence[Item], task: Task, limits: ReadLimits
) -> DataFrame:
    """What the rules say of runs and logs."""
    pickled = task.pickled()

    def histories_and_rules(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return judge_rows(pickled, rows)

    request = request_of(spark, items, limits, tables_of(task))
    return evidence_of(spark, request).mapInArrow(histories_and_rules, sql_of(RESULT))


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
    watch = Watch(f"judging {counted(len(items), 'run')}", on_progress, len(items), _WEIGHTS)
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
