"""Durations as people write them ("10s", "1m30s", 10) and as code holds them (milliseconds)."""

from __future__ import annotations

import re

from minicluster.errors import UserError

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000}
LONGEST_H = 366 * 24
LONGEST_MS = LONGEST_H * 3_600_000
_SECONDS = re.compile(r"\d{1,12}(\.\d{1,12})?")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)")


def parse_duration_ms(text: object, *, what: str = "duration") -> int:
    """Read a duration: a number of seconds, or text with units.

    Units:   milliseconds out; in: ms, s, m (or min), h, also joined ("1m30s"); seconds without one.
    Errors:  UserError for an unknown unit, a negative number, an empty text, more than a year.
    """
    if isinstance(text, int | float) and not isinstance(text, bool) and text >= 0:
        if text > LONGEST_H * 3_600:
            raise UserError(f"{what}: {_shown(text)} is more than a year of seconds")
        return round(text * 1_000)
    if isinstance(text, str):
        rest, total_ms = text.strip(), 0.0
        if _SECONDS.fullmatch(rest):
            rest += "s"
        if rest:
            while rest and (part := _PART.match(rest)):
                total_ms += float(part[1]) * _UNIT_MS[part[2]]
                rest = rest[part.end() :].lstrip()
            if not rest and total_ms > LONGEST_MS:
                raise UserError(f"{what}: {text[:30]!r} is more than a year ({LONGEST_H}h)")
            if not rest:
                return round(total_ms)
    example = "seconds, or a number with a unit, such as 10s"
    raise UserError(f"{what}: {_shown(text)} is not a duration; write {example}")


def _shown(value: object) -> str:
    return repr(value)[:60] if not isinstance(value, int) or abs(value) < 10**18 else "this number"


def format_duration(duration_ms: int) -> str:
    """Write milliseconds in the largest unit that keeps them whole."""
    for unit in ("h", "m", "s"):
        if duration_ms and duration_ms % _UNIT_MS[unit] == 0:
            return f"{duration_ms // _UNIT_MS[unit]}{unit}"
    return f"{duration_ms}ms"
