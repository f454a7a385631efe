"""One structured logger per cluster, on the cluster's clock.

Entries are kept for failure reports and are the same in every repetition of a simulated run. They
go nowhere else, so the logging of the user's program is left alone. No library: those that log in
this way load their console with them, which takes longer than the start of a cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

KEPT_ENTRIES = 1_000

Entry = Mapping[str, Any]


class NodeLog:
    """A logger with what each of its entries has in common."""

    __slots__ = ("_cluster", "_context")

    def __init__(self, cluster: ClusterLog, context: Entry) -> None:
        self._cluster = cluster
        self._context = context

    def bind(self, **context: Any) -> NodeLog:
        """A logger for one actor; bind once, not per message."""
        return NodeLog(self._cluster, {**self._context, **context})

    def info(self, event: str, **values: Any) -> None:
        """Something happened."""
        self._cluster.keep("info", event, self._context, values)

    def warning(self, event: str, **values: Any) -> None:
        """Something happened that should be rare."""
        self._cluster.keep("warning", event, self._context, values)

    def error(self, event: str, **values: Any) -> None:
        """Something happened that ends a process."""
        self._cluster.keep("error", event, self._context, values)


class ClusterLog:
    """The cluster's latest entries."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.entries: deque[Entry] = deque(maxlen=KEPT_ENTRIES)
        self._clock = clock

    def bind(self, **context: Any) -> NodeLog:
        """A logger for one node."""
        return NodeLog(self, context)

    def keep(self, level: str, event: str, context: Entry, values: Entry) -> None:
        """Add an entry."""
        entry = {**context, **values, "event": event, "at_ms": self._clock(), "level": level}
        self.entries.append(entry)

    def lines(self, count: int = 30) -> list[str]:
        """The latest entries as lines for a person."""
        return [_line(entry) for entry in list(self.entries)[-count:]]


def _line(entry: Entry) -> str:
    rest = {k: v for k, v in entry.items() if k not in ("at_ms", "level", "event", "actor")}
    values = " ".join(f"{key}={value}" for key, value in rest.items())
    at_s = entry["at_ms"] / 1000
    return f"{at_s:10.3f}s {entry.get('actor', '-'):<16} {entry['event']} {values}".rstrip()
