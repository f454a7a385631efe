"""The views for people as data frames of a Spark session.

::

    logs_of     the rows of logs, by run and in order -> mapInArrow (``worker``): a table's rows

A view is a query over these; nothing is read before somebody asks for its rows. For one question
about a small run (``Tables.at_once``) the same readers and workers' functions run in this process.
"""

from __future__ import annotations

import datetime
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from minicluster.errors import UserError
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.locating import RUN_NAME, locate
from minicluster.moments import Span
from minicluster.own_folders import temporary_folder
from minicluster.verify.evidence.file_systems import is_uri
from minicluster.verify.evidence.reading import named_paths
from minicluster.verify.evidence.run_header import DamagedHeader, read_header
from minicluster.verify.log_rows import IN_ORDER, Item, rows_of
from minicluster.verify.shown.declared import BY_NAME, SHOWN_VIEWS, ShownView
from minicluster.verify.shown.worker import schema_of, show_rows
from minicluster.verify.spark.log_source import by_run, sql_of
from minicluster.verify.spark.travel import Fetched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AS_OF = "as_of"
SMALL_BYTES = 8 << 20
_PREFIX = "minicluster_"
_OF_WORKER = re.compile(r"\bminicluster\.[\w.]*\.\w+: (.+)")  # the end of a traceback
_TABLE = re.compile(rf"\b{_PREFIX}(\w+)")
EVERY_NAME = (*BY_NAME, AS_OF)
_IN_A_STATE = "run, topic, partition, leader, leader_epoch, isr, replicas, from_time, from_offset"
# A function of SQL's: as_of(time) has the rows of partition_states that held then.
_FUNCTION = f"""
create or replace temporary function {AS_OF}(moment timestamp)
returns table (run string, topic string, partition int, leader int, leader_epoch bigint,
  isr array<int>, replicas array<int>, time timestamp, offset bigint)
return select {_IN_A_STATE} from partition_states
where from_time <= {AS_OF}.moment and (to_time is null or to_time > {AS_OF}.moment)
"""


def views(
    spark: SparkSession,
    *paths: Path | str,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> dict[str, DataFrame]:
    """The views of these runs and logs, each a data frame and a temporary view of its name.

    A view is computed when it is read. ``frames["records"].write.parquet(…)`` exports one.

    Arguments:  paths as ``verify`` takes them -> name -> DataFrame (``declared.SHOWN_VIEWS``).
    Errors:  UserError for a path that holds nothing to judge.
    """
    return named_views(spark, paths, EVERY_NAME, limits)


def as_of(frames: Mapping[str, DataFrame], moment: datetime.datetime | str) -> DataFrame:
    """The leader and the ISR of each partition at a moment.

    Arguments:  frames: of ``views``. moment: of the cluster's clock; a text is a date, a time or
                both, in UTC (``2026-11-29 21:34:05``). A time alone is of the one day of the log on
                which it lies; of a run on the virtual clock it is the time since the start,
                ``90s``.
    Errors:  UserError with the span of the log, for a moment outside it or a text that is none.
    """
    from pyspark.sql import functions as f

    states = frames["partition_states"]
    ms = f.unix_millis("from_time")
    bounds = states.agg(f.min(ms), f.max(f.coalesce(f.unix_millis("to_time"), ms))).first()
    assert bounds is not None  # an aggregate has one row
    first, last = bounds
    span = Span(first or 0, last or 0)
    if isinstance(moment, str):
        moment_ms = span.moment_ms(moment, what=AS_OF)
    else:
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
        moment_ms = round(zoned.timestamp() * 1000)
    if moment_ms < span.first_ms:
        raise UserError(
            f"{AS_OF}: {str(moment)!r} is before the first partition; the log goes {span}"
        )
    then = f.timestamp_millis(f.lit(moment_ms))
    lasts = f.col("to_time").isNull() | (f.col("to_time") > then)
    return states.where((f.col("from_time") <= then) & lasts).drop("to_offset", "to_time")


def named_views(
    spark: SparkSession,
    paths: Sequence[Path | str],
    names: Sequence[str],
    limits: ReadLimits,
) -> dict[str, DataFrame]:
    """The views of these names, as ``views`` gives them; each costs Spark an analysis.

    Arguments:  names: those of no view are left out; ``as_of`` is the function.
    Errors:  UserError for a path that holds nothing to judge.
    """
    return shown_in(Tables(spark, paths, limits), spark, names)


def shown_in(tables: Tables, spark: SparkSession, names: Sequence[str]) -> dict[str, DataFrame]:
    """The views of these names over some tables, registered with a session."""
    wanted = dict.fromkeys((*names, "partition_states") if AS_OF in names else names)
    frames = {name: tables.view(BY_NAME[name]) for name in wanted if name in BY_NAME}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    if AS_OF in wanted:
        spark.sql(_FUNCTION)
    return frames


class Tables:
    """The tables of some runs and logs that views read, each registered when it is first needed.

    Arguments:  at_once: the rows of small runs and logs are made in this process, at the first
                need, since starting Python's workers takes longer than to read them; they are kept.
                origins: the URIs of which the paths are copies, where the caller has made them.
    """

    def __init__(
        self,
        spark: SparkSession,
        paths: Sequence[Path | str],
        limits: ReadLimits,
        *,
        origins: Sequence[str | None] | None = None,
        at_once: bool = False,
    ) -> None:
        self._spark = spark
        here = _fetched(spark) if any(map(is_uri, paths)) else None
        self._named = [
            (path.absolute(), name)
            for path, name in named_paths(paths if here is None else here.paths(paths))
        ]
        self._origins = list(
            origins or (None if here is None else here.origin(path) for path, _ in self._named)
        )
        self._limits = limits
        self._forms = {is_on_zookeeper(path) for path, _ in self._named}
        self._known: set[str] = set()
        self._logs: DataFrame | None = None
        for path, _ in self._named:
            locate(path, partly=True, limits=limits)
        self._at_once = at_once and sum(_bytes_of(path) for path, _ in self._named) <= SMALL_BYTES

    @property
    def runs(self) -> list[str]:
        """The names of the runs and logs."""
        return [name for _, name in self._named]

    def view(self, view: ShownView) -> DataFrame:
        """A view, as a query over its tables."""
        return self._spark.sql(self.text(view))

    def text(self, view: ShownView) -> str:
        """The query of a view, whose tables are registered then."""
        by_form = {True: view.znodes, False: view.sql}
        selects = [by_form[form] for form in sorted(self._forms) if by_form[form]]
        selects = selects or [text for text in by_form.values() if text]
        text = " union all ".join(f"({select})" for select in selects)
        for table in _TABLE.findall(text):
            self._register(table)
        columns = ", ".join(f"`{name}`" for name, _, _ in view.columns)
        return f"with shown({columns}) as ({text}) select * from shown"

    def _register(self, table: str) -> None:
        if table not in self._known:
            make = self._made_here if self._at_once else self._planned
            make(table).createOrReplaceTempView(_PREFIX + table)
            self._known.add(table)

    def _made_here(self, table: str) -> DataFrame:
        """The rows of a table, read in this process."""
        items = [Item.at(path, name, self._limits) for path, name in self._named]
        schema = schema_of(table)
        content = pa.Table.from_batches(rows_here(table, items, self._limits), schema)
        if not content.num_rows:
            return self._spark.createDataFrame([], sql_of(schema))
        return self._spark.createDataFrame(content.combine_chunks())

    def _planned(self, table: str) -> DataFrame:
        """The rows of a table as Spark's tasks will make them."""
        from minicluster.verify.spark.pipeline import items_of, logs_of

        limits = self._limits
        if self._logs is None:
            # One scan is planned for all tables, since Spark starts Python for it.
            items = items_of(self._named, limits, self._origins)
            self._logs = logs_of(self._spark, items, limits)

        def show(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return show_rows(table, limits, by_run(rows))

        return self._logs.mapInArrow(show, sql_of(schema_of(table)))


def rows_here(table: str, items: Sequence[Item], limits: ReadLimits) -> Iterator[pa.RecordBatch]:
    """The rows of a table, made in this process.

    Errors:  as ``show_rows``.
    """
    runs = ((item.name, iter(sorted(rows_of(item, limits), key=IN_ORDER))) for item in items)
    return show_rows(table, limits, runs)


def _bytes_of(path: Path) -> int:
    """The size of a log, or of a run's logs and trace."""
    files = [path] if path.is_file() else path.rglob("*")
    kinds = (".log", ".checkpoint", ".parquet", ".jsonl")
    return sum(file.stat().st_size for file in files if file.suffix in kinds and file.is_file())


def _fetched(spark: SparkSession) -> Fetched:
    """Copies of what is on other file systems, which last as long as the session."""
    folder = temporary_folder("shown")
    weakref.finalize(spark, folder.cleanup)
    return Fetched(folder.path, lambda: spark)


def is_on_zookeeper(path: Path) -> bool:
    """The run at a path has znodes in place of a metadata log."""
    file = path / RUN_NAME
    if not file.is_file():
        return False
    try:
        return read_header(file).protocol is not None
    except DamagedHeader:
        return False


def views_of(paths: Sequence[Path | str]) -> list[ShownView]:
    """The views that may have rows for these runs and logs: all for one of another file system."""
    if any(map(is_uri, paths)):
        return list(SHOWN_VIEWS)
    every = [path for path, _ in named_paths(paths)]
    forms = {is_on_zookeeper(path) for path in every}
    has_trace = any((path / RUN_NAME).is_file() for path in every)
    return [
        view
        for view in SHOWN_VIEWS
        if ((view.znodes and True in forms) or (view.sql and False in forms) or view.of_trace)
        and (has_trace or not view.of_trace)
    ]


def mistake_in(error: Exception) -> str:
    """An error of Spark's in one line: of a worker's traceback what it ends with."""
    of_worker = _OF_WORKER.findall(str(error))
    if of_worker:
        return str(of_worker[-1])
    lines = str(error).strip().splitlines()
    if len(lines) > 1 and "Traceback (most recent call last):" in lines[:3]:
        return next((line for line in lines[3:] if line[:1].isalpha()), lines[0])
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling "):
        del lines[0]  # py4j's; the next line has the exception
    return lines[0].removeprefix(": ") if lines else type(error).__name__
