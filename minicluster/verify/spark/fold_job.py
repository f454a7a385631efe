"""One Spark job that judges runs: each is read and folded by ``engine`` in one of Python's workers.

Planning a query of windows costs Spark seconds, whatever it reads; this job has no query. What
comes back from a run is small: its heading, its problems, and the checks that had cases.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minicluster.errors import UserError
from minicluster.lazy_dataclass import dataclass
from minicluster.log.format.limits import ReadLimits
from minicluster.verify.engine.checks import Views, tables_of
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run, without_contents
from minicluster.verify.rules import LOG_VIEWS, VIEWS
from minicluster.verify.rules.model import Rule, View
from minicluster.verify.rules.user_rules import UserRules
from minicluster.verify.spark.schemas import SCHEMAS
from minicluster.verify.spark.tables import gather, table_columns
from minicluster.verify.spark.travel import ship_package
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Task:
    """The rules, views and limits by which a job judges every run."""

    rules: tuple[Rule, ...]
    limits: ReadLimits
    user: UserRules | None = None

    @property
    def views(self) -> dict[str, View]:
        """The views of all its rules."""
        return {**VIEWS, **(self.user.views if self.user is not None else {})}

    def pickled(self) -> bytes:
        """The task for workers, which cannot import the file of a user's rules."""
        if self.user is None:
            return pickle.dumps((self.rules, dict(VIEWS), self.limits))
        from pyspark import cloudpickle

        by_value: Any = cloudpickle
        by_value.register_pickle_by_value(self.user.module)
        return bytes(by_value.dumps((self.rules, self.views, self.limits)))


@dataclass(frozen=True, slots=True)
class _Work:
    """The task as a worker has it, its views compiled."""

    rules: tuple[Rule, ...]
    declared: Mapping[str, View]
    limits: ReadLimits
    views: Views
    of_logs: frozenset[str]  # views that need no trace


@dataclass(frozen=True, slots=True)
class Judged:
    """One run: without its contents, and its checks by their places in the rules.

    Shapes:  checks: rule, check, looked at, not promised, the columns of its findings.
    """

    run: Run
    checks: tuple[tuple[int, int, int, int, tuple[tuple[Any, ...], ...]], ...] = ()
    crashes: Mapping[str, str] | None = None


def judge_runs(
    spark: SparkSession, named: Sequence[tuple[Path, str]], task: Task, tallies: Tallies
) -> list[Run]:
    """Judge the runs at these paths, in one job; the runs come back without their contents.

    Errors:  UserError for a path that is no run.
    """
    function = partial(_judge_one, task.pickled())
    items = [pickle.dumps((str(path.absolute()), name)) for path, name in named]
    runs = []
    for (path, name), done in zip(named, in_workers(spark, function, items), strict=True):
        judged: Judged | None = pickle.loads(done)
        if judged is None:  # the error, raised where the user is
            read_run(path, name, task.limits)
            raise UserError(f"{path}: changed while it was read")
        tallies.crashes |= judged.crashes or {}
        for place, index, looked_at, not_promised, rows in judged.checks:
            rule = task.rules[place]
            counts = (looked_at, not_promised)
            tallies.add_check(rule, rule.checks[index], name, counts, rows)
        runs.append(judged.run)
    return runs


def in_workers(
    spark: SparkSession, function: Callable[[bytes], bytes], items: Sequence[bytes]
) -> list[bytes]:
    """Each item through the function, in Python's workers, in order."""
    if not items:
        return []
    ship_package(spark)
    if not hasattr(spark, "_jsc"):
        return _remotely(spark, function, items)
    context = spark.sparkContext
    slices = min(len(items), 4 * context.defaultParallelism)
    return list(context.parallelize(list(items), slices).map(function).collect())


def _remotely(
    spark: SparkSession, function: Callable[[bytes], bytes], items: Sequence[bytes]
) -> list[bytes]:
    """The same where there are no RDDs: a client of Spark Connect."""

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            done = [function(item.as_py()) for item in batch.column(1)]
            yield pa.RecordBatch.from_pydict({"place": batch.column(0), "done": done})

    table = pa.table({"place": list(range(len(items))), "item": list(items)})
    frame = spark.createDataFrame(table).mapInArrow(each, "place bigint, done binary")
    return [bytes(row.done) for row in sorted(frame.collect(), key=lambda row: row.place)]


_prepared: dict[str, _Work] = {}


def _prepare(pickled: bytes) -> _Work:
    """The task with its views, which each worker compiles once."""
    key = hashlib.sha256(pickled).hexdigest()
    if key not in _prepared:
        rules, declared, limits = pickle.loads(pickled)
        of_logs = {
            name
            for name, view in declared.items()
            if name in LOG_VIEWS or (name not in VIEWS and _is_of_logs(view, declared))
        }
        views = Views(declared, table_columns())
        _prepared[key] = _Work(rules, declared, limits, views, frozenset(of_logs))
    return _prepared[key]


def _is_of_logs(view: View, declared: Mapping[str, View]) -> bool:
    return view.fold is not None or tables_of(view.name, declared) <= SCHEMAS.keys()


def _judge_one(pickled: bytes, item: bytes) -> bytes:
    work = _prepare(pickled)
    path, name = pickle.loads(item)
    try:
        tables, (run,) = gather(
            [read_run(Path(path), name, work.limits)], work.rules, work.declared
        )
    except UserError:
        return pickle.dumps(None)
    held = dict.fromkeys(table_columns(), _Rows())
    held |= {name: _rows(table) for name, table in tables.items()}
    rows = work.views.over(held)
    checks = []
    crashes: dict[str, str] = {}
    for place, index, view in _checks(work.rules, None if run.is_run else work.of_logs):
        rule = work.rules[place]
        try:
            found = work.views.check(rule, rule.checks[index], rows(view))
        except Exception as error:  # a rule that cannot be computed is unknown, and no other
            crashes[view] = f"{type(error).__name__}: {error}"
            continue
        if found.looked_at or found.not_promised:
            checks.append((place, index, found.looked_at, found.not_promised, found.findings))
    return pickle.dumps(Judged(without_contents(run), tuple(checks), crashes))


def _rows(table: pa.Table) -> _Rows:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _checks(rules: Sequence[Rule], views: frozenset[str] | None) -> Iterable[tuple[int, int, str]]:
    """The checks of these views, None for all: places in the rules, and the view."""
    for place, rule in enumerate(rules):
        for index, check in enumerate(rule.checks):
            if views is None or check.view in views:
                yield place, index, check.view
