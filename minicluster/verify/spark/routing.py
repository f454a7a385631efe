"""The way on which each run is judged, by the size of its evidence.

Most runs are short: a worker reads and folds one in some milliseconds. A plain log that is long is
judged by shares of its partitions. For a long run with a trace Spark plans its own queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.lazy_dataclass import dataclass
from minicluster.log.directory import locate
from minicluster.log.format.limits import ReadLimits
from minicluster.verify.evidence.reading import named_paths, read_run
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.source import Source
from minicluster.verify.spark import fold_job, planned
from minicluster.verify.spark.fold_job import Task
from minicluster.verify.spark.long_logs import LongLog, judge_logs, long_log
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT_LOG_BYTES = 1 << 20  # of each controller
SHORT_TRACE_BYTES = 4 << 20
_EAGER = 3  # so few runs are read for their report at once


class Way(Enum):
    """The way to judge a run."""

    FOLDED = "folded"
    SHARED = "shared"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Route:
    """One run and its way."""

    path: Path
    name: str
    way: Way
    long: LongLog | None = None


def routes_of(paths: Sequence[Path | str], limits: ReadLimits) -> list[Route]:
    """The way of each path.

    Errors:  UserError for a path that holds nothing to judge.
    """
    return [_route(path, name, limits) for path, name in named_paths(paths)]


def _route(path: Path, name: str, limits: ReadLimits) -> Route:
    located = locate(path.absolute(), partly=True, limits=limits)
    logs = [sum(file.stat().st_size for file in log.segments) for log in located.logs]
    trace = sum(file.stat().st_size for file in path.glob("trace/*.parquet"))
    if max(logs, default=0) <= SHORT_LOG_BYTES and trace <= SHORT_TRACE_BYTES:
        return Route(path, name, Way.FOLDED)
    if located.run_json is None and len(located.logs) == 1 and not trace:
        found = long_log(path, name, located.logs[0])
        if found is not None:
            return Route(path, name, Way.SHARED, found)
    return Route(path, name, Way.PLANNED)


def judge_routes(
    spark: SparkSession, routes: Sequence[Route], task: Task, tallies: Tallies, *, has_files: bool
) -> list[Run]:
    """Judge every run on its way; the runs come back in order.

    Shapes:  has_files: Spark reads the files that this process writes.
    Errors:  UserError for a path that is no run.
    """
    by_name: dict[str, Run] = {}
    folded = [(route.path, route.name) for route in routes if route.way is Way.FOLDED]
    for run in fold_job.judge_runs(spark, folded, task, tallies):
        by_name[run.name] = run
    if task.user is not None:  # neither shares nor Spark's plans have rules of a user's
        long = [(route.path, route.name) for route in routes if route.way is not Way.FOLDED]
        fold_job.judge_runs(spark, long, replace(task, rules=task.user.rules), tallies)
        task = replace(task, rules=tuple(r for r in task.rules if r not in task.user.rules))
    logs = [route.long for route in routes if route.long is not None]
    for log, judged in zip(logs, judge_logs(spark, logs, task, tallies), strict=True):
        if judged is not None:
            by_name[log.name] = judged
    planned_runs = [
        read_run(route.path, route.name, task.limits)
        for route in routes
        if route.name not in by_name
    ]
    if planned_runs:
        for run in planned.judge_runs(spark, planned_runs, task, tallies, has_files=has_files):
            by_name[run.name] = run
    return [by_name[route.name] for route in routes]


def sources_of(routes: Sequence[Route], limits: ReadLimits) -> list[Source]:
    """The evidence for the report; of few short runs it is read now, since it may go away.

    Errors:  UserError for a path that is no run, of which Spark need not be started.
    """
    sources = [Source(r.path, r.name, limits, is_long=r.way is not Way.FOLDED) for r in routes]
    if len(sources) <= _EAGER:
        for source in sources:
            source.hold()
    return sources
