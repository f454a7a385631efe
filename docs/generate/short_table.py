"""The short table of conformance: the comparisons with Kafka and their outcome.

It travels as a property of a test's report, so that it also arrives from a worker of xdist.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    what: str
    agree: int
    differ: int
    not_built: int


def as_property(lines: Iterable[Line]) -> str:
    """The lines as a report carries them."""
    return json.dumps([astuple(line) for line in lines])


def short_table(carried: str) -> list[str]:
    """The table for a terminal, out of what a report carried."""
    lines = [Line(*values) for values in json.loads(carried)]
    width = max(len(line.what) for line in lines)
    head = f"{'':{width}}  {'agree':>7}  {'differ':>7}  {'not built':>9}"
    return [head] + [
        f"{line.what:{width}}  {line.agree:7,}  {line.differ:7,}  {line.not_built:9,}"
        for line in lines
    ]
