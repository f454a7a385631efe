"""Markdown pages with generated parts: text by hand around them, and markers that bound them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; numbers are aligned to the right."""
    body = [[_cell(value) for value in row] for row in rows]
    numbers = [
        bool(body) and all(re.fullmatch(r"[\d,]*", row[column]) for row in body)
        for column in range(len(head))
    ]
    rule = ["--:" if number else "---" for number in numbers]
    return "\n".join("| " + " | ".join(line) + " |" for line in (list(head), rule, *body))


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def versions(declared: range) -> str:
    """A range of versions: ``0-3``."""
    first, last = declared[0], declared[-1]
    return str(first) if first == last else f"{first}-{last}"


def with_parts(page: str, parts: Mapping[str, str]) -> str:
    """A page with its generated parts written again; a new part gets a section at the end.

    Errors:  ValueError for markers of a part that there is no longer.
    """
    placed = re.findall(r"<!-- generated: (\S+) -->", page)
    if gone := [name for name in placed if name not in parts]:
        raise ValueError(f"there is nothing to generate for the parts {gone}; take them out")
    for name, text in parts.items():
        if name not in placed:
            page = f"{page.rstrip()}\n\n## {name}\n\n<!-- generated: {name} -->\n<!-- end -->\n"
        bounds = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.S)
        page = bounds.sub(lambda m, text=text: f"{m[1]}\n{text}\n\n{m[2]}", page, count=1)  # type: ignore[misc]
    return page


def differing_parts(page: str, parts: Mapping[str, str]) -> list[str]:
    """The generated parts of a page that are not up to date, and those that it has not."""
    present = dict(re.findall(r"<!-- generated: (\S+) -->\n(.*?)<!-- end -->", page, re.S))
    return [
        name
        for name in sorted({*parts, *present})
        if present.get(name, "").strip("\n") != parts.get(name)
    ]
