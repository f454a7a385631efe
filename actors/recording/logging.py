"""One structured logger per cluster, on the cluster's clock.

``structlog.configure()`` is global and belongs to the user's program, so it is never called: each
cluster wraps a logger of its own. Entries are kept for failure reports and are the same in every
repetition of a simulated run.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

KEPT_ENTRIES = 1_000


class ClusterLog:
    """The cluster's logger and its latest entries."""

    def __init__(self, clock: Callable[[], int], *, level: int = logging.INFO) -> None:
        self.entries: deque[MutableMapping[str, Any]] = deque(maxlen=KEPT_ENTRIES)

        def stamp(_: Any, method: str, event: MutableMapping[str, Any]) -> Any:
            event["at_ms"] = clock()
            event["level"] = method
            return event

        def keep(_: Any, __: str, event: MutableMapping[str, Any]) -> Any:
            self.entries.append(event)
            raise structlog.DropEvent

        self.root: Any = structlog.wrap_logger(
            structlog.testing.ReturnLogger(),
            processors=[stamp, keep],
            context_class=dict,
            wrapper_class=structlog.make_filtering_bound_logger(level),
            cache_logger_on_first_use=True,
        ).bind()  # once and for all: what wrap_logger gives puts itself together at each bind

    def lines(self, count: int = 30) -> list[str]:
        """The latest entries as lines for a person."""
        return [_line(entry) for entry in list(self.entries)[-count:]]


def _line(entry: MutableMapping[str, Any]) -> str:
    rest = {k: v for k, v in entry.items() if k not in ("at_ms", "level", "event", "actor")}
    values = " ".join(f"{key}={value}" for key, value in rest.items())
    at_s = entry["at_ms"] / 1000
    return f"{at_s:10.3f}s {entry.get('actor', '-'):<16} {entry['event']} {values}".rstrip()
