"""Durations as people write them ("10s", "1m30s") and as code holds them (milliseconds)."""

from __future__ import annotations

import re

from minicluster.errors import UserError

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000}
LONGEST_H = 366 * 24
LONGEST_MS = LONGEST_H * 3_600_000
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)")


def parse_duration_ms(text: object, *, what: str = "duration") -> int:
    """Read a duration with its unit.

    Units:   milliseconds out; in: ms, s, m (or min), h, also joined ("1m30s").
    Errors:  UserError for a bare number, an unknown unit, a negative or an empty text, more than a
             year.
    """
    if isinstance(text, str):
        rest, total_ms = text.strip(), 0.0
        if rest:
            while rest and (part := _PART.match(rest)):
                total_ms += float(part[1]) * _UNIT_MS[part[2]]
                rest = rest[part.end() :].lstrip()
            if not rest and total_ms > LONGEST_MS:
                raise UserError(f"{what}: {text[:30]!r} is more than a year ({LONGEST_H}h)")
            if not rest:
                return round(total_ms)
    shown = repr(text)[:60] if not isinstance(text, int) or abs(text) < 10**18 else "this number"
    raise UserError(f"{what}: {shown} is not a duration; write a number with a unit, such as 10s")


def format_duration(duration_ms: int) -> str:
    """Write milliseconds in the largest unit that keeps them whole."""
    for unit in ("h", "m", "s"):
        if duration_ms and duration_ms % _UNIT_MS[unit] == 0:
            return f"{duration_ms // _UNIT_MS[unit]}{unit}"
    return f"{duration_ms}ms"
