"""The rows of a query as text: a table, vertically, CSV, lines of JSON, Markdown.

A cell is never cropped. A table that is wider than the terminal is printed vertically, row by row;
where the output goes elsewhere it is as wide as it is.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.cells import cell_len

from minicluster.cli.options import JSON, TEXT
from minicluster.errors import printable
from minicluster.values import Value

CSV, MARKDOWN = "csv", "markdown"
FORMS = (TEXT, JSON, CSV, MARKDOWN)
_DESCRIPTION_MIN = 20  # columns that a description can be read in


class Rows(Value):
    """Rows of a query, with the names of its columns, of which several may be the same."""

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]


def lines_of(
    result: Rows, form: str, *, width: int | None = None, vertical: bool = False
) -> Iterator[str]:
    """The lines to print.

    Shapes:  form: one of ``FORMS``. width: of the terminal; None: there is none. vertical: of text,
             row by row even where a table would fit.
    """
    match form:
        case "json":
            return _json(result)
        case "csv":
            return _csv(result)
        case "markdown":
            return _markdown(result)
    texts = [[_text(value) for value in row] for row in result.rows]
    widths = [max(map(cell_len, column)) for column in zip(result.names, *texts, strict=True)]
    is_wide = width is not None and sum(widths) + 2 * (len(widths) - 1) > width
    has_lines = any("\n" in text for row in texts for text in row)
    if texts and (vertical or is_wide or has_lines):
        return _vertical(result.names, texts)
    is_number = [
        all(value is None or _is_number(value) for value in column)
        for column in zip(*result.rows, strict=True)
    ] or [False] * len(widths)
    return _table(result.names, texts, widths, is_number)


def described(result: Rows, *, width: int | None) -> Iterator[str]:
    """The lines of a table that describes things: its last column wraps where it is too wide."""
    used = sum(max(len(name), *map(len, cells)) + 2 for name, *cells in _columns(result)[:-1])
    room = None if width is None else width - used
    if room is None or room < _DESCRIPTION_MIN:
        return lines_of(result, TEXT, width=width)
    rows: list[Sequence[str]] = []
    for *heads, text in result.rows:
        first, *others = textwrap.wrap(text, room) or [""]
        rows += [(*heads, first), *((*[""] * len(heads), line) for line in others)]
    return lines_of(Rows(result.names, rows), TEXT, width=width)


def _columns(result: Rows) -> list[tuple[str, ...]]:
    return list(zip(result.names, *result.rows, strict=True))


def _table(
    names: Sequence[str], texts: Iterable[Sequence[str]], widths: list[int], right: list[bool]
) -> Iterator[str]:
    for row in (names, ["─" * width for width in widths], *texts):
        padded = (
            _padded(printable(text), width, is_right)
            for text, width, is_right in zip(row, widths, right, strict=True)
        )
        yield "  ".join(padded).rstrip()


def _padded(text: str, width: int, is_right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if is_right else text + space


def _vertical(names: Sequence[str], texts: Iterable[Sequence[str]]) -> Iterator[str]:
    width = max(map(cell_len, names))
    for number, row in enumerate(texts, 1):
        yield f"─ row {number} {'─' * width}"
        for name, text in zip(names, row, strict=True):
            first, *others = text.split("\n") if text else [""]
            yield f"{_padded(name, width, False)}  {printable(first)}".rstrip()
            yield from (f"{' ' * width}  {printable(line)}".rstrip() for line in others)


def _csv(result: Rows) -> Iterator[str]:
    for row in (result.names, *result.rows):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow([_text(value) for value in row])
        yield line.getvalue()


def _json(result: Rows) -> Iterator[str]:
    for row in result.rows:
        content = dict(zip(result.names, map(_plain, row), strict=True))
        yield json.dumps(content, default=str)


def _markdown(result: Rows) -> Iterator[str]:
    marks = ["---"] * len(result.names)
    for row in (result.names, marks, *([_text(value) for value in row] for row in result.rows)):
        cells = (printable(text.replace("\n", " ")).replace("|", "\\|") for text in row)
        yield f"| {' | '.join(cells)} |"


def _plain(value: Any) -> Any:
    """A row of Spark's, in a column, as what JSON has for it."""
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime) and not value.microsecond % 1000:
        return value.isoformat(" ", "milliseconds")
    return "" if value is None else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
