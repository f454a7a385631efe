"""The processor time of each step that a cluster on threads takes: a message of an actor, an event
of a socket, a timer. Another connection's request waits behind one such step at most.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any


class HandlerTimes:
    """Milliseconds of the processor that each kind of step took."""

    def __init__(self) -> None:
        self.of: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, name: str, began_s: float) -> None:
        """A step of this thread ends."""
        self.of[name].append((time.thread_time() - began_s) * 1000)

    @property
    def slowest_ms(self) -> float:
        return max((max(used) for used in self.of.values()), default=0.0)

    def slowest(self, count: int) -> list[tuple[str, list[float]]]:
        """The kinds with the longest single step."""
        return sorted(self.of.items(), key=lambda item: -max(item[1]))[:count]


def watch_handlers() -> HandlerTimes:
    """Measure every cluster of this process; before its first one."""
    from minicluster.actors.listeners.server import Listeners
    from minicluster.actors.runtime.threaded import ThreadedBackend, ThreadedRuntime

    times = HandlerTimes()
    ready, call, post = Listeners._ready, Listeners._call, ThreadedRuntime.post

    def _handle_receive(self: Any, message: Any) -> Any:
        began_s = time.thread_time()
        try:
            return super(ThreadedBackend, self)._handle_receive(message)
        finally:
            times.add(f"{type(self).__name__} {_name(message)}", began_s)

    def _ready(self: Any, data: Any, mask: int) -> None:
        began_s = time.thread_time()
        ready(self, data, mask)
        times.add(f"socket {type(data).__name__}", began_s)

    def _call(self: Any, function: Callable[[], None]) -> None:
        name = getattr(function, "func", function).__qualname__
        call(self, partial(_timed, times, f"socket {name}", function))

    def _post(self: Any, when_ms: int, function: Callable[[Any], None], argument: Any) -> None:
        name = f"timer {getattr(function, '__qualname__', function)}"
        post(self, when_ms, partial(_timed, times, name, function), argument)

    ThreadedBackend._handle_receive = _handle_receive  # type: ignore[method-assign]
    Listeners._ready, Listeners._call = _ready, _call  # type: ignore[method-assign]
    ThreadedRuntime.post = _post  # type: ignore[method-assign]
    _watch_collections(times)
    return times


def _watch_collections(times: HandlerTimes) -> None:
    """The garbage collector stops all threads; it is a part of the step in which it happens."""
    began_s = 0.0

    def on_collection(phase: str, details: dict[str, int]) -> None:
        nonlocal began_s
        if phase == "start":
            began_s = time.thread_time()
        else:
            times.add(f"garbage of generation {details['generation']}", began_s)

    gc.callbacks.insert(0, on_collection)


def _timed(times: HandlerTimes, name: str, function: Callable[..., None], *arguments: Any) -> None:
    began_s = time.thread_time()
    function(*arguments)
    times.add(name, began_s)


def _name(message: Any) -> str:
    exchange = getattr(message, "exchange", None)
    if exchange is not None:
        return f"{type(message).__name__} {exchange.api}"
    return f"{type(message).__name__} {getattr(message, 'name', '')}".strip()
