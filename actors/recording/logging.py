"""One structured log per cluster, on the cluster's clock.

Entries are kept for failure reports and are the same in every repetition of a simulated run.
Nothing of Python's own logging, which belongs to the user's program, is touched. No library is
used: structlog, which would do the same, loads Rich, Pygments and asyncio at its import, and that
took an eighth of the time of a first start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

KEPT_ENTRIES = 1_000
INFO, WARNING, ERROR = "info", "warning", "error"
_LEVELS = (INFO, WARNING, ERROR)


class Log:
    """A log whose entries carry the same values, such as the node and the actor."""

    __slots__ = ("_bound", "_of_cluster")

    def __init__(self, of_cluster: ClusterLog, bound: Mapping[str, Any]) -> None:
        self._of_cluster = of_cluster
        self._bound = bound

    def bind(self, **values: Any) -> Log:
        """The log with further values in each entry."""
        return Log(self._of_cluster, {**self._bound, **values})

    def info(self, event: str, **values: Any) -> None:
        """Keep an entry about the ordinary course of things."""
        self._of_cluster.keep(INFO, event, {**self._bound, **values})

    def warning(self, event: str, **values: Any) -> None:
        """Keep an entry about something that a person may want to see to."""
        self._of_cluster.keep(WARNING, event, {**self._bound, **values})

    def error(self, event: str, **values: Any) -> None:
        """Keep an entry about a failure."""
        self._of_cluster.keep(ERROR, event, {**self._bound, **values})


class ClusterLog:
    """The cluster's log and its latest entries, from a level on."""

    def __init__(self, clock: Callable[[], int], *, level: str = INFO) -> None:
        self.entries: deque[Mapping[str, Any]] = deque(maxlen=KEPT_ENTRIES)
        self.root = Log(self, {})
        self._clock = clock
        self._kept = frozenset(_LEVELS[_LEVELS.index(level) :])

    def keep(self, level: str, event: str, values: Mapping[str, Any]) -> None:
        """Keep an entry with the time."""
        if level in self._kept:
            entry = {**values, "event": event, "at_ms": self._clock(), "level": level}
            self.entries.append(entry)

    def lines(self, count: int = 30) -> list[str]:
        """The latest entries as lines for a person."""
        return [_line(entry) for entry in list(self.entries)[-count:]]


def _line(entry: Mapping[str, Any]) -> str:
    rest = {k: v for k, v in entry.items() if k not in ("at_ms", "level", "event", "actor")}
    values = " ".join(f"{key}={value}" for key, value in rest.items())
    at_s = entry["at_ms"] / 1000
    return f"{at_s:10.3f}s {entry.get('actor', '-'):<16} {entry['event']} {values}".rstrip()
