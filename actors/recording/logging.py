"""One structured logger per cluster, on the cluster's clock.

``structlog.configure()`` is global and belongs to the user's program, so it is never called: each
cluster wraps a logger of its own. Entries are kept for failure reports and are the same in every
repetition of a simulated run.

What actors log waits as it was given until somebody reads the entries. Only then structlog is
loaded, whose import brings Rich and asyncio and takes as long as five starts.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any

KEPT_ENTRIES = 1_000


class BoundLog:
    """A logger as actors use it, with values that each of its entries has."""

    __slots__ = ("_values", "_waiting")

    def __init__(self, waiting: Callable[[str, str, dict[str, Any]], None], **values: Any) -> None:
        self._waiting = waiting
        self._values = values

    def bind(self, **values: Any) -> BoundLog:
        """The logger with further values."""
        return BoundLog(self._waiting, **self._values | values)

    def info(self, event: str, **values: Any) -> None:
        """Log the ordinary course of things."""
        self._waiting("info", event, self._values | values)

    def warning(self, event: str, **values: Any) -> None:
        """Log something that a person may want to look at."""
        self._waiting("warning", event, self._values | values)

    def error(self, event: str, **values: Any) -> None:
        """Log a failure."""
        self._waiting("error", event, self._values | values)


class ClusterLog:
    """The cluster's logger and its latest entries."""

    def __init__(self, clock: Callable[[], int], *, level: int = logging.INFO) -> None:
        self._clock = clock
        self._level = level
        self._waiting: deque[tuple[str, str, dict[str, Any]]] = deque(maxlen=KEPT_ENTRIES)
        self._entries: deque[MutableMapping[str, Any]] = deque(maxlen=KEPT_ENTRIES)
        self._logger: Any = None
        self.root = BoundLog(self._wait)

    def _wait(self, method: str, event: str, values: dict[str, Any]) -> None:
        if getattr(logging, method.upper()) >= self._level:
            self._waiting.append((method, event, {**values, "at_ms": self._clock()}))

    @property
    def entries(self) -> deque[MutableMapping[str, Any]]:
        """The latest entries, as structlog makes them."""
        while self._waiting:
            method, event, values = self._waiting.popleft()
            getattr(self._structlog, method)(event, **values)
        return self._entries

    @property
    def _structlog(self) -> Any:
        if self._logger is not None:
            return self._logger
        import structlog

        def keep(_: Any, method: str, event: MutableMapping[str, Any]) -> Any:
            self._entries.append({**event, "level": method})
            raise structlog.DropEvent

        self._logger = structlog.wrap_logger(
            structlog.testing.ReturnLogger(),
            processors=[keep],
            context_class=dict,
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
            cache_logger_on_first_use=True,
        )
        return self._logger

    def lines(self, count: int = 30) -> list[str]:
        """The latest entries as lines for a person."""
        return [_line(entry) for entry in list(self.entries)[-count:]]


def _line(entry: MutableMapping[str, Any]) -> str:
    rest = {k: v for k, v in entry.items() if k not in ("at_ms", "level", "event", "actor")}
    values = " ".join(f"{key}={value}" for key, value in rest.items())
    at_s = entry["at_ms"] / 1000
    return f"{at_s:10.3f}s {entry.get('actor', '-'):<16} {entry['event']} {values}".rstrip()
