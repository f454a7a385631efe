"""The real clock, without the time in which the machine stopped this process.

A machine that is shared may let a process wait for seconds. All of its threads then wait, so none
of them was slow: no session of a broker or client has expired, and no limit of a wait is over.
The time of day has gone on (``Runtime.behind_ms``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LATE_MAX_S = 0.25  # between two reads; what is beyond it is a stall


class WallClock:
    """Seconds that pass between reads, as long as somebody reads several times a second."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self.monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._seen_s = monotonic_s()
        self._lost_s = 0.0

    def read_s(self) -> float:
        """The time now; it never goes back, in any thread."""
        with self._lock:
            now_s = self.monotonic_s()
            late_s = now_s - self._seen_s
            if late_s > LATE_MAX_S:
                self._lost_s += late_s - LATE_MAX_S
            self._seen_s = now_s
            return now_s - self._lost_s
