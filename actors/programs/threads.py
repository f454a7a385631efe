"""Threads of a program: one runs at a time, and each wait of it is one of the virtual clock.

They are threads of the system that hand a baton: the runtime's thread gives it to one and stands
still until that has ended or sleeps. So nothing races, and the seed decides who comes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from minicluster.actors.programs.loop import SimulatedLoop
from minicluster.actors.runtime import tripwire
from minicluster.actors.runtime.runtime import Runtime

_start = threading.Thread.start  # as it is before programs are kept from it


class Owner(Protocol):
    """The process that the threads belong to."""

    name: str
    rt: Runtime
    loop: SimulatedLoop
    is_alive: bool
    is_paused: bool


class Threads:
    """The threads of one process."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._carried: dict[int, Carried] = {}  # by the ident of the thread
        self._due: list[Carried] = []  # while the process is paused

    def run(self, future: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Call a function in a thread, and set the future to what it returns or raises."""
        carried = Carried(self, lambda: function(*args))

        def settle() -> None:
            if not future.done():
                if carried.error is None:
                    future.set_result(carried.value)
                else:
                    future.set_exception(carried.error)

        carried.ended = lambda: self._owner.loop.arrival(carried, settle)
        self.schedule(carried, self._owner.loop.latency_ms())

    def sleep(self, duration_ms: int) -> bool:
        """Let the thread that calls this sleep; False where it is the loop's."""
        carried = self._carried.get(threading.get_ident())
        if carried is not None:
            carried.sleep(duration_ms)
        return carried is not None

    def schedule(self, carried: Carried, delay_ms: int) -> None:
        """Give a thread the baton after a while."""
        rt = self._owner.rt
        rt.post(rt.now_ms + delay_ms, self._resume, carried)

    def wake(self) -> None:
        """The process continues after a pause."""
        due, self._due = self._due, []
        for carried in due:
            self.schedule(carried, 0)

    def end(self) -> None:
        """The process has ended; its threads wait for ever, and do not keep the interpreter."""
        self._carried.clear()
        self._due.clear()

    def _resume(self, carried: Carried) -> None:
        if not self._owner.is_alive:
            return
        if self._owner.is_paused:
            self._due.append(carried)
            return
        carried.take_turn(self._owner, self._carried)


class Carried:
    """A thread that runs while it has the baton."""

    ended: Callable[[], None]

    def __init__(self, threads: Threads, call: Callable[[], Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._threads, self._call = threads, call
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._is_over = False

    def take_turn(self, owner: Any, carried: dict[int, Carried]) -> None:
        """Hand the baton over, and wait until it comes back."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"{owner.name}-thread", daemon=True
            )
            _start(self._thread)
        ident = self._thread.ident or 0
        carried[ident] = self
        before = tripwire.enter_program(owner, ident)
        self._go.release()
        self._back.acquire()
        tripwire.back_to(before)
        if self._is_over:
            carried.pop(ident, None)
            self.ended()

    def sleep(self, duration_ms: int) -> None:
        """Wait in this thread for the virtual clock."""
        self._threads.schedule(self, duration_ms)
        self._back.release()
        self._go.acquire()

    def _run(self) -> None:
        self._go.acquire()
        try:
            self.value = self._call()
        except BaseException as error:
            self.error = error
        self._is_over = True
        self._back.release()
