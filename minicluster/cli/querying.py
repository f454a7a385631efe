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
from minicluster.cli.terminal import out, print_line, print_lines, progress
from minicluster.errors import UserError, instead
from minicluster.log.format.limits import ReadLimits


class _SqlCommand(click.Command):
    """The command; where one of two arguments is given, its content shows which is missing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(args))
        except click.MissingParameter:
            given, _, _ = self.make_parser(ctx).parse_args(list(args))
            only = given.get("query")
            if isinstance(only, str) and not re.search(r"\s", only.strip()):
                ctx.fail(f"a query is missing: minicluster sql {only} 'select …'")
            raise


@click.command("sql", cls=_SqlCommand)
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

    if parquet is not None and parquet.exists():
        raise UserError(f"--parquet: {parquet}: it is there already; name a new folder")
    session.warm_up()
    with progress() as shown:
        shown.add_task("querying in Spark", total=None)
        spark = session.spark_session()
        named_views(spark, paths, re.findall(r"\w+", query), limits)
        try:
            frame = spark.sql(query)
            if parquet is not None:
                frame.write.parquet(_folder(parquet))
                print_line(f"parquet {parquet}")
                return 0
            names, rows = frame.columns, frame.limit(limit).collect()
        except Exception as error:
            raise UserError(f"sql: {_mistake(error)}") from None
    if form == JSON:
        print_lines(json.dumps(row.asDict(recursive=True), default=str) for row in rows)
        return 0
    table = Table(*names, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(_shown(value) for value in row))
    out.print(table, markup=False)
    return 0


def _folder(path: Path) -> str:
    """The path for Java, whose own working folder is another."""
    from minicluster.verify.evidence.file_systems import is_uri, uri_of

    return uri_of(path) if is_uri(path) else str(path.absolute())


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(str, value)) + "]"
    return "" if value is None else str(value)


def _mistake(error: Exception) -> str:
    """The first line of Spark's message; of an unknown view the names of those that there are."""
    from minicluster.verify.shown.declared import SHOWN_VIEWS

    lines = str(error).strip().splitlines()
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling "):
        del lines[0]  # py4j's; the next line has the exception
    first = lines[0].removeprefix(": ") if lines else type(error).__name__
    unknown = re.match(r"\[TABLE_OR_VIEW_NOT_FOUND\].*?`(\w+)`", first)
    if unknown is None:
        return first
    return f"{unknown[1]!r} is no view; {instead(unknown[1], [v.name for v in SHOWN_VIEWS])}"
