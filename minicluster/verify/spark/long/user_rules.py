"""Rules of a user's over long plain logs.

Spark plans their SQL over the tables of facts of a log, and keeps on disk what its memory does not
hold. A fold gets the rows that it reads from a file, by shares of its key where it has one.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from minicluster.errors import counted
from minicluster.verify.engine.checks import Views, sources_of
from minicluster.verify.rules.model import Rule, View
from minicluster.verify.spark import fold_job, session
from minicluster.verify.spark.fold_job import (
    Item,
    Task,
    WorkerDied,
    is_of_logs,
    worker_died,
    workers_of,
)
from minicluster.verify.spark.long.fact_source import facts_frame
from minicluster.verify.spark.long.logs import LongLog
from minicluster.verify.spark.long.spooled_folds import Failed, Missing, fold_share, read_by
from minicluster.verify.spark.planned import FOR_MANY_ROWS, judge_view
from minicluster.verify.spark.progress import Watch
from minicluster.verify.spark.schemas import SCHEMAS
from minicluster.verify.spark.tables import table_columns
from minicluster.verify.spark.travel import ship_package
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARE_BYTES = 32 << 20  # of a log, for each partition of a sort
_SHARES_MAX = 200
_SNAPSHOTS = "snapshots"
_SNAPSHOT_STATES = "snapshot_states"  # a fold up to each snapshot has judged them (``snapshots``)
# The order of the log, by the first of these that a view has; of one record its other rows.
_ORDER = (("node",), ("pos", "offset"), ("topic_id", "topic"), ("part",), ("broker", "about"))


def judge_user_rules(
    spark: SparkSession, logs: Sequence[LongLog], task: Task, tallies: Tallies
) -> None:
    """Judge the rules of a user's file over these logs, which shares have read without damage."""
    if task.user is None or not logs:
        return
    held = [rule for rule in task.user.rules if not _is_planned(rule, task, spark)]
    planned = replace(task, rules=tuple(rule for rule in task.user.rules if rule not in held))
    if held:
        items = [Item(log.path, log.name, origin=log.origin) for log in logs]
        fold_job.judge_runs(spark, items, replace(task, rules=tuple(held)), tallies)
    if not planned.rules:
        return
    ship_package(spark)  # sessions of SQL share its files
    phase = f"judging your rules over {counted(len(logs), 'long log')}"
    with Watch(phase, task.on_progress).over(spark):
        for log in logs:
            _Judge(spark, log, planned, tallies).judge()


def _is_planned(rule: Rule, task: Task, spark: SparkSession) -> bool:
    """Spark can plan what the rule reads; else one worker holds the log."""
    if not hasattr(spark, "_jsc"):
        return False
    read = [name for name in rule.views if is_of_logs(task.views[name], task.views)]
    return all(_is_plannable(name, task, top=True) for name in read if name != _SNAPSHOT_STATES)


def _is_plannable(name: str, task: Task, *, top: bool = False) -> bool:
    """A table, or a view that is SQL down to the tables; a check may read a fold itself."""
    view = task.views.get(name)
    if view is None:
        return name != _SNAPSHOTS
    if view.fold is not None and not top:
        return False
    return all(_is_plannable(source, task) for source in _reads(view))


def _reads(view: View) -> list[str]:
    return sources_of(view) if view.fold is None else read_by(view)


class _Judge:
    """The rules over one log, in a session of SQL of their own."""

    def __init__(self, spark: SparkSession, log: LongLog, task: Task, tallies: Tallies) -> None:
        own = spark if hasattr(spark, "sql") else session.spark_session()
        self._sql = own.newSession()  # its names and settings are nobody else's
        self._log = log
        self._task = task
        self._tallies = tallies
        self._views = Views(task.views, table_columns())
        self._frames: dict[str, DataFrame] = {}
        size = sum(segment.stat().st_size for segment in log.files.segments)
        self._workers = workers_of(spark)
        self._shares = min(_SHARES_MAX, max(self._workers, size // _SHARE_BYTES))

    def judge(self) -> None:
        """Judge every view that needs no trace; one that cannot be computed is unknown."""
        settings = {**FOR_MANY_ROWS, "spark.sql.shuffle.partitions": str(self._shares)}
        for key, value in settings.items():
            self._sql.conf.set(key, value)
        views = self._task.views
        named = dict.fromkeys(view for rule in self._task.rules for view in rule.views)
        try:
            for name in named:
                if name != _SNAPSHOT_STATES and is_of_logs(views[name], views):
                    self._judge(views[name])
        finally:
            for name, frame in self._frames.items():
                if name in SCHEMAS:
                    frame.unpersist()

    def _judge(self, view: View) -> None:
        rules = self._task.rules
        items = [(rule, one) for rule in rules for one in rule.checks if one.view == view.name]
        try:
            for rule, check in items:  # what the engine refuses is refused here as well
                self._views.check(rule, check, ())
            if view.fold is None:
                self._frame(view.name)
                judge_view(self._sql, view.name, items, self._tallies, self._log.name)
            else:
                self._fold(view)
        except Exception as error:
            if worker_died(error):
                raise WorkerDied from None
            first = (str(error).strip().splitlines() or [""])[0]
            self._tallies.crashes[view.name] = f"{type(error).__name__}: {first}"

    def _frame(self, name: str) -> DataFrame:
        """A table, which is read once, or a view; also under its name in SQL."""
        if name not in self._frames:
            if name in SCHEMAS:
                from pyspark import StorageLevel

                limits = self._task.limits
                frame = facts_frame(self._sql, self._log, name, self._workers, limits)
                frame = frame.persist(StorageLevel.DISK_ONLY)
            elif name in self._task.views:
                for source in _reads(self._task.views[name]):
                    self._frame(source)
                frame = self._sql.sql(self._task.views[name].sql)
            elif name in table_columns():
                frame = self._sql.createDataFrame([], "run string")  # a trace, which no log has
            else:
                raise KeyError(name)
            frame.createOrReplaceTempView(name)
            self._frames[name] = frame
        return self._frames[name]

    # --- folds ------------------------------------------------------------------------------

    def _fold(self, view: View) -> None:
        """Let workers fold, once more with each table of which a fold turns out to read rows."""
        reads = _reads(view)
        while True:
            rows = self._tagged(reads, view.key)
            function = partial(fold_share, self._task.pickled(), view.name, tuple(reads))
            done = [pickle.loads(one) for one in rows.rdd.mapPartitions(function).collect()]
            missing = {one.name for one in done if isinstance(one, Missing)}
            if not missing:
                break
            reads += sorted(missing)
        for one in done:
            if isinstance(one, Failed):
                self._tallies.crashes[view.name] = one.why
                return
        for share in done:
            for (place, index), counts, found in share:
                rule = self._task.rules[place]
                self._tallies.add_check(rule, rule.checks[index], self._log.name, counts, found)

    def _tagged(self, reads: Sequence[str], key: Sequence[str]) -> DataFrame:
        """The rows of several tables in one frame, those with the same key in one partition.

        Shapes:  columns: source (a place in ``reads``), order, and a struct for each table.
        """
        from pyspark.sql import functions as f

        whole: DataFrame | None = None
        for place, name in enumerate(reads):
            frame = self._frame(name)
            order = [_first_of(names, frame) for names in _ORDER]
            for column in key:
                if column not in frame.columns:
                    raise KeyError(f"{name} has no column {column}, which the key names")
            one = frame.select(
                f.lit(place).alias("source"),
                *(frame[column].alias(f"key{number}") for number, column in enumerate(key)),
                f.struct(*(part.alias(f"o{n}") for n, part in enumerate(order))).alias("order"),
                f.struct(*(frame[column] for column in frame.columns)).alias(f"row{place}"),
            )
            whole = one if whole is None else whole.unionByName(one, allowMissingColumns=True)
        if whole is None:  # it reads nothing
            return self._sql.range(1).selectExpr("-1 as source")
        keys = [f"key{number}" for number in range(len(key))]
        divided = whole.repartition(self._shares, *keys) if keys else whole.coalesce(1)
        return divided.sortWithinPartitions("source", "order").drop("order", *keys)


def _first_of(names: Sequence[str], frame: DataFrame) -> Any:
    from pyspark.sql import functions as f

    for name in names:
        if name in frame.columns:
            return frame[name].cast("string" if name.startswith("topic") else "bigint")
    return f.lit(None).cast("string" if names[0].startswith("topic") else "bigint")
