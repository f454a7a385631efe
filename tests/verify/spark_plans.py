"""Spark's own plans over the tables of runs: an oracle for the engine of the workers.

Each view is planned once, over its sources as they were computed, for some runs at a time: a plan
that holds the plans of its sources grows with their number, and each is computed again wherever it
is named. A view that a Python function folds has no plan; Spark judges the rows that it folds from
the tables of each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify.engine.checks import sources_of
from minicluster.verify.evidence.reading import named_paths, read_run
from minicluster.verify.evidence.run import Run, without_contents
from minicluster.verify.evidence.source import Source
from minicluster.verify.judge import _report
from minicluster.verify.reporting.report import Report
from minicluster.verify.rules import LOG_VIEWS, RULES, VIEWS
from minicluster.verify.rules.model import Rule, View
from minicluster.verify.spark import tables as spark_tables
from minicluster.verify.spark.planned import FOR_MANY_ROWS, judge_view
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BYTES_TOGETHER = 8 << 20  # of logs and traces: Java's memory holds the views of so much
_MANY_BYTES = 1 << 20


def report_of_plans(
    spark: SparkSession, paths: Sequence[Path], rules: Sequence[Rule] = RULES
) -> Report:
    """The report on these runs, whose rules Spark plans and computes."""
    tallies = Tallies()
    judged: list[Run] = []
    for size, group in _groups(named_paths(paths)):
        with _set(spark, FOR_MANY_ROWS if size > _MANY_BYTES else {}):
            read = [read_run(path, name) for path, name in group]
            tables, runs = spark_tables.gather(read, rules)
            _judge(spark, tables, runs, rules, tallies)
            judged += map(without_contents, runs)
    sources = [Source(run.path, run.name, DEFAULT_LIMITS, is_long=True) for run in judged]
    return _report(judged, rules, tallies, sources)


def _groups(named: Sequence[tuple[Path, str]]) -> Iterator[tuple[int, list[tuple[Path, str]]]]:
    """Runs that are computed together, with the size of their logs and traces."""
    size, group = 0, []
    for path, name in named:
        group.append((path, name))
        files = (file for kind in ("*.log", "*.parquet") for file in path.rglob(kind))
        size += sum(file.stat().st_size for file in files)
        if size > _BYTES_TOGETHER:
            yield size, group
            size, group = 0, []
    if group:
        yield size, group


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, str(value))


def _judge(
    spark: SparkSession,
    tables: Mapping[str, pa.Table],
    runs: Sequence[Run],
    rules: Sequence[Rule],
    tallies: Tallies,
) -> None:
    """Judge all checks, view by view, each after its sources."""
    for name, frame in spark_tables.frames(spark, tables).items():
        frame.createOrReplaceTempView(name)
    with_trace = any(run.is_run for run in runs)
    named = dict.fromkeys(view for rule in rules for view in rule.views)
    needed = [view for view in named if with_trace or view in LOG_VIEWS]
    for name in _with_sources(needed):
        try:
            _compute(spark, VIEWS[name], tables, runs)
            items = [(rule, check) for rule in rules for check in rule.checks if check.view == name]
            if items:
                judge_view(spark, name, items, tallies)
        except Exception as error:
            tallies.crashes[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"


def _with_sources(views: Sequence[str]) -> list[str]:
    """These views and those that they build on, each after its sources."""
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in ordered:
            for source in sources_of(VIEWS[name]):
                if source in VIEWS:
                    add(source)
            ordered[name] = None

    for view in views:
        add(view)
    return list(ordered)


def _compute(
    spark: SparkSession, view: View, tables: Mapping[str, pa.Table], runs: Sequence[Run]
) -> None:
    """Compute a view from its sources, and keep it under its name."""
    if view.fold is None:
        frame = spark.sql(view.sql).localCheckpoint()
    else:
        folded = [row for run in runs for row in view.fold(_tables_of(run.name, tables))]
        found = pa.table({name: [row.get(name) for row in folded] for name in view.columns})
        frame = spark.createDataFrame(found)
    frame.createOrReplaceTempView(view.name)


def _tables_of(run: str, tables: Mapping[str, pa.Table]) -> Any:
    """A function from the name of a table to its rows of one run."""

    def rows(name: str) -> list[dict[str, Any]]:
        if name not in tables:
            return []
        found = tables[name].filter(pc.equal(tables[name]["run"], run))
        columns = (column.to_pylist() for column in found.columns)
        return [
            dict(zip(found.column_names, row, strict=True)) for row in zip(*columns, strict=True)
        ]

    return rows
