"""The paced runtime: a simulated one whose clock follows the wall's.

``pace`` is the speed: 1.0 is real time, 10 is ten times as fast. The clock never runs ahead of the
wall, and a machine that is too slow makes it late without making it jump.

It has two phases. At first time passes only while the test's thread waits, as in any simulated
run, so the run stays the same run. Once clients may come (``run_alone``) a thread of its own
carries all actors, and the test's thread may block elsewhere. Calls from other threads are then
events at the current time (``inject``), or take place between two instants (``exclusive``).

**Invariant:** without clients a run has the trace hash of the unpaced one (``test_paced.py``).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from minicluster.actors.runtime import garbage, tripwire
from minicluster.actors.runtime.runtime import LeakedThread
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.actors.runtime.threaded import POLL_S, STOP_TIMEOUT_S

LATE_MAX_S = 0.05  # the clock follows the wall's from here on, when the machine was too slow
_monotonic = time.monotonic


class PacedRuntime(SimulatedRuntime):
    """All actors of a cluster in one thread at a time, at the pace of the wall clock."""

    def __init__(self, *, seed: int = 0, pace: float = 1.0) -> None:
        super().__init__(seed=seed)
        self.pace = pace
        self.instants = 0  # handled by the thread so far
        self._paced = False
        self._anchor: tuple[float, float] = (0.0, 0)  # the wall's seconds, and the clock's time
        self._turn = threading.Condition(threading.RLock())  # held by the thread that has the turn
        self._wanted: deque[None] = deque()  # one for each thread that waits for the turn
        self._depth = 0  # how often its owner has taken it
        self._owner = 0
        self._calls: deque[Callable[[], None]] = deque()
        self._sleeping = False
        self._moved = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._left_out_ms = 0.0  # of the cluster's time, because the machine was too slow

    # From other threads.

    def begin_pace(self) -> None:
        """Let time follow the wall clock from now on; before, nothing waits."""
        self._paced = True
        self._set_anchor()

    @property
    def runs_alone(self) -> bool:
        """True once a thread of its own carries the cluster."""
        return self._thread is not None

    def run_alone(self) -> None:
        """Let time pass by itself from now on."""
        with self.exclusive():
            if self._thread is None and not self._closed:
                self.begin_pace()
                garbage.cluster_begins()
                self.at_close.append(garbage.cluster_closes)
                self._thread = threading.Thread(
                    target=self._carry, name="minicluster-paced", daemon=True
                )
                self._thread.start()

    def record_time_ms(self) -> int:
        return super().record_time_ms() if self.runs_alone else self.now()  # else it has no day

    @property
    def behind_ms(self) -> int:
        if not self.runs_alone:
            return 0
        return self.behind_wall_ms() if self.pace == 1 else int(self._left_out_ms)

    def inject(self, call: Callable[[], None]) -> None:
        self._calls.append(call)
        if self._thread is None:
            self.run_alone()
        elif self._sleeping:
            with self._turn:
                self._turn.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        self._take()
        try:
            yield
        finally:
            self._give()

    def _take(self) -> None:
        self._wanted.append(None)
        try:
            self._turn.acquire()
        finally:
            self._wanted.pop()
        self._depth += 1
        if self._depth == 1:
            self._owner = threading.get_ident()
            if self._thread is not None and threading.current_thread() is not self._thread:
                self._advance(self._wall_ms())

    def _give(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = 0
            self._turn.notify_all()
        self._turn.release()

    def _rest(self, seconds: float | None = None) -> None:
        """Leave the turn to others for a while, at most."""
        depth, owner = self._depth, self._owner
        self._depth = self._owner = 0
        self._turn.wait(seconds)
        self._depth, self._owner = depth, owner

    def _reject_in_actor(self) -> None:
        with self._turn:  # an actor of another thread has taken its step
            super()._reject_in_actor()

    def run_for(self, duration_ms: int) -> None:
        with self.exclusive():
            self._reject_in_actor()
            until_ms = self.now_ms + duration_ms
        self._run(until_ms, None)

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        with self.exclusive():
            self._reject_in_actor()
            until_ms = self.now_ms + within_ms
        return self._run(until_ms, condition)

    def close(self) -> None:
        self._closed = True
        thread = self._thread
        if thread is not None:
            with self.exclusive():
                pass  # wakes it
            thread.join(STOP_TIMEOUT_S)
            if thread.is_alive():
                raise LeakedThread("minicluster-paced still runs after the cluster stopped")
        super().close()

    def _collect_rarely(self) -> None:
        """Never: its thread will take steps that nothing counts, for hours."""

    # In the first phase: the waiting thread carries the cluster.

    def _run(self, until_ms: int, condition: Callable[[], bool] | None) -> bool:
        if self._thread is None:
            with self.exclusive():
                if not self._paced:
                    return super()._run(until_ms, condition)
                self._set_anchor()
                with tripwire.standing():
                    while self._thread is None:
                        if self._handle_instant(condition):
                            return True
                        if self.now_ms >= until_ms and not self._due(until_ms):
                            return condition is None
                        self._continue(until_ms)
        return self._watch(until_ms, condition)

    def _handle_instant(self, condition: Callable[[], bool] | None) -> bool:
        """Handle all that is due now; True when the condition holds then."""
        self._turns()
        if self._halted:
            self.check()
        return condition is not None and condition()

    def _due(self, at_ms: int) -> bool:
        """True if a timer or a call is due at a time or before."""
        return bool(self._calls) or bool(self._instants and self._instants[0] <= at_ms)

    def _continue(self, until_ms: int | None = None) -> None:
        """Make the calls of other threads, else fire the timers that are due, else sleep."""
        while self._wanted:
            self._rest()
        wall_ms = self._wall_ms()
        instants = self._instants
        if self._calls:
            self._advance(wall_ms)
            while self._calls:
                self._calls.popleft()()
            return
        next_ms = instants[0] if instants else None
        if until_ms is not None and (next_ms is None or next_ms > until_ms):
            next_ms = until_ms
        if next_ms is not None and next_ms <= wall_ms:
            self.now_ms = max(self.now_ms, next_ms)
            self._fire_timers()
            return
        sleep_s = None if next_ms is None else (next_ms - wall_ms) / 1000 / self.pace
        self._sleeping = True
        if not self._calls and not self._closed:
            self._rest(sleep_s)
        self._sleeping = False

    # In the second phase: the thread of the runtime carries it, and others watch.

    def _carry(self) -> None:
        with self._turn, tripwire.standing():
            while not self._closed:
                if self._halted:
                    self._wake_watchers()
                    self._rest()  # the rest of the run proves nothing
                    continue
                try:
                    self._turns()
                    self._wake_watchers()
                    self._continue()
                except BaseException as error:
                    self.interrupted(error)

    def _wake_watchers(self) -> None:
        with self._moved:
            self.instants += 1
            self._moved.notify_all()

    def _watch(self, until_ms: int, condition: Callable[[], bool] | None) -> bool:
        """Evaluate a condition after instants, without the turn: it may wait for a client."""
        depth = self._depth if self._owner == threading.get_ident() else 0
        with self.exclusive():
            alarm = self.schedule(until_ms, _nothing, None)
        for _ in range(depth):
            self._give()
        try:
            while True:
                seen = self.instants
                self.check()
                is_over = self.now_ms >= until_ms or self._closed
                if condition is not None and condition():
                    return True
                if is_over:
                    return condition is None
                with self._moved:
                    while self.instants == seen:
                        self._moved.wait()
                time.sleep(POLL_S)
        finally:
            for _ in range(depth):
                self._take()
            with self.exclusive():
                alarm.cancel()

    # The clock.

    def _set_anchor(self) -> None:
        self._anchor = (_monotonic(), self.now_ms)

    def _wall_ms(self) -> float:
        """The time that the clock should have; after a delay of the machine the anchor is moved."""
        at_s, at_ms = self._anchor
        wall_ms = at_ms + (_monotonic() - at_s) * 1000 * self.pace
        late_max_ms = LATE_MAX_S * 1000 * self.pace
        first_ms = self._instants[0] if self._instants else wall_ms
        if wall_ms - first_ms > late_max_ms:
            self._anchor = (_monotonic(), first_ms)
            self._left_out_ms += wall_ms - first_ms
            return first_ms
        return wall_ms

    def _advance(self, wall_ms: float) -> None:
        """Move the clock to the wall's, but not past a timer that is due."""
        latest_ms = int(wall_ms)
        if self._instants:
            latest_ms = min(latest_ms, self._instants[0])
        self.now_ms = max(self.now_ms, latest_ms)


def _nothing(_: object) -> None:
    """The call of an alarm: its instant is all that is wanted."""
