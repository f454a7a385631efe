"""Processes of a broker that run one after another, as on one thread of Kafka's.

Lanes run beside each other: a broker that writes its ISR does not wait for its configs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from minicluster.zookeeper.controller.process import Process


class ProcessLane:
    """The processes that wait, and the one that is under way.

    Shapes:  submit gets this lane and the requests to ZooKeeper; their results go to ``resume``.
    """

    def __init__(self, submit: Callable[[ProcessLane, tuple[Any, ...]], None]) -> None:
        self._submit = submit
        self._waiting: deque[tuple[Process[Any], Callable[[Any], None]]] = deque()
        self._running: tuple[Process[Any], Callable[[Any], None]] | None = None

    def run(self, process: Process[Any], done: Callable[[Any], None]) -> None:
        """Run a process when those before it have ended; then call ``done`` with its result."""
        self._waiting.append((process, done))
        self._start_next()

    def resume(self, results: tuple[Any, ...] | None) -> None:
        """Go on with the results that the process waits for; None starts it."""
        assert self._running is not None
        process, done = self._running
        try:
            requests = next(process) if results is None else process.send(results)
        except StopIteration as ended:
            self._running = None
            done(ended.value)
            self._start_next()
        else:
            self._submit(self, requests)

    def _start_next(self) -> None:
        if self._running is None and self._waiting:
            self._running = self._waiting.popleft()
            self.resume(None)
