"""Threads of a program: one runs at a time, and each wait of it is one of the virtual clock.

They are threads of the system that hand a baton: the runtime's thread gives it to one and stands
still until that has ended or waits. So nothing races, and the seed decides who comes first.

A thread waits where its code does: in ``time.sleep``, a lock, a queue, a selector, a join.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any, Protocol

from minicluster.actors.programs.loop import SimulatedLoop
from minicluster.actors.runtime import tripwire
from minicluster.actors.runtime.runtime import Runtime

_start = threading.Thread.start  # as it is before programs have another


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
        self.owner = owner
        self._carried: dict[int, Carried] = {}  # by the ident of the thread
        self._due: list[Carried] = []  # while the process is paused
        self._begun = 0
        self.at_end: list[Callable[[], None]] = []  # calls when the process has ended

    def start(self, call: Callable[[], Any], ended: Callable[[Carried], None]) -> Carried:
        """Make a call in a thread of its own."""
        self._begun += 1
        carried = Carried(self, f"{self.owner.name}-thread-{self._begun}", call, ended)
        carried.resume_at(self.owner.rt.now_ms + self.owner.loop.latency_ms())
        return carried

    def run(self, future: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Call a function in a thread, and set the future to what it returns or raises."""

        def settle(carried: Carried) -> None:
            if not future.done():
                if carried.error is None:
                    future.set_result(carried.value)
                else:
                    future.set_exception(carried.error)

        loop = self.owner.loop
        ended = lambda carried: loop.arrival(carried, lambda: settle(carried))  # noqa: E731
        self.start(lambda: function(*args), ended)

    def current(self) -> Carried | None:
        """The thread that calls this; None where it is the one of the loop's steps."""
        return self._carried.get(threading.get_ident())

    def wake(self) -> None:
        """The process continues after a pause."""
        due, self._due = self._due, []
        for carried in due:
            carried.resume_at(self.owner.rt.now_ms)

    def end(self) -> None:
        """The process has ended; its threads wait for ever, and do not keep the interpreter."""
        self._carried.clear()
        self._due.clear()
        while self.at_end:
            self.at_end.pop()()

    def resume(self, carried: Carried) -> None:
        """Give a thread the baton, if the process runs."""
        if not self.owner.is_alive:
            return
        if self.owner.is_paused:
            self._due.append(carried)
            return
        carried.take_turn(self._carried)


class Carried:
    """A thread that runs while it has the baton."""

    def __init__(
        self,
        threads: Threads,
        name: str,
        call: Callable[[], Any],
        ended: Callable[[Carried], None],
    ) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.is_over = False
        self._threads, self._name, self._call, self._ended = threads, name, call, ended
        self._rt = threads.owner.rt
        # The system's own locks: those of ``threading`` are a program's where it makes them.
        self._go, self._back = allocate_lock(), allocate_lock()
        self._go.acquire()
        self._back.acquire()
        self._thread: threading.Thread | None = None
        self._resume_at: int | None = None

    # From the runtime's thread.

    def resume_at(self, at_ms: int) -> None:
        """Get the baton at a time, or before."""
        if self._resume_at is None or at_ms < self._resume_at:
            self._resume_at = at_ms
            self._rt.post(at_ms, self._resume, at_ms)

    def wake(self) -> None:
        """Look at the condition that the thread waits for, soon."""
        if not self.is_over:
            self.resume_at(self._rt.now_ms + self._threads.owner.loop.latency_ms())

    def take_turn(self, carried: dict[int, Carried]) -> None:
        """Hand the baton over, and wait until it comes back."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            _start(self._thread)
        ident = self._thread.ident or 0
        carried[ident] = self
        owner: Any = self._threads.owner
        before = tripwire.enter_program(owner, ident)
        self._go.release()
        self._back.acquire()
        tripwire.back_to(before)
        if self.is_over:
            carried.pop(ident, None)
            self._ended(self)

    def _resume(self, at_ms: int) -> None:
        if at_ms == self._resume_at and not self.is_over:
            self._resume_at = None
            self._threads.resume(self)

    # From the thread itself.

    def block(self, holds: Callable[[], bool], duration_ms: int | None) -> bool:
        """Give the baton back until a condition holds or the time is over; True if it holds."""
        until_ms = None if duration_ms is None else self._rt.now_ms + duration_ms
        while not holds():
            if until_ms is not None:
                if self._rt.now_ms >= until_ms:
                    return False
                self.resume_at(until_ms)
            self._back.release()
            self._go.acquire()
        return True

    def _run(self) -> None:
        self._go.acquire()
        try:
            self.value = self._call()
        except BaseException as error:
            self.error = error
        self.is_over = True
        self._back.release()
