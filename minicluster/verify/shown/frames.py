"""The views for people as data frames of a Spark session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.segment import read_segment, segment_name
from minicluster.own_folders import temporary_folder
from minicluster.trace import TABLES
from minicluster.verify.engine.checks import SOURCE
from minicluster.verify.evidence.reading import read_runs
from minicluster.verify.evidence.run import Run
from minicluster.verify.rules import RULES, VIEWS
from minicluster.verify.shown.declared import SHOWN_VIEWS, ShownView
from minicluster.verify.spark.facts import Facts
from minicluster.verify.spark.rows import ARROW_TYPES, COLUMNS, Rows
from minicluster.verify.spark.tables import frames, gather, trace_schema
from minicluster.verify.spark.travel import Fetched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES = [name for name, _ in COLUMNS]
_PREFIX = "minicluster_"
_TABLE = re.compile(rf"\b{_PREFIX}(\w+)")
_FILE = segment_name(0)
_FOLDS = {
    "record_times": "select run, offset, timestamp_millis(timestamp) as time from log_records",
    **{name: VIEWS[name].sql for name in ("broker_states", "partition_states")},
}


def views(
    spark: SparkSession, *paths: Path | str, limits: ReadLimits = DEFAULT_LIMITS
) -> dict[str, Any]:
    """The views of these runs and logs, each a data frame and a temporary view of its name.

    A view is computed when it is read. ``frames["records"].write.parquet(…)`` exports one.

    Shapes:  paths as ``verify`` takes them -> name -> DataFrame (``declared.SHOWN_VIEWS``).
    Errors:  UserError for a path that holds nothing to judge.
    """
    return named_views(spark, paths, [view.name for view in SHOWN_VIEWS], limits)


def named_views(
    spark: SparkSession, paths: Sequence[Path | str], names: Sequence[str], limits: ReadLimits
) -> dict[str, Any]:
    """The views of these names, as ``views`` gives them; each costs Spark an analysis.

    Errors:  UserError for a path that holds nothing to judge.
    """
    with temporary_folder("fetched") as folder:  # the tables hold all of a run
        runs = read_runs(Fetched(folder.path, lambda: spark).paths(paths), limits)
        tables = _tables(runs)
    forms = {run.on_zookeeper for run in runs}
    texts = {v.name: _text(v, tables, forms) for v in SHOWN_VIEWS if v.name in names}
    read = {name for text in texts.values() for name in _TABLE.findall(text)}
    needed = {name: table for name, table in tables.items() if name in read}
    for name, frame in frames(spark, needed).items():  # each costs Java a tenth of a second
        frame.createOrReplaceTempView(_PREFIX + name)
    found = {name: spark.sql(text) for name, text in texts.items()}
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    return found


def _text(view: ShownView, tables: Mapping[str, object], forms: set[bool]) -> str:
    """The query of a view, with the tables and folds that it needs before it.

    Shapes:  forms: True for a run on ZooKeeper, False for metadata logs.
    """
    by_form = {True: view.znodes, False: view.sql}
    found = [by_form[form] for form in sorted(forms) if by_form[form]]
    sql = " union all ".join(f"({one})" for one in found or filter(None, by_form.values()))
    parts: dict[str, str] = {}

    def need(sql: str) -> None:
        for name in SOURCE.findall(sql):
            if name in parts:
                continue
            if name in _FOLDS:
                need(_FOLDS[name])
                parts[name] = _FOLDS[name]
            elif name in tables:
                parts[name] = f"select * from {_PREFIX}{name}"

    need(sql)
    before = "".join(f"{name} as ({sql}), " for name, sql in parts.items())
    columns = ", ".join(f"`{name}`" for name, _, _ in view.columns)
    return f"with {before}shown({columns}) as ({sql}) select * from shown"


def _tables(runs: list[Run]) -> dict[str, pa.Table]:
    tables, _ = gather(runs, RULES)
    if not tables:
        tables = Facts().tables()
    for name in TABLES:
        if name not in tables:
            tables[name] = trace_schema(name).empty_table()
    tables["log_records"] = _records(runs, snapshots=False)
    tables["checkpoint_records"] = _records(runs, snapshots=True)
    return tables


def _records(runs: list[Run], *, snapshots: bool) -> pa.Table:
    """The records of the committed logs, or those of the checkpoints beside them."""
    rows = Rows(_NAMES)
    schema = pa.schema({"run": pa.string(), **{name: ARROW_TYPES[name] for name in _NAMES}})
    batches = []
    for run in runs:
        parts = _of_snapshots(run, rows) if snapshots else rows.of(run.committed, file=_FILE)
        for part in parts:
            names = pa.array([run.name] * part.num_rows, type=pa.string())
            batches.append(pa.RecordBatch.from_arrays([names, *part.columns], schema=schema))
    return pa.Table.from_batches(batches, schema=schema)


def _of_snapshots(run: Run, rows: Rows) -> list[pa.RecordBatch]:
    found = []
    for node in run.nodes:
        for end, _, path in node.snapshots:
            content = read_segment(path, whole=True, limits=node.files.limits)
            batches = [placed.batch for placed in content.batches]
            found += list(rows.of(batches, file=path.name, snapshot_end=end))
    return found
