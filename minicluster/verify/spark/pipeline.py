"""Runs and logs judged in Spark, by the DataFrame API alone.

::

    list        the paths of what is to be read
    mapInArrow  the logs' batches as Kafka wrote them, a run as its folder (``log_source``)
    exchange    by run
    sort        by place in the log
    mapInArrow  the fold of each log, with the histories and rules (``judging_worker``)
    aggregate   cases, and findings, by run and rule

A log is one fold: many logs are spread over a cluster, one of them is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minicluster.errors import UserError, counted
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.verify.evidence.reading import named_paths, read_run
from minicluster.verify.evidence.run import Run
from minicluster.verify.judged import Judged
from minicluster.verify.judging import Tally
from minicluster.verify.log_rows import Item
from minicluster.verify.model import Finding
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.rule import Rule
from minicluster.verify.spark.judging_worker import (
    COUNTS,
    FINDING,
    RESULT,
    Task,
    judge_rows,
    run_of,
)
from minicluster.verify.spark.jvm import SparkUnavailable
from minicluster.verify.spark.log_source import ORDER, SCHEMA, listed, scan_logs, sql_of
from minicluster.verify.spark.progress import OnProgress, watched
from minicluster.verify.spark.travel import ship_package

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITIONS_PER_WORKER = 16
_WORKERS_MAX = 16


class WorkerDied(SparkUnavailable):
    """A process that judged was ended from outside, most likely for want of memory."""

    def __init__(self) -> None:
        super().__init__(
            "Spark: a worker was ended while it judged, most likely for want of memory; what a run "
            "takes: docs/reference/speed.md, Memory"
        )


def judge_in_spark(
    spark: SparkSession,
    named: Sequence[tuple[Path, str]],
    task: Task,
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    origins: Sequence[str | None] | None = None,
    on_progress: OnProgress | None = None,
) -> list[Judged]:
    """Judge runs and logs in one job.

    Shapes:  named: paths on this machine, with the names of their runs. origins: the URIs of which
             they are copies.
    Errors:  UserError for a path that holds nothing to judge; WorkerDied.
    """
    items = items_of(named, limits, origins)
    with watched(spark, f"judging {counted(len(items), 'run')}", on_progress):
        try:
            rows = results_of(spark, items, task, limits).collect()
        except Exception as error:
            if "Python worker exited unexpectedly" in str(error):
                raise WorkerDied from None
            raise
    rules = task.every_rule
    runs = {name: _Added(path, name, rules, limits) for path, name in named}
    for row in rows:
        runs[row.run].add(row)
    return [added.judged() for added in runs.values()]


def verdicts(spark: SparkSession, *paths: Path | str) -> tuple[DataFrame, DataFrame]:
    """The counts and the findings of all rules over runs and logs, as two data frames.

    Nothing is read before an action asks for rows; they are then cached, since both come from one
    reading.

    Shapes:  counts: run, rule, looked_at, not_promised, and rows with ``why``: a reason why
             something was exempt (looked_at: how often), or why a rule crashed. findings: run,
             rule, offset, topic, partition, broker, message.
    Errors:  UserError for a path that holds nothing to judge.
    """
    from pyspark.sql import functions as f

    items = items_of(named_paths(paths), DEFAULT_LIMITS)
    results = results_of(spark, items, Task.of(RULES), DEFAULT_LIMITS).cache()
    counts = results.where("kind not in ('finding', 'run')").select(
        "run", "rule", "looked_at", "not_promised", f.col("message").alias("why")
    )
    findings = results.where("kind = 'finding'").select(*FINDING)
    return counts, findings


def items_of(
    named: Sequence[tuple[Path, str]],
    limits: ReadLimits,
    origins: Sequence[str | None] | None = None,
) -> list[Item]:
    """What is to be read.

    Errors:  UserError for a path that holds nothing to judge.
    """
    every = origins or [None] * len(named)
    return [
        Item.at(path.absolute(), name, limits, origin)
        for (path, name), origin in zip(named, every, strict=True)
    ]


def logs_of(spark: SparkSession, items: Sequence[Item], limits: ReadLimits) -> DataFrame:
    """Runs and logs as rows, each of them in one partition and in order."""
    ship_package(spark)

    def scan(items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return scan_logs(limits, items)

    return (
        spark.createDataFrame(listed(items))
        .mapInArrow(scan, sql_of(SCHEMA))
        .repartition(min(len(items), _PARTITIONS_PER_WORKER * workers_of(spark)), "run")
        .sortWithinPartitions(*ORDER)
    )


def workers_of(spark: SparkSession) -> int:
    """The number of workers at the same time; a client of Spark Connect cannot see it."""
    if not hasattr(spark, "_jsc"):
        return 2
    return max(1, min(_WORKERS_MAX, spark.sparkContext.defaultParallelism))


def results_of(
    spark: SparkSession, items: Sequence[Item], task: Task, limits: ReadLimits
) -> DataFrame:
    """The outcomes of the rules about runs and logs."""
    from pyspark.sql import functions as f

    def fold_log(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return judge_rows(task, limits, rows)

    found = logs_of(spark, items, limits).mapInArrow(fold_log, sql_of(RESULT))
    keys = [name for name in RESULT.names if name not in COUNTS]
    return found.groupBy(*keys).agg(*(f.sum(name).alias(name) for name in COUNTS))


class _Added:
    """The rows of one run."""

    def __init__(self, path: Path, name: str, rules: Sequence[Rule], limits: ReadLimits) -> None:
        self._path, self._name, self._limits = path, name, limits
        self._run: Run | None = None
        self._tallies = {rule.id: Tally.empty() for rule in rules}
        self._crashes: dict[str, str] = {}

    def add(self, row: Any) -> None:
        """Take a row.

        Errors:  UserError where there is nothing to judge.
        """
        match row.kind:
            case "run":
                self._run = run_of(self._name, self._path, self._limits, row.message)
            case "rejected":
                read_run(self._path, self._name, self._limits)  # raises what the worker has met
                raise UserError(row.message)
            case "crash":
                self._crashes[row.rule] = row.message
            case "count":
                self._tallies[row.rule].looked_at = row.looked_at
                self._tallies[row.rule].not_promised = row.not_promised
            case "exempt":
                self._tallies[row.rule].exempt += Counter({row.message: row.looked_at})
            case "finding":
                place = {name: getattr(row, name) for name in FINDING}
                self._tallies[row.rule].findings.append(Finding(**place))

    def judged(self) -> Judged:
        """The run and what the rules say of it."""
        if self._run is None:
            raise UserError(f"{self._path}: changed while it was read")
        for tally in self._tallies.values():
            tally.findings.sort()
        return Judged(run=self._run, tallies=self._tallies, crashes=self._crashes)
