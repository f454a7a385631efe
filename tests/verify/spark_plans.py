"""Spark's own plans over the tables of runs: an oracle for the engine of the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify.evidence.reading import read_runs
from minicluster.verify.evidence.source import Source
from minicluster.verify.judge import _report
from minicluster.verify.reporting.report import Report
from minicluster.verify.rules import RULES
from minicluster.verify.rules.model import Rule
from minicluster.verify.spark import tables as spark_tables
from minicluster.verify.tally import Tallies
from tests.verify import spark_queries as queries
from tests.verify.spark_queries import CheckResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def report_of_plans(
    spark: SparkSession, paths: Sequence[Path], rules: Sequence[Rule] = RULES
) -> Report:
    """The report on these runs, whose rules Spark plans and computes."""
    tallies = Tallies()
    tables, judged = spark_tables.gather(read_runs(paths), rules)
    frames = {name: frame.coalesce(1) for name, frame in spark_tables.frames(spark, tables).items()}
    needed = queries.needed_views(rules, with_trace=any(run.is_run for run in judged))
    results, crashes = _judge_views(spark, frames, rules, needed, few=True)
    for result in results:
        counts = (result.looked_at, result.not_promised)
        tallies.add_check(result.rule, result.check, result.run, counts, result.findings)
    tallies.crashes |= crashes
    sources = [Source(run.path, run.name, DEFAULT_LIMITS, is_long=True) for run in judged]
    return _report(judged, rules, tallies, sources)


def _judge_views(
    spark: SparkSession,
    frames: Mapping[str, Any],
    rules: Sequence[Rule],
    views: Sequence[str],
    *,
    few: bool,
) -> tuple[list[CheckResult], dict[str, str]]:
    """Judge all views in two streams of jobs, since planning is most of the work and is sequential.

    One stream computes the partitions' fold and judges what builds on folds; the other computes
    the brokers' fold and judges the rest.

    Shapes:  -> results, and for each view that crashed the reason.
    """
    folded = [view for view in views if queries.reads_folds(view)]
    rest = [view for view in views if view not in folded]
    queries.prepare(spark, frames)
    with ThreadPoolExecutor(max_workers=2) as pool:
        brokers = pool.submit(queries.compute_fold, spark, "broker_states")
        partitions = pool.submit(queries.compute_fold, spark, "partition_states")
        others = pool.submit(_stream, spark, rules, rest, few)
        crashed = next((e for e in (brokers.exception(), partitions.exception()) if e), None)
        if crashed is None:
            results, crashes = _stream(spark, rules, folded, few)
        else:
            results, crashes = [], dict.fromkeys(folded, _first_line(crashed))
        more, more_crashes = others.result()
    return results + more, crashes | more_crashes


def _stream(
    spark: SparkSession, rules: Sequence[Rule], views: Sequence[str], few: bool
) -> tuple[list[CheckResult], dict[str, str]]:
    """Judge some views as one job; if it fails, view by view, so that a fault spoils one view."""
    try:
        return queries.collect(spark, rules, views, few=few), {}
    except Exception as error:
        if len(views) == 1:
            return [], {views[0]: _first_line(error)}
    results: list[CheckResult] = []
    crashes: dict[str, str] = {}
    for view in views:
        try:
            results += queries.collect(spark, rules, [view], few=few)
        except Exception as error:
            crashes[view] = _first_line(error)
    return results, crashes


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
