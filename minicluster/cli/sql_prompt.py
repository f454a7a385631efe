"""The prompt of ``minicluster sql PATH``: queries over views, while Spark stays warm.

========  =====================================================
`\\d`      the views
`\\d VIEW` its columns
`\\x`      rows vertically, or tables where they fit
`\\q`      ends, as Ctrl-D does
========  =====================================================

`help`, `exit` and `quit` are commands as well, where no query has begun.

A query ends with a semicolon or an empty line. Ctrl-C ends a query, and not the prompt. A command
between the lines of a query leaves them as they are.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from minicluster.cli.options import TEXT
from minicluster.cli.result_rows import Rows, described, lines_of
from minicluster.cli.terminal import complain, print_line, print_lines
from minicluster.errors import UserError, counted
from minicluster.verify.shown.declared import SHOWN_VIEWS, ShownView, view_named

FIRST, NEXT = "sql> ", "  -> "
_WORDS = {"help": "\\?", "exit": "\\q", "quit": "\\q"}
HELP = "\\d lists the views, \\d VIEW its columns, \\x turns rows, exit ends; a query ends with ;"
_HISTORY_LINES = 1_000
_AS_OF = ("as_of(timestamp'…')", "the leader and the ISR of each partition at a moment")


class Queries(Protocol):
    """Runs the queries of a prompt."""

    def run(self, query: str) -> Rows:
        """The rows of a query.

        Errors:  UserError with one line.
        """

    def cancel(self) -> None:
        """End what a query has left running."""


class Prompt:
    """Reads queries and prints their rows.

    Shapes:  read: gives the next line after a prompt, EOFError at the end. width: of the terminal,
             None where there is none. views: those that may have rows.
    """

    def __init__(
        self,
        queries: Queries,
        read: Callable[[str], str],
        *,
        form: str = TEXT,
        width: Callable[[], int | None] = lambda: None,
        views: Sequence[ShownView] = SHOWN_VIEWS,
    ) -> None:
        self._queries = queries
        self._read = read
        self._form = form
        self._width = width
        self._views = views
        self._vertical = False
        self.has_failed = False

    def loop(self) -> None:
        """Run every query until the input ends."""
        lines: list[str] = []
        while True:
            try:
                line = self._read(NEXT if lines else FIRST)
            except KeyboardInterrupt:
                print_line("")
                lines = []
                continue
            except EOFError:
                if lines:
                    self._query("\n".join(lines))
                return
            if not lines:
                line = _WORDS.get(line.strip().rstrip(";").lower(), line)
            if line.lstrip().startswith("\\"):
                if not self._command(line.strip()):
                    return
                continue
            if line.strip():
                lines.append(line)
            if lines and (line.rstrip().endswith(";") or not line.strip()):
                self._query("\n".join(lines))
                lines = []

    def _query(self, text: str) -> None:
        query = text.strip().rstrip(";").strip()
        if not query:
            return
        try:
            result = self._queries.run(query)
        except UserError as error:
            self.has_failed = True
            complain(str(error))
            return
        except KeyboardInterrupt:
            self._queries.cancel()
            complain("the query was ended")
            return
        self._print(result)

    def _print(self, result: Rows) -> None:
        width, vertical = self._width(), self._vertical
        print_lines(lines_of(result, self._form, width=width, vertical=vertical))
        if self._form == TEXT and width is not None:
            print_line(f"({counted(len(result.rows), 'row')})")

    def _print_described(self, result: Rows) -> None:
        if self._form != TEXT or self._vertical:
            self._print(result)
        else:
            print_lines(described(result, width=self._width()))

    def _command(self, line: str) -> bool:
        """Do what a line that begins with a backslash says; False: it ends the prompt."""
        name, *arguments = line.split()
        match name, arguments:
            case "\\q", []:
                return False
            case "\\x", []:
                self._vertical = not self._vertical
                print_line(
                    "rows are vertical" if self._vertical else "rows are tables where they fit"
                )
            case "\\d", []:
                self._print_described(
                    Rows(("view", "rows"), [*((v.name, v.about) for v in self._views), _AS_OF])
                )
            case "\\d", [view]:
                self._describe(view)
            case _:
                print_line(HELP)
        return True

    def _describe(self, name: str) -> None:
        try:
            self._print_described(Rows(("column", "type", "meaning"), view_named(name).columns))
        except UserError as error:
            complain(str(error))


@contextlib.contextmanager
def line_editing(history: Path | None, names: list[str]) -> Iterator[None]:
    """Keys, completion of names and a history of lines, where this Python has them."""
    try:
        import readline
    except ImportError:
        yield
        return

    def complete(text: str, place: int) -> str | None:
        matching = [name for name in names if name.startswith(text)]
        return matching[place] if place < len(matching) else None

    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(_HISTORY_LINES)
    if history is not None:
        with contextlib.suppress(OSError):
            readline.read_history_file(history)
    try:
        yield
    finally:
        if history is not None:
            with contextlib.suppress(OSError):
                history.parent.mkdir(parents=True, exist_ok=True)
                readline.write_history_file(history)


def read_line(prompt: str) -> str:
    """The next line of standard input; the prompt is for people."""
    if sys.stdin.isatty():
        return input(prompt)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")
