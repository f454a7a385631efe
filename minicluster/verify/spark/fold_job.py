"""One Spark job that judges runs: a row for each run, folded by ``engine`` in Python's workers.

Planning a query of windows costs Spark seconds, whatever it reads; this job has one plan of three
nodes. A row holds the tables of one run; its result holds the checks that had cases.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.engine.checks import Views
from minicluster.verify.evidence.run import Run
from minicluster.verify.rules import LOG_VIEWS
from minicluster.verify.rules.model import Rule, View
from minicluster.verify.spark.queries import CheckResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Batches = Iterator[pa.RecordBatch]


class FoundRow(NamedTuple):
    """The columns of a finding."""

    offset: int | None
    topic: str | None
    part: int | None
    broker: int | None
    old: list[int] | None
    new: list[int] | None
    number: int | None


@dataclass(frozen=True, slots=True)
class _Judged:
    """The results of one run: of each check by its places in the rules, and views that crashed."""

    checks: tuple[tuple[int, int, int, int, tuple[tuple[Any, ...], ...]], ...]
    crashes: dict[str, str]


def judge_runs(
    spark: SparkSession,
    runs: Sequence[Run],
    tables: Mapping[str, pa.Table],
    rules: Sequence[Rule],
    views: Mapping[str, View],
) -> tuple[list[CheckResult], dict[str, str]]:
    """Judge these runs by the rules, in one job.

    Shapes:  -> results, and for each view that crashed the reason.
    """
    columns = {name: tuple(table.column_names) for name, table in tables.items()}
    task = pickle.dumps((tuple(rules), dict(views), columns))
    held = _by_run(tables)
    rows = [pickle.dumps((run.is_run, held.get(run.name, {})), protocol=5) for run in runs]
    results: list[CheckResult] = []
    crashes: dict[str, str] = {}
    for run, done in zip(runs, _map(spark, partial(judge_one, task), rows), strict=True):
        judged: _Judged = pickle.loads(done)
        crashes |= judged.crashes
        for place, index, looked_at, not_promised, found in judged.checks:
            rule = rules[place]
            findings = tuple(FoundRow(*one) for one in found)
            check = rule.checks[index]
            results.append(CheckResult(rule, check, run.name, looked_at, not_promised, findings))
    return results, crashes


def _by_run(tables: Mapping[str, pa.Table]) -> dict[str, dict[str, list[tuple[Any, ...]]]]:
    """The rows of each run, table by table."""
    held: dict[str, dict[str, list[tuple[Any, ...]]]] = {}
    for name, table in tables.items():
        at = table.column_names.index("run")
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            held.setdefault(row[at], {}).setdefault(name, []).append(row)
    return held


def _map(
    spark: SparkSession, function: Callable[[bytes], bytes], rows: Sequence[bytes]
) -> list[bytes]:
    """Each row through the function, in Python's workers, in order."""
    if not hasattr(spark, "_jsc"):
        return _map_remote(spark, function, rows)
    context = spark.sparkContext
    slices = min(len(rows), 2 * context.defaultParallelism)
    return list(context.parallelize(list(rows), slices).map(function).collect())


def _map_remote(
    spark: SparkSession, function: Callable[[bytes], bytes], rows: Sequence[bytes]
) -> list[bytes]:
    """The same where there are no RDDs: a client of Spark Connect."""

    def each(batches: _Batches) -> _Batches:
        for batch in batches:
            done = [function(held.as_py()) for held in batch.column(1)]
            yield pa.RecordBatch.from_pydict({"place": batch.column(0), "done": done})

    table = pa.table({"place": list(range(len(rows))), "row": list(rows)})
    frame = spark.createDataFrame(table).mapInArrow(each, "place bigint, done binary")
    return [bytes(row.done) for row in sorted(frame.collect(), key=lambda row: row.place)]


_prepared: dict[str, tuple[tuple[Rule, ...], Views, dict[str, tuple[str, ...]]]] = {}


def judge_one(task: bytes, held: bytes) -> bytes:
    """Judge the tables of one run, with views that this worker compiles once."""
    key = hashlib.sha256(task).hexdigest()
    if key not in _prepared:
        rules, declared, columns = pickle.loads(task)
        _prepared[key] = rules, Views(declared, columns), columns
    rules, views, columns = _prepared[key]
    is_run, tables = pickle.loads(held)
    rows = views.over({name: tables.get(name, []) for name in columns})
    checks = []
    crashes: dict[str, str] = {}
    for place, index, view in _checks(rules, with_trace=is_run):
        rule = rules[place]
        try:
            found = views.check(rule, rule.checks[index], rows(view))
        except Exception as error:  # a rule that cannot be computed is unknown, and no other
            crashes[view] = f"{type(error).__name__}: {error}"
            continue
        if found.looked_at or found.not_promised:
            counts = (found.looked_at, found.not_promised)
            checks.append((place, index, *counts, found.findings))
    return pickle.dumps(_Judged(tuple(checks), crashes))


def _checks(rules: Sequence[Rule], *, with_trace: bool) -> Iterable[tuple[int, int, str]]:
    """The checks that a run's evidence serves: places in the rules, and the view."""
    for place, rule in enumerate(rules):
        for index, check in enumerate(rule.checks):
            if with_trace or check.view in LOG_VIEWS:
                yield place, index, check.view
