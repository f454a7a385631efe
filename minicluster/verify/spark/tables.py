"""The tables that the queries read: facts of the logs, traces of the runs, folded images."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from minicluster.trace import TABLES
from minicluster.verify.engine.checks import tables_of
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.evidence.trace_tables import ARROW_TYPES, read_table
from minicluster.verify.rules import VIEWS
from minicluster.verify.rules.model import Evidence, Rule, View
from minicluster.verify.rules.promises import promises_of
from minicluster.verify.spark.facts import Facts
from minicluster.verify.spark.images import (
    IMAGE_SCHEMA,
    image_rows,
    snapshot_ends,
    snapshot_rows,
)
from minicluster.verify.spark.schemas import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SQL = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.list_(pa.int32()): "array<int>",
    pa.list_(pa.int64()): "array<bigint>",
    pa.list_(pa.string()): "array<string>",
}
HEADER_SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "trace_hash": pa.string(),
        "repeat_trace_hash": pa.string(),
        "crashes": pa.int64(),
        "controller_faults": pa.int64(),
        "stale_indexes": pa.list_(pa.int32()),
    }
)
TIMING_SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "healed_ms": pa.int64(),  # when the last disturbance ended; null: one lasts
        "ended_ms": pa.int64(),
        "brokers": pa.list_(pa.int32()),
        "bounds": pa.string(),  # JSON: promise -> milliseconds
    }
)
SNAPSHOT_SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "node": pa.int32(),
        "offset": pa.int64(),  # where it ends, exclusive
        "epoch": pa.int32(),
        "hash": pa.string(),  # what it holds
        "expected_hash": pa.string(),  # what the log makes; null: that ends no batch
        "expected_epoch": pa.int32(),
        "in_log": pa.bool_(),  # the fold of the log reaches from before it to its end
        "timestamp": pa.int64(),  # what its header has as the time of the last batch
        "expected_timestamp": pa.int64(),
        "configs": pa.int32(),  # how many topics it has configs of and lacks
        "orphan": pa.string(),  # the first of them
    }
)


def trace_schema(table: str) -> pa.Schema:
    """The Arrow schema of a trace table as the queries see it."""
    columns = {"run": pa.string(), "vt": pa.int64(), "seq": pa.int64()}
    columns |= {name: ARROW_TYPES[kind] for name, kind in TABLES[table].items()}
    if table == "publish":
        columns["first_image"] = pa.int64()  # the first offset at which the log can be folded
        columns["empty_images"] = pa.bool_()  # the release may publish an empty image
    return pa.schema(columns)


@cache
def table_columns() -> dict[str, tuple[str, ...]]:
    """The columns of every table that a view may read."""
    schemas = {
        **SCHEMAS,
        **{name: trace_schema(name) for name in TABLES},
        "headers": HEADER_SCHEMA,
        "timing": TIMING_SCHEMA,
        "images": IMAGE_SCHEMA,
        "snapshots": SNAPSHOT_SCHEMA,
    }
    return {name: tuple(schema.names) for name, schema in schemas.items()}


def gather(
    runs: Sequence[Run], rules: Sequence[Rule], views: Mapping[str, View] = VIEWS
) -> tuple[dict[str, pa.Table], list[Run]]:
    """Every table that the rules need, and the runs with what went wrong on the way.

    A run without a trace adds no rows to trace tables.
    """
    facts = Facts()
    for run in runs:
        facts.add(run)
    tables = facts.tables()
    problems: dict[str, list[Problem]] = {}
    named = {table for rule in rules for view in rule.views for table in tables_of(view, views)}
    folded = [views[view] for rule in rules for view in rule.views if views[view].fold]
    if any(not view.reads for view in folded):
        named = set(TABLES) | {"snapshots"}  # a function may read any
    wanted = [table for table in TABLES if table in named or any(table in r.tables for r in rules)]
    is_traced = any(run.is_run for run in runs)
    for table in wanted if is_traced else ():
        tables[table] = _trace(table, runs, problems)
    images, snapshots = _folds(
        runs,
        problems,
        published="publish" in wanted or "images" in named,
        snapshots="snapshots" in named,
    )
    tables["snapshots"] = pa.Table.from_pylist(snapshots, schema=SNAPSHOT_SCHEMA)
    if not is_traced:
        return tables, _with_problems(runs, problems)
    tables["images"] = pa.Table.from_pylist(images, schema=IMAGE_SCHEMA)
    headers = [
        {
            "run": run.name,
            "trace_hash": run.header.trace_hash,
            "repeat_trace_hash": run.header.repeat_trace_hash,
            "crashes": run.header.crashes,
            "controller_faults": run.header.controller_faults,
            "stale_indexes": run.header.stale_indexes,
        }
        for run in runs
        if run.header is not None
    ]
    tables["headers"] = pa.Table.from_pylist(headers, schema=HEADER_SCHEMA)
    timing = [
        {
            "run": run.name,
            "healed_ms": run.header.healed_ms,
            "ended_ms": run.header.ended_at_ms,
            "brokers": run.header.brokers,
            "bounds": json.dumps(dict(run.header.bounds_ms)),
        }
        for run in runs
        if run.header is not None
    ]
    tables["timing"] = pa.Table.from_pylist(timing, schema=TIMING_SCHEMA)
    return tables, _with_problems(runs, problems)


def _with_problems(runs: Sequence[Run], problems: Mapping[str, list[Problem]]) -> list[Run]:
    return [replace(run, problems=(*run.problems, *problems.get(run.name, ()))) for run in runs]


def _folds(
    runs: Sequence[Run],
    problems: dict[str, list[Problem]],
    *,
    published: bool,
    snapshots: bool,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The folds of the logs, beside what nodes published and beside their snapshots.

    Shapes:  -> rows of images, rows of snapshots. A log without a trace is folded for its snapshots
             alone.
    """
    images: list[dict[str, Any]] = []
    states: list[dict[str, Any]] = []
    for run in runs:
        ends = snapshot_ends(run) if snapshots else frozenset()
        every = published and run.is_run
        if not every and not ends:
            continue
        rows, problem = image_rows(run, None if every else ends)
        images += rows if every else ()
        states += snapshot_rows(run, rows) if snapshots else ()
        if problem is not None:
            problems.setdefault(run.name, []).append(problem)
    return images, states


def _trace(table: str, runs: Sequence[Run], problems: dict[str, list[Problem]]) -> pa.Table:
    """One trace table over all runs, named by run; a run whose table cannot be read adds no row."""
    schema = trace_schema(table)
    parts = []
    for run in runs:
        if table not in run.trace:
            continue
        as_written = f"trace/{table}.parquet" in ((run.header and run.header.written) or {})
        read, why = read_table(run.trace[table], table, as_written=as_written)
        if read is None:
            problem = Problem(evidence=Evidence.TRACE, why=str(why), table=table)
            problems.setdefault(run.name, []).append(problem)
            continue
        more = {"run": pa.array([run.name] * read.num_rows, type=pa.string())}
        if table == "publish":
            first = 0 if run.start is None else run.start.end_offset - 1
            more["first_image"] = pa.array([first] * read.num_rows, type=pa.int64())
            empty = promises_of(run.rules).empty_images
            more["empty_images"] = pa.array([empty] * read.num_rows, type=pa.bool_())
        columns = [more[name] if name in more else read[name] for name in schema.names]
        parts.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def has_rows(view: View, tables: Mapping[str, pa.Table]) -> bool:
    """A view may have rows."""
    table, column, value = view.empty_unless or (None, None, None)
    if table is None or table not in tables:
        return True
    rows = tables[table]
    if column is None:
        return bool(rows.num_rows)
    return bool(pc.any(pc.equal(rows[column], value)).as_py())


def frames(spark: SparkSession, tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """The tables as data frames."""
    return {name: _sent(spark, table) for name, table in tables.items()}


def _sent(spark: SparkSession, table: pa.Table) -> Any:
    if table.num_rows:
        # Spark 4.3 stops at an empty chunk, which a run without rows leaves in a table of many.
        return spark.createDataFrame(table.combine_chunks())
    return spark.createDataFrame([], sql_schema(table.schema))


def sql_schema(schema: pa.Schema) -> str:
    """An Arrow schema as SQL's DDL; naming it spares Spark a job that reads it from the file."""
    return ", ".join(f"`{column.name}` {_SQL[column.type]}" for column in schema)
