"""The way on which each run is judged, by the size of its evidence.

Most runs are short: a worker reads and folds one in some milliseconds. The views of a long run are
shared between workers. A plain log that is long is judged by shares of its partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.lazy_dataclass import dataclass
from minicluster.log.directory import locate
from minicluster.log.format.limits import ReadLimits
from minicluster.verify.evidence.reading import named_paths
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.source import Source
from minicluster.verify.spark import fold_job
from minicluster.verify.spark.fold_job import Item, Task, workers_of
from minicluster.verify.spark.long.logs import LongLog, judge_logs, long_log
from minicluster.verify.spark.long.quorums import LongQuorum, compare_quorums
from minicluster.verify.spark.long.snapshots import judge_snapshots
from minicluster.verify.spark.long.user_rules import judge_user_rules
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT_LOG_BYTES = 1 << 20  # of each controller
SHORT_TRACE_BYTES = 256 << 10  # a second of one worker's time
DRAWN_TRACE_BYTES = 4 << 20
# Measured of workers that hold runs: MB for each MiB of a trace or of a log.
_MB_PER_TRACE_MIB, _MB_PER_LOG_MIB = 160, 190
_MUCH_MB = 1_000
_EAGER = 3  # so few runs are read for their report at once


@dataclass(frozen=True, slots=True)
class Route:
    """One run.

    Shapes:  origin: its URI on another file system, of which the path is a copy. is_short: one
             worker judges it. is_long: it is not drawn. long: its log, if shares of partitions
             judge it; quorum: its logs, which are compared before, or one without its start.
    Units:   held_mb: what a worker takes that holds it.
    """

    path: Path
    name: str
    origin: str | None = None
    is_short: bool = True
    is_long: bool = False
    long: LongLog | None = None
    quorum: LongQuorum | None = None
    held_mb: int = 0


def routes_of(
    paths: Sequence[Path | str],
    limits: ReadLimits,
    origin: Callable[[Path], str | None] = lambda path: None,
) -> list[Route]:
    """The way of each path; ``origin``: the URI of one that is a copy.

    Errors:  UserError for a path that holds nothing to judge.
    """
    return [_route(path, name, limits, origin(path)) for path, name in named_paths(paths)]


def _route(path: Path, name: str, limits: ReadLimits, origin: str | None) -> Route:
    located = locate(path.absolute(), partly=True, limits=limits)
    logs = [sum(file.stat().st_size for file in log.segments) for log in located.logs]
    trace = sum(file.stat().st_size for file in path.glob("trace/*.parquet"))
    if max(logs, default=0) <= SHORT_LOG_BYTES and trace <= SHORT_TRACE_BYTES:
        return Route(path, name, origin)
    is_long = max(logs, default=0) > SHORT_LOG_BYTES or trace > DRAWN_TRACE_BYTES
    long, quorum = None, None
    if located.run_json is None and not trace and not located.missing:
        if len(located.logs) == 1:
            long = long_log(path, name, located.logs[0], origin)
        if long is None:
            quorum = LongQuorum(path.absolute(), name, located.logs, origin)
    held_mb = (_MB_PER_TRACE_MIB * trace + _MB_PER_LOG_MIB * sum(logs)) >> 20
    return Route(path, name, origin, False, is_long, long, quorum, held_mb)


def judge_routes(
    spark: SparkSession, routes: Sequence[Route], task: Task, tallies: Tallies
) -> list[Run]:
    """Judge every run on its way; the runs come back in order.

    Errors:  UserError for a path that is no run.
    """
    logs = [route.long for route in routes if route.long is not None]
    quorums = [route.quorum for route in routes if route.quorum is not None]
    logs += [log for log in compare_quorums(spark, quorums, task) if log is not None]
    by_shares = {log.name for log in logs}
    judged = _judge_long(spark, logs, task, tallies)
    damaged = [_to_decode(one) for one in routes if one.name in by_shares - judged.keys()]
    compared = [log for log in compare_quorums(spark, damaged, task) if log is not None]
    by_name = judged | _judge_long(spark, compared, task, tallies)
    read = {log.name: log for log in (*logs, *compared) if log.name in by_name}
    judge_user_rules(spark, list(read.values()), task, tallies)
    workers = workers_of(spark)
    is_alone = len(routes) < workers  # else every worker has its own
    items = [
        Item(route.path, route.name, share, count, route.origin)
        for route in routes
        if route.name not in by_name
        for count in (workers if route.is_long or (is_alone and not route.is_short) else 1,)
        for share in range(count)
    ]
    most = max((route.held_mb for route in routes if route.name not in by_name), default=0)
    memory_mb = most if most > _MUCH_MB else 0
    for run in fold_job.judge_runs(spark, items, task, tallies, memory_mb):
        by_name[run.name] = run
    return [by_name[route.name] for route in routes]


def _judge_long(
    spark: SparkSession, logs: Sequence[LongLog], task: Task, tallies: Tallies
) -> dict[str, Run]:
    """Judge long logs with their snapshots; a damaged one is not among the runs."""
    judged = zip(logs, judge_logs(spark, logs, task, tallies), strict=True)
    runs = {log.name: run for log, run in judged if run is not None}
    judge_snapshots(spark, [log for log in logs if log.name in runs], task, tallies)
    return runs


def _to_decode(route: Route) -> LongQuorum:
    """All logs of a run in which a share has found damage."""
    if route.quorum is not None:
        return replace(route.quorum, decodes_all=True)
    assert route.long is not None
    files = (route.long.files,)
    return LongQuorum(route.long.path, route.name, files, route.origin, decodes_all=True)


def sources_of(routes: Sequence[Route], limits: ReadLimits) -> list[Source]:
    """The evidence for the report; of few short runs it is read now, since it may go away.

    Errors:  UserError for a path that is no run, of which Spark need not be started.
    """
    sources = [Source(r.path, r.name, limits, is_long=r.is_long) for r in routes]
    if len(sources) <= _EAGER:
        for source in sources:
            source.hold()
    return sources
