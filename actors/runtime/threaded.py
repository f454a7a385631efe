"""The threaded runtime: a thread per actor and the real clock, for when real clients connect."""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import pykka
from pykka import messages

from minicluster.actors.runtime import garbage
from minicluster.actors.runtime.runtime import (
    ClusterActor,
    LeakedThread,
    Runtime,
    blocking_call,
)
from minicluster.actors.runtime.wall_clock import LATE_MAX_S, WallClock

P = ParamSpec("P")
R = TypeVar("R")
POLL_S = 0.001
READ_EVERY_S = LATE_MAX_S / 2  # else the clock would take pauses for stalls
STOP_TIMEOUT_S = 30.0

_here = threading.local()


def _reject_in_actor() -> None:
    actor = getattr(_here, "actor", None)
    if actor is not None:
        raise blocking_call(actor)


def one_at_a_time(call: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A method that actors of several threads call; the instance's ``lock`` lets in one of them."""

    def locked(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return call(self, *args, **kwargs)

    return locked


class ThreadedFuture(pykka.ThreadingFuture[Any]):
    """A future that no actor may make or wait for."""

    def __init__(self) -> None:
        _reject_in_actor()
        super().__init__()

    def get(self, *, timeout: float | None = None) -> Any:
        _reject_in_actor()
        return super().get(timeout=timeout)


class ThreadedBackend(pykka.ThreadingActor):
    """Pykka's threads with a faster inbox (SimpleQueue: about seven times the messages)."""

    rt: ThreadedRuntime

    @staticmethod
    def _create_actor_inbox() -> Any:
        return queue.SimpleQueue()

    @staticmethod
    def _create_future() -> Any:
        return ThreadedFuture()

    def _start_actor_loop(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        name: str = self.name  # type: ignore[attr-defined]
        thread = threading.Thread(target=self._actor_loop, name=f"minicluster-{name}", daemon=True)
        self.thread = thread
        self.rt._start_thread(thread)

    def _actor_loop_setup(self) -> None:
        _here.actor = self.name  # type: ignore[attr-defined]
        super()._actor_loop_setup()

    def _handle_receive(self, message: Any) -> Any:
        if not self.gate.is_set():
            self.gate.wait()
        return super()._handle_receive(message)


class ThreadedRuntime(Runtime):
    """Actors on threads of their own; one more thread fires the timers."""

    mode = "threaded"
    backend = ThreadedBackend

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self._threads: list[threading.Thread] = []
        self.clock = WallClock()
        self._origin_s = self.clock.read_s()
        self._sequence = 0
        self._timers: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._wake = threading.Condition()
        self._closed = False

    @property
    def now_ms(self) -> int:  # type: ignore[override]
        return int((self.clock.read_s() - self._origin_s) * 1000)

    @property
    def behind_ms(self) -> int:
        return self.behind_wall_ms()

    def begin_at(self, time_ms: int) -> None:
        self._origin_s = self.clock.read_s() - time_ms / 1000

    def post(self, when_ms: int, call: Callable[[Any], None], argument: Any) -> None:
        with self._wake:
            self._sequence += 1
            first = not self._timers or when_ms < self._timers[0][0]
            heapq.heappush(self._timers, (when_ms, self._sequence, call, argument))
            if first:
                self._wake.notify()

    def run_for(self, duration_ms: int) -> None:
        _reject_in_actor()
        self.run_until(lambda: False, duration_ms)

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        _reject_in_actor()
        until_ms = self.now_ms + within_ms
        while True:
            self.check()
            is_over = self.now_ms >= until_ms  # before the last look, which may come late
            if condition():
                return True
            if is_over:
                return False
            time.sleep(POLL_S)

    def pause(self, names: tuple[str, ...]) -> None:
        for name in names:
            actor: Any = self._actors.get(name)
            if actor is not None:
                actor.gate.clear()

    def resume(self, names: tuple[str, ...]) -> None:
        for name in names:
            actor: Any = self._actors.get(name)
            if actor is not None:
                actor.gate.set()

    def _tick(self) -> None:
        while True:
            with self._wake:
                while not self._closed:
                    left_s = READ_EVERY_S
                    passed_s = self.clock.read_s() - self._origin_s
                    if self._timers:
                        left_s = min(left_s, self._timers[0][0] / 1000 - passed_s)
                    if left_s <= 0:
                        break
                    self._wake.wait(left_s)
                if self._closed:
                    return
                _, _, call, argument = heapq.heappop(self._timers)
            call(argument)

    def _open(self) -> None:
        if not self._threads:
            garbage.cluster_begins()
            self.at_close.append(garbage.cluster_closes)
            clock = threading.Thread(target=self._tick, name="minicluster-timers", daemon=True)
            self._start_thread(clock)

    def _start_thread(self, thread: threading.Thread) -> None:
        """Start a thread that ``_close`` waits for; those that have ended are dropped."""
        self._threads = [other for other in self._threads if other.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _discard(self, actor: ClusterActor) -> None:
        threaded: Any = actor
        threaded.gate.set()
        # Wake the loop: a killed actor handles no message, not even this one. The join lets the
        # handler that runs now return first, because a new process is about to get its disk.
        actor.actor_inbox.put(pykka._envelope.Envelope(messages._ActorStop()))
        if threading.current_thread() is not threaded.thread:
            threaded.thread.join(STOP_TIMEOUT_S)

    def _drain(self, actor: ClusterActor) -> None:
        threaded: Any = actor
        threaded.gate.set()
        if threading.current_thread() is not threaded.thread:
            threaded.thread.join(STOP_TIMEOUT_S)

    def _close(self) -> None:
        with self._wake:
            self._closed = True
            self._timers.clear()
            self._wake.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(STOP_TIMEOUT_S)
        alive = [thread.name for thread in self._threads if thread.is_alive()]
        if alive:
            raise LeakedThread(f"still running after the cluster stopped: {', '.join(alive)}")
