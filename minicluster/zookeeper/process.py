"""Processes: what a controller or a broker does between requests to ZooKeeper.

Kafka's threads wait for ZooKeeper at each of its requests. Here the work is a generator that yields
the requests, and continues when their results are there: nothing blocks, and a rule reads as
Kafka's. What Kafka runs on one thread runs here in one lane, one process after another; lanes run
beside each other, so a broker that writes its ISR does not wait for its configs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from minicluster.zookeeper.server.operations import Request, Result

T = TypeVar("T")

Process = Generator[tuple[Request, ...], tuple[Result, ...], T]
"""Yields requests that go out together, gets their results in order, returns a T."""


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
        """Continue with the results that the process waits for; None starts it."""
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
