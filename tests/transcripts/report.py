"""The outcome of each step from a player; the count of steps over many files."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicluster.errors import UserError

AGREE = "agree"
DIFFER = "differ"
NOT_BUILT = "not built"
HASH_ORDER = "hash order"
OTHER_MESSAGE = "message"
NOT_LOGGED = "not logged"  # ours, where the recording has a gap
VERDICTS = (AGREE, DIFFER, OTHER_MESSAGE, HASH_ORDER, NOT_LOGGED, NOT_BUILT)


class NotBuilt(Exception):
    """A transcript has an event that its player does not have."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One step: which operation it was, how it came out, and what to show of it."""

    operation: str
    verdict: str
    where: str = ""
    detail: str = ""


@dataclass(slots=True)
class Tally:
    """Steps counted per operation and verdict."""

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    shown: list[Outcome] = field(default_factory=list)

    def add(self, outcomes: Iterable[Outcome], show: int) -> None:
        """Count some steps, and keep the first differences to show."""
        for outcome in outcomes:
            row = self.counts.setdefault(outcome.operation, dict.fromkeys(VERDICTS, 0))
            row[outcome.verdict] += 1
            if outcome.verdict in (DIFFER, OTHER_MESSAGE) and len(self.shown) < show:
                self.shown.append(outcome)

    def total(self, verdict: str) -> int:
        """The number of steps with a verdict."""
        return sum(row[verdict] for row in self.counts.values())

    def as_text(self) -> str:
        """A table, and the differences that were kept."""
        width = max([len(name) for name in self.counts] + [len("all")])
        lines = [f"{'':{width}}" + "".join(f"{verdict:>12}" for verdict in VERDICTS)]
        rows = dict(sorted(self.counts.items()))
        rows["all"] = {verdict: self.total(verdict) for verdict in VERDICTS}
        for name, row in rows.items():
            lines.append(f"{name:{width}}" + "".join(f"{row[v]:>12,}" for v in VERDICTS))
        for outcome in self.shown:
            lines += ["", f"{outcome.where} {outcome.operation}", outcome.detail]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "operations": {name: dict(row) for name, row in sorted(self.counts.items())},
            "all": {verdict: self.total(verdict) for verdict in VERDICTS},
            "differences": [
                {"where": o.where, "operation": o.operation, "detail": o.detail} for o in self.shown
            ],
        }


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a transcript, compressed or not.

    Errors:  UserError, a line that names the file and what is wrong with it.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    try:
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UserError(f"{path}: neither a text nor a gzip file: {error}") from error
    lines = text.rstrip().splitlines()
    if not lines:
        raise UserError(f"{path}: the file is empty")
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{path}: line {number} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise UserError(f"{path}: line {number} is no JSON object")
        yield value


def require(value: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    """Look whether a line of a transcript has what its player reads.

    Errors:  UserError, a line that names the first one missing.
    """
    for name in names:
        if name not in value:
            raise UserError(f"{what} has no {name}")
