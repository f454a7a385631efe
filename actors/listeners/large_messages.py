"""The thread that decodes large requests and encodes large responses.

The interpreter lets the thread of I/O take its turns meanwhile, so other connections are served.
One thread, not several: each that calculates makes all others wait longer for the interpreter.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from minicluster.actors.listeners.connection import Decode, Encode

Then = Callable[[Any], None]
Work = tuple[Decode | Encode, Then]


class LargeMessages:
    """A queue of work, and its thread, which begins with the first of it."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._work = queue.SimpleQueue[Work | None]()
        self._thread: threading.Thread | None = None

    def put(self, effect: Decode | Encode, then: Then) -> None:
        """Have an effect's result made; its receiver is called in the thread that makes it."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="minicluster-large-messages", daemon=True
            )
            self._thread.start()
        self._work.put((effect, then))

    def close(self, timeout_s: float) -> None:
        """End the thread after what it does now."""
        if self._thread is not None:
            while not self._work.empty():
                self._work.get()
            self._work.put(None)
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            effect, then = work
            try:
                then(effect.result())
            except Exception as error:
                self._failed(error)
            del work, effect, then  # else they are kept until the next one comes
