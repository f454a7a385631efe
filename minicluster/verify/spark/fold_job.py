"""One Spark job that judges runs: each is read and folded by ``engine`` in Python's workers.

Planning a query of windows costs Spark seconds, whatever it reads; this job has no query. A short
run is judged by one worker, a long one by several, each with some of its views. What comes back
from a run is small: its heading, its problems, and the checks that had cases.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minicluster.errors import UserError, counted
from minicluster.lazy_dataclass import dataclass
from minicluster.log.format.limits import ReadLimits
from minicluster.verify.engine.checks import Held, Views, sources_of, tables_of
from minicluster.verify.evidence.file_systems import at_hand
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run, without_contents
from minicluster.verify.rules import LOG_VIEWS, VIEWS
from minicluster.verify.rules.model import Rule, View
from minicluster.verify.rules.user_rules import UserRules
from minicluster.verify.spark.jvm import SparkUnavailable
from minicluster.verify.spark.progress import Meter, OnProgress, Watch
from minicluster.verify.spark.schemas import SCHEMAS
from minicluster.verify.spark.tables import gather, has_rows, table_columns
from minicluster.verify.spark.travel import ship_package
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Rows = list[tuple[Any, ...]]
_SHARES_MAX = 16
_TASKS_PER_WORKER = 16  # so that progress is seen
_TASKS_REMOTELY = 32


class WorkerDied(SparkUnavailable):
    """A process that judged was ended from outside, most likely for want of memory."""

    def __init__(self) -> None:
        super().__init__(
            "Spark: a worker was ended while it judged, most likely for want of memory; what a run "
            "takes: docs/speed.md, Memory"
        )


def worker_died(error: Exception) -> bool:
    """The error of a job that Spark gave up since one of Python's processes was gone."""
    return "Python worker exited unexpectedly" in str(error)


@dataclass(frozen=True, slots=True)
class Task:
    """The rules, views and limits by which a job judges every run."""

    rules: tuple[Rule, ...]
    limits: ReadLimits
    user: UserRules | None = None
    on_progress: OnProgress | None = None

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
    checks: Mapping[str, tuple[tuple[int, int], ...]]  # of each view: places in the rules
    of_logs: frozenset[str]  # views that need no trace


@dataclass(frozen=True, slots=True)
class Item:
    """A share of a run: some of the views that its checks read.

    Shapes:  origin: the URI of which the path is a copy on the machine that starts the job.
    """

    path: Path
    name: str
    share: int = 0
    shares: int = 1
    origin: str | None = None

    def pickled(self, meter_file: Path | None = None) -> bytes:
        """The item for workers, which may work in another folder."""
        path = str(self.path.absolute())
        return pickle.dumps((path, self.name, self.share, self.shares, self.origin, meter_file))


@dataclass(frozen=True, slots=True)
class Judged:
    """One share of a run: the run without its contents, and checks by their places in the rules.

    Shapes:  checks: rule, check, looked at, not promised, the columns of its findings.
    """

    run: Run
    checks: tuple[tuple[int, int, int, int, tuple[tuple[Any, ...], ...]], ...] = ()
    crashes: Mapping[str, str] | None = None


def judge_runs(
    spark: SparkSession, items: Sequence[Item], task: Task, tallies: Tallies, memory_mb: int = 0
) -> list[Run]:
    """Judge runs in one job; they come back without their contents, each once, in order.

    Units:   memory_mb: what the largest of them takes in a worker, if that is much.
    Errors:  UserError for a path that is no run.
    """
    if not items:
        return []
    function = partial(_judge_one, task.pickled())
    runs: dict[str, Run] = {}
    count = len({item.name for item in items})
    held = f", which take about {memory_mb:,} MB in each worker" if memory_mb else ""
    watch = Watch(f"judging {counted(count, 'run')}{held}", task.on_progress, len(items))
    with watch.over(spark):
        pickled = [item.pickled(watch.meter_file(place)) for place, item in enumerate(items)]
        done = in_workers(spark, function, pickled)
    for item, one in zip(items, done, strict=True):
        judged: Judged | None = pickle.loads(one)
        if judged is None:  # the error, raised where the user is
            read_run(item.path, item.name, task.limits)
            raise UserError(f"{item.path}: changed while it was read")
        tallies.crashes |= judged.crashes or {}
        for place, index, looked_at, not_promised, rows in judged.checks:
            rule = task.rules[place]
            counts = (looked_at, not_promised)
            tallies.add_check(rule, rule.checks[index], item.name, counts, rows)
        runs[item.name] = judged.run
    return list(runs.values())


def workers_of(spark: SparkSession) -> int:
    """The number of workers at the same time; a client of Spark Connect cannot see it."""
    if not hasattr(spark, "_jsc"):
        return 2
    return max(1, min(_SHARES_MAX, spark.sparkContext.defaultParallelism))


def in_workers(
    spark: SparkSession, function: Callable[[bytes], bytes], items: Sequence[bytes]
) -> list[bytes]:
    """Each item through the function, in Python's workers, in order.

    Errors:  WorkerDied.
    """
    ship_package(spark)
    try:
        if not hasattr(spark, "_jsc"):
            return _remotely(spark, function, items)
        context = spark.sparkContext
        slices = min(len(items), _TASKS_PER_WORKER * context.defaultParallelism)
        return list(context.parallelize(list(items), slices).map(function).collect())
    except Exception as error:
        if worker_died(error):
            raise WorkerDied from None
        raise


def _remotely(
    spark: SparkSession, function: Callable[[bytes], bytes], items: Sequence[bytes]
) -> list[bytes]:
    """The same where there are no RDDs: a client of Spark Connect."""

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            done = [function(item.as_py()) for item in batch.column(1)]
            yield pa.RecordBatch.from_pydict({"place": batch.column(0), "done": done})

    table = pa.table({"place": list(range(len(items))), "item": list(items)})
    frame = spark.createDataFrame(table).repartition(min(len(items), _TASKS_REMOTELY))
    frame = frame.mapInArrow(each, "place bigint, done binary")
    return [bytes(row.done) for row in sorted(frame.collect(), key=lambda row: row.place)]


_prepared: dict[str, _Work] = {}


def _prepare(pickled: bytes) -> _Work:
    """The task with its views, which each worker compiles once."""
    key = hashlib.sha256(pickled).hexdigest()
    if key not in _prepared:
        rules, declared, limits = pickle.loads(pickled)
        of_logs = {name for name, view in declared.items() if is_of_logs(view, declared)}
        views = Views(declared, table_columns())
        checks = _checks(rules)
        _prepared[key] = _Work(rules, declared, limits, views, checks, frozenset(of_logs))
    return _prepared[key]


def compile_task(task: Task) -> None:
    """Compile the views and checks of a task before a worker is given it."""
    work = _prepare(task.pickled())
    for checks in work.checks.values():
        for place, index in checks:
            rule = work.rules[place]
            work.views.check(rule, rule.checks[index], ())


def is_of_logs(view: View, declared: Mapping[str, View]) -> bool:
    """A view that needs no trace."""
    if view.name in VIEWS:
        return view.name in LOG_VIEWS
    return view.fold is not None or tables_of(view.name, declared) <= SCHEMAS.keys()


def _judge_one(pickled: bytes, item: bytes) -> bytes:
    work = _prepare(pickled)
    path, name, share, shares, origin, meter_file = pickle.loads(item)
    meter = Meter(meter_file)
    try:
        with at_hand(Path(path), origin) as here:
            read = [read_run(here, name, work.limits)]
            tables, (run,) = gather(read, work.rules, work.declared)
    except UserError:
        return pickle.dumps(None)
    views = [
        view
        for view in work.checks
        if run.is_run or view in work.of_logs
        if has_rows(work.declared[view], tables)
    ]
    if shares > 1:
        views = _shares(views, work.declared, tables, shares)[share]
    held = Held(work.views, lambda table: _rows(tables[table]) if table in tables else [])
    checks = []
    crashes: dict[str, str] = {}
    for number, view in enumerate(views):
        for place, index in work.checks[view]:
            rule = work.rules[place]
            try:
                found = work.views.check(rule, rule.checks[index], held.rows(view))
            except Exception as error:  # a rule that cannot be computed is unknown, and no other
                crashes[view] = f"{type(error).__name__}: {error}"
                break
            if found.looked_at or found.not_promised:
                checks.append((place, index, found.looked_at, found.not_promised, found.findings))
        held.keep_for(views[number + 1 :])
        meter.done((number + 1) / len(views))
    return pickle.dumps(Judged(without_contents(run), tuple(checks), crashes))


def _rows(table: pa.Table) -> _Rows:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _checks(rules: Sequence[Rule]) -> dict[str, tuple[tuple[int, int], ...]]:
    """The checks of each view, as their places in the rules."""
    found: dict[str, tuple[tuple[int, int], ...]] = {v: () for rule in rules for v in rule.views}
    for place, rule in enumerate(rules):
        for index, check in enumerate(rule.checks):
            found[check.view] += ((place, index),)
    return found


def _shares(
    views: Sequence[str],
    declared: Mapping[str, View],
    tables: Mapping[str, pa.Table],
    count: int,
) -> list[list[str]]:
    """Shares of the views with about as many rows to read in each, the same in every worker."""

    def cost(name: str) -> int:
        if name in tables:
            return int(tables[name].num_rows)
        return 1 + sum(map(cost, sources_of(declared[name]))) if name in declared else 0

    shares: list[list[str]] = [[] for _ in range(count)]
    costs = [0] * count
    for view in sorted(views, key=lambda view: (-cost(view), view)):
        least = costs.index(min(costs))
        shares[least].append(view)
        costs[least] += cost(view)
    return shares
