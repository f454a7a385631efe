"""Moments of a log as people write them: ``21:34``, ``2026-11-29 21:34:05``, in a run ``10s``."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta

from minicluster.durations import parse_duration_ms
from minicluster.errors import UserError
from minicluster.values import Value

_CALENDAR_MS = 10**11  # above, a timestamp is a moment of the calendar
_DAY = timedelta(days=1)
_DURATION = re.compile(r"[\d.]+\s*(ms|s|min|m|h)\b.*")
_DAYS_MAX = 366


class Span(Value):
    """The time between the first record of a log and the last one.

    Units:  milliseconds since 1970, of a run on the virtual clock since its start.
    """

    first_ms: int
    last_ms: int

    @property
    def is_calendar(self) -> bool:
        """Its times are of the calendar, and not of a virtual clock."""
        return self.first_ms > _CALENDAR_MS

    def __str__(self) -> str:
        first, last = shown_moment(self.first_ms), shown_moment(self.last_ms)
        return f"from {first} to {last}{' (UTC)' if self.is_calendar else ''}"

    def moment_ms(self, text: str, *, what: str) -> int:
        """Read a moment.

        Shapes:  what: names the text in an error. A date, a time or both, in UTC unless it names
                 another zone: ``2026-11-29``, ``21:34``, ``2026-11-29 21:34:05.120``. A time alone
                 is of the one day of the log on which it lies. On the virtual clock of a run: the
                 time since its start, ``90s``.
        Errors:  UserError with the span of the log.
        """
        words = text.strip()
        if not self.is_calendar and _DURATION.fullmatch(words):
            return parse_duration_ms(words, what=what)
        with suppress(ValueError):
            if self.is_calendar:
                return self._of_day(time.fromisoformat(words), what, text)
        try:
            moment = datetime.fromisoformat(words)
        except ValueError:
            why = "is no moment; write 2026-11-29 21:34:05 or 21:34 (UTC)"
            if not self.is_calendar:
                why = "is no time since the start of the run, such as 90s"
            raise self._mistake(what, text, why) from None
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return round(zoned.timestamp() * 1000)

    def check(self, moment_ms: int, text: str, *, what: str) -> None:
        """Reject a moment at which nothing of the log lies.

        Errors:  UserError.
        """
        if not self.first_ms <= moment_ms <= self.last_ms:
            raise self._mistake(what, text, "is outside the log")

    def _of_day(self, of_day: time, what: str, text: str) -> int:
        zone = of_day.tzinfo or UTC
        first, last = (self._day(ms) for ms in (self.first_ms, self.last_ms))
        days = [first + n * _DAY for n in range(-1, min((last - first).days, _DAYS_MAX) + 2)]
        moments = [round(datetime.combine(day, of_day, zone).timestamp() * 1000) for day in days]
        # A time without seconds means the minute: the log may begin or end within it.
        inside = [ms for ms in moments if self.first_ms - 60_000 < ms <= self.last_ms]
        if len(inside) == 1:
            return inside[0]
        if not inside:
            raise self._mistake(what, text, "is outside the log")
        why = f"lies on {len(inside)} days of the log; write the date as well"
        raise self._mistake(what, text, why)

    @staticmethod
    def _day(ms: int) -> date:
        return datetime.fromtimestamp(ms / 1000, UTC).date()

    def _mistake(self, what: str, text: str, why: str) -> UserError:
        return UserError(f"{what}: {text!r} {why}; the log goes {self}")


def shown_moment(ms: int) -> str:
    """A moment for people: date and time in UTC, on a virtual clock seconds since the start."""
    if ms <= _CALENDAR_MS:
        return f"{ms / 1000:.3f}s"
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
