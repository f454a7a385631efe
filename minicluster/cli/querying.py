"""The command ``sql``: queries over the views of runs and logs."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from minicluster.cli.options import TEXT, limits_option, path_type
from minicluster.cli.result_rows import FORMS, Rows, lines_of
from minicluster.cli.terminal import complain, out, print_line, print_lines, progress
from minicluster.errors import UserError, counted, instead
from minicluster.log.errors import NotALog
from minicluster.log.format.limits import ReadLimits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from minicluster.verify.shown.frames import Tables

_HISTORY = "sql-history"
_CHANGES = re.compile(r"\s*(delete|update|insert|merge|truncate|drop|alter|replace)\b", re.I)
_TRIES = 5
_LOGS_OF_PY4J = (None, "py4j.clientserver")  # it logs to the root as well
_SAID_OF_INTERRUPTS = (
    "KeyboardInterrupt while sending command",
    "Exception occurred while shutting down connection",
)


class _SqlCommand(click.Command):
    """The command; one of two arguments that is given shows which is missing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        words: tuple[str, ...] = ctx.params["words"]
        if len(words) == 1 and _is_query(words[0]):
            ctx.fail(f"a path is missing: minicluster sql PATH {words[0]!r}")
        return rest


@click.command("sql", cls=_SqlCommand)
@click.argument("words", metavar="PATH... [QUERY]", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    default=TEXT,
    show_default=True,
    help="For people, for programs, or for pages.",
)
@click.option("--limit", type=click.IntRange(1), default=1_000, show_default=True, help="Rows.")
@click.option("--parquet", type=path_type, help="Write all rows to this folder instead.")
@limits_option
def sql_command(
    words: tuple[str, ...],
    form: str,
    limit: int,
    parquet: Path | None,
    limits: ReadLimits,
) -> int:
    """Run QUERY, a SELECT over the views of PATH (docs/reference/views.md lists them).

    Without a query: a prompt, which reads queries from standard input.
    """
    from minicluster.verify.evidence.file_systems import is_uri
    from minicluster.verify.spark import session

    query = words[-1] if _is_query(words[-1]) else None
    paths = words if query is None else words[:-1]
    if parquet is not None and query is None:
        raise UserError("--parquet: give a query whose rows to write")
    if parquet is not None and parquet.exists():
        raise UserError(f"--parquet: {parquet}: it is there already; name a new folder")
    for path in paths:
        if not is_uri(path) and not Path(path).exists():
            raise NotALog(f"{path}: there is no such file or folder")
    session.warm_up()
    queries = SparkQueries(paths, limits, limit)
    if query is None:
        return _prompt(queries, form)
    with progress() as shown:
        shown.add_task("querying in Spark", total=None)
        if parquet is not None:
            queries.write(query, parquet)
            print_line(f"parquet {parquet}")
            return 0
        rows = queries.run(query)
    print_lines(lines_of(rows, form, width=_width()))
    return 0


def _is_query(word: str) -> bool:
    """An argument with spaces that is not a path."""
    return re.search(r"\s", word.strip()) is not None and not Path(word).exists()


def _width() -> int | None:
    """The width of the terminal to which rows go, None where they go elsewhere."""
    return out.width if sys.stdout.isatty() else None


def _prompt(queries: SparkQueries, form: str) -> int:
    from minicluster.cli.sql_prompt import HELP, Prompt, line_editing, read_line
    from minicluster.verify.shown.frames import views_of

    views = views_of(queries.paths)
    prompt = Prompt(queries, read_line, form=form, width=_width, views=views)
    if not sys.stdin.isatty():
        prompt.loop()
        return UserError.exit_code if prompt.has_failed else 0
    names = [column for view in views for column, _, _ in view.columns]
    names = sorted({view.name for view in views} | set(names))
    with progress() as shown:
        shown.add_task("starting Spark", total=None)
        queries.start()
    print_line(HELP)
    with _interrupts_of_our_own(), line_editing(_history(), names):
        prompt.loop()
    print_line("")
    return 0


def _history() -> Path | None:
    """Where the prompt keeps its lines: a cache folder, which ``MINICLUSTER_CACHE`` may name.

    Shapes:  -> None where the variable is ``off``.
    """
    chosen = os.environ.get("MINICLUSTER_CACHE")
    if chosen == "off":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(chosen or Path(base).expanduser() / "minicluster") / _HISTORY


@contextmanager
def _interrupts_of_our_own() -> Iterator[None]:
    """Ctrl-C is a KeyboardInterrupt and nothing else.

    Spark's own handler talks to Java in the midst of another answer of Java's, and py4j logs what
    comes of that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    logs = [logging.getLogger(name) for name in _LOGS_OF_PY4J]
    for log in logs:
        log.addFilter(_is_no_interrupt)
    try:
        yield
    finally:
        for log in logs:
            log.removeFilter(_is_no_interrupt)
        signal.signal(signal.SIGINT, before)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_SAID_OF_INTERRUPTS)


class SparkQueries:
    """Queries over the views of some paths; a view is registered when a query first names it.

    Shapes:  limit: the most rows of one query.
    """

    def __init__(self, paths: Sequence[str], limits: ReadLimits, limit: int) -> None:
        self.paths = paths
        self._limits = limits
        self._limit = limit
        self._spark: SparkSession | None = None
        self._tables: Tables | None = None
        self._registered: set[str] = set()

    def start(self) -> SparkSession:
        """Start Spark, and find what there is to query.

        Errors:  UserError for a path that holds nothing.
        """
        from minicluster.verify.shown.frames import Tables
        from minicluster.verify.spark import session

        if self._tables is None:
            self._spark = session.spark_session()
            self._tables = Tables(self._spark, self.paths, self._limits, at_once=True)
        assert self._spark is not None
        return self._spark

    def run(self, query: str) -> Rows:
        """The rows of a query, as many as there may be; one line says if there are more.

        Errors:  UserError with one line.
        """
        with _in_utc():
            names, rows = self._tried(query, self._rows)
        if len(rows) > self._limit:
            complain(f"the first {counted(self._limit, 'row')}; --limit shows more")
        return Rows(names, [tuple(row) for row in rows[: self._limit]])

    def _rows(self, frame: DataFrame) -> tuple[list[str], list[Any]]:
        return frame.columns, frame.limit(self._limit + 1).collect()

    def write(self, query: str, folder: Path) -> None:
        """Write the rows of a query as Parquet.

        Errors:  UserError with one line.
        """
        self._tried(query, lambda frame: frame.write.parquet(_folder(folder)))

    def cancel(self) -> None:
        """End what a query has left running.

        For a connection that Ctrl-C has cut, py4j lets Java close those of the same port, which is
        the port of all: the next one, too, may end while it begins.
        """
        from py4j.protocol import Py4JNetworkError

        spark = self._spark
        if spark is None or not hasattr(spark, "_jsc"):
            return
        for _ in range(_TRIES):
            with suppress(Py4JNetworkError):
                spark.sparkContext.cancelAllJobs()
                return

    def _tried(self, query: str, act: Any) -> Any:
        from minicluster.verify.shown.frames import shown_in

        if _CHANGES.match(query):
            raise UserError("sql: views are read-only; give a SELECT")
        spark = self.start()
        assert self._tables is not None
        new = set(re.findall(r"\w+", query)) - self._registered
        try:
            shown_in(self._tables, spark, sorted(new))
            self._registered |= new
            return act(spark.sql(query))
        except UserError:
            raise
        except Exception as error:
            if _is_of_ctrl_c(error):
                raise KeyboardInterrupt from None
            raise UserError(f"sql: {_mistake(error, self.paths)}") from None


def _is_of_ctrl_c(error: BaseException) -> bool:
    """True if an error came while Spark tidied up after a KeyboardInterrupt, and took its place."""
    before = error.__context__
    return before is not None and (isinstance(before, KeyboardInterrupt) or _is_of_ctrl_c(before))


@contextmanager
def _in_utc() -> Iterator[None]:
    """Spark gives Python the times of a query in the time zone of the process."""
    if not hasattr(time, "tzset"):
        yield
        return
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


def _folder(path: Path) -> str:
    """The path for Java, whose own working folder is another."""
    from minicluster.verify.evidence.file_systems import is_uri, uri_of

    return uri_of(path) if is_uri(path) else str(path.absolute())


def _mistake(error: Exception, paths: Sequence[str]) -> str:
    """The first line of Spark's message; of an unknown view the names of those that there are."""
    from minicluster.verify.shown.frames import mistake_in, views_of

    first = mistake_in(error)
    unknown = re.match(r"\[TABLE_OR_VIEW_NOT_FOUND\].*?`(\w+)`", first)
    if unknown is None:
        return first
    return f"unknown view {unknown[1]!r}; {instead(unknown[1], [v.name for v in views_of(paths)])}"
