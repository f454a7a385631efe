"""The thread that folds for the recorder of a cluster that clients use for long.

Rows of thousands of partitions become JSON and columns in it, a part at a time, so that no actor
waits for that. One thread, not several: rows keep their order, and each thread that calculates
makes all others wait longer for the interpreter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class FoldingThread:
    """A thread that works when it is woken, until it has nothing to do.

    Shapes:  fold: a part of the work -> whether another part follows at once. failed: called with
             what a part has raised; it is tried again when the thread is woken the next time.
    """

    def __init__(self, fold: Callable[[], bool], failed: Callable[[Exception], None]) -> None:
        self._fold, self._failed = fold, failed
        self._woken = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="minicluster-recorder", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Have it work; no effect while it is about to."""
        if not self._woken.is_set():
            self._woken.set()

    def close(self) -> None:
        """End it after the part that it does now."""
        self._ended = True
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._woken.wait()
            self._woken.clear()  # before it works: who wakes it meanwhile may have more
            try:
                while not self._ended and self._fold():
                    pass
            except Exception as error:
                self._failed(error)
            if self._ended:
                return
