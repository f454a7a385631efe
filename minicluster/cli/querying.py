"""The command ``sql``: a query over the views of runs and logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.table import Table

from minicluster.cli.options import JSON, format_option, limits_option, path_type
from minicluster.cli.terminal import out, print_lines, progress
from minicluster.errors import UserError
from minicluster.log.format.limits import ReadLimits


@click.command("sql")
@click.argument("paths", metavar="PATH...", type=path_type, nargs=-1, required=True)
@click.argument("query")
@format_option
@click.option("--limit", type=click.IntRange(1), default=1_000, show_default=True, help="Rows.")
@click.option("--parquet", type=path_type, help="Write all rows to this folder instead.")
@limits_option
def sql_command(
    paths: tuple[Path, ...],
    query: str,
    form: str,
    limit: int,
    parquet: Path | None,
    limits: ReadLimits,
) -> int:
    """Run QUERY, a SELECT over the views of PATH (docs/views.md lists them)."""
    from minicluster.verify.shown.frames import named_views
    from minicluster.verify.spark import session

    session.warm_up()
    with progress() as shown:
        shown.add_task("querying in Spark", total=None)
        spark = session.spark_session()
        named_views(spark, paths, re.findall(r"\w+", query), limits)
        try:
            frame = spark.sql(query)
            if parquet is not None:
                frame.write.parquet(str(parquet))
                return 0
            names, rows = frame.columns, frame.limit(limit).collect()
        except Exception as error:
            raise UserError(f"sql: {_first_line(error)}") from None
    if form == JSON:
        print_lines(json.dumps(row.asDict(recursive=True), default=str) for row in rows)
        return 0
    table = Table(*names, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(_shown(value) for value in row))
    out.print(table, markup=False)
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(str, value)) + "]"
    return "" if value is None else str(value)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
