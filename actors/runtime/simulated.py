"""The simulated runtime: one thread, a seeded scheduler, a virtual clock.

Of the actors that have messages, one is picked by stateless chance and takes one message: each
draws a number for its turn, and the smallest is first. Every inbox is first in, first out, so
Pykka's order per sender holds. When no actor has a message, the clock jumps to the next timer.
Nothing here waits, so an hour of cluster time takes seconds.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any
from weakref import finalize

import pykka
from pykka import messages

from minicluster.actors.runtime import chance, tripwire
from minicluster.actors.runtime.runtime import ClusterActor, Runtime, blocking_call
from minicluster.errors import MiniclusterError

STEPS_PER_INSTANT_MAX = 200_000
STEPS_PER_COLLECTION = 50_000
STEPS_PER_COLLECTION_MAX = 16 * STEPS_PER_COLLECTION
STEPS_PER_GARBAGE = 10  # an unreachable object for so many steps is little


class Livelock(MiniclusterError, AssertionError):
    """The actors kept each other busy without letting the clock move."""


class _Idle(BaseException):
    """Leaves Pykka's receive loop after one message.

    Each raise is a new one: an exception keeps the frames that it passed through, and those hold
    the cluster.
    """


_Envelope = pykka._envelope.Envelope
_number = attrgetter("number")


class Stopped:
    """Pykka's event that an actor has ended, for which no thread waits here.

    The scheduler reads its flag without a call.
    """

    __slots__ = ("flag",)

    def __init__(self) -> None:
        self.flag = False

    def set(self) -> None:
        self.flag = True

    def is_set(self) -> bool:
        return self.flag


class SimulatedInbox:
    """The inbox of an actor, and the place of the actor in the scheduler.

    It holds Pykka's envelopes, and bare messages (``deliver``), whose sender never waits. Pykka's
    loop gets one envelope for each grant of the scheduler. The state of turns is here and not with
    the actor: actors are of many classes, and CPython finds attributes quickly in one class only.
    """

    __slots__ = (
        "granted",
        "number",
        "numbers",
        "owner",
        "paused",
        "queued",
        "ready",
        "started",
        "stopped",
        "waiting",
    )

    owner: SimulatedBackend  # this and what follows: from the start of its loop on
    stopped: Stopped
    ready: list[SimulatedInbox]  # the runtime's
    numbers: Iterator[int]  # of its turns

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.granted = self.paused = self.queued = self.started = False
        self.number = 0  # drawn for the next turn

    def begin(self, owner: SimulatedBackend, name: str) -> None:
        """Take a place in the scheduler of the actor's runtime."""
        rt = owner.rt
        self.owner, self.stopped, self.ready = owner, owner.actor_stopped, rt._ready
        self.numbers = chance.draws(chance.key(rt.seed, f"turn/{name}"), first=1)
        self.make_ready()  # on_start() is a step of its own

    def make_ready(self) -> None:
        """Let the actor take a turn, unless it is paused."""
        if not self.paused:
            self.queued = True
            self.number = next(self.numbers)
            self.ready.append(self)

    def deliver(self, message: Any) -> None:
        """Take a bare message; the scheduler skips a dead actor."""
        self.waiting.append(message)
        if not self.queued:
            self.make_ready()

    def put(self, envelope: Any) -> None:
        if isinstance(envelope.reply_to, SimulatedFuture):
            envelope.reply_to.bind(self.owner.rt)
        self.deliver(envelope)

    def get(self) -> Any:
        if not self.granted and not self.stopped.flag:
            raise _Idle
        self.granted = False
        return self.waiting.popleft()

    def empty(self) -> bool:
        return not self.waiting


class SimulatedFuture(pykka.Future[Any]):
    """A future whose get() drives the scheduler from the test's thread."""

    def __init__(self) -> None:
        super().__init__()
        self._rt: SimulatedRuntime | None = None
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def bind(self, rt: SimulatedRuntime) -> None:
        """Wait in the runtime of the actor that will fill this; no actor may."""
        rt._refuse_in_actor()
        self._rt = rt

    def set(self, value: Any = None) -> None:
        self._done, self._value = True, value

    def set_exception(self, exc_info: Any = None) -> None:
        if exc_info is None:
            exc_info = sys.exc_info()
        self._done, self._error = True, exc_info[1]

    def get(self, *, timeout: float | None = None) -> Any:
        if self._rt is not None:  # else it failed where it was made: the actor had ended
            self._rt._refuse_in_actor()
        if not self._done:
            assert self._rt is not None
            within_ms = 3_600_000 if timeout is None else round(timeout * 1000)
            if not self._rt.run_until(lambda: self._done, within_ms):
                raise pykka.Timeout(f"{within_ms} ms")
        if self._error is not None:
            raise self._error
        return self._value


class SimulatedBackend(pykka.Actor):
    """Pykka's three hooks for the simulated runtime."""

    rt: SimulatedRuntime
    actor_stopped: Stopped  # type: ignore[assignment]
    actor_inbox: SimulatedInbox

    @staticmethod
    def _create_stopped() -> Any:
        return Stopped()

    @staticmethod
    def _create_actor_inbox() -> Any:
        return SimulatedInbox()

    @staticmethod
    def _create_future() -> Any:
        return SimulatedFuture()

    def _start_actor_loop(self) -> None:
        inbox = self.actor_inbox
        inbox.begin(self, self.name)  # type: ignore[attr-defined]
        self.deliver = inbox.deliver  # in place of a method that would call it


class SimulatedRuntime(Runtime):
    """All actors of a cluster in the thread of the test."""

    mode = "simulated"
    backend = SimulatedBackend

    def __init__(self, *, seed: int = 0, guard: bool = True) -> None:
        super().__init__(seed=seed)
        self.steps = 0
        self.now_ms = 0
        self._calls_at: dict[int, deque[tuple[Callable[[Any], None], Any]]] = {}
        self._instants: list[int] = []  # a heap: the times in _calls_at
        self._collect_after = STEPS_PER_COLLECTION
        self._collect_at = STEPS_PER_COLLECTION  # of ``steps``
        self._ready: list[SimulatedInbox] = []
        self._running: SimulatedInbox | None = None
        self._guard: Callable[[], Any] | None = None
        self._guarded = guard

    def _open(self) -> None:
        """Set the trip-wire, until the runtime is closed or collected as garbage."""
        if self._guarded and self._guard is None:
            tripwire.install()
            self._guard = finalize(self, tripwire.uninstall)

    def post(self, when_ms: int, call: Callable[[Any], None], argument: Any) -> None:
        if when_ms < self.now_ms:
            when_ms = self.now_ms
        calls = self._calls_at.get(when_ms)
        if calls is None:
            calls = self._calls_at[when_ms] = deque()
            heappush(self._instants, when_ms)
        calls.append((call, argument))  # of one time: in the order in which they were posted

    def run_for(self, duration_ms: int) -> None:
        self._refuse_in_actor()
        self._run(self.now_ms + duration_ms, None)

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        self._refuse_in_actor()
        return self._run(self.now_ms + within_ms, condition)

    def pause(self, names: tuple[str, ...]) -> None:
        for name in names:
            actor: Any = self._actors.get(name)
            if actor is not None:
                actor.actor_inbox.paused = True

    def resume(self, names: tuple[str, ...]) -> None:
        for name in names:
            actor: Any = self._actors.get(name)
            inbox: SimulatedInbox | None = None if actor is None else actor.actor_inbox
            if inbox is not None and inbox.paused:
                inbox.paused = False
                if not inbox.queued and (inbox.waiting or not inbox.started):
                    inbox.make_ready()

    # The scheduler.

    def _next(self) -> SimulatedInbox:
        """Take the ready one that drew the smallest number."""
        ready = self._ready
        first = min(ready, key=_number)
        ready.remove(first)
        return first

    def _run(self, until_ms: int, condition: Callable[[], bool] | None) -> bool:
        """Run to a time or a condition, which is evaluated once per instant.

        Meanwhile the garbage collector looks at young objects only, and seldom: a run keeps its
        old objects on purpose, and full collections took a fifth of the time.
        """
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self._run_on(until_ms, condition)
        finally:
            if collecting:
                gc.enable()

    def _run_on(self, until_ms: int, condition: Callable[[], bool] | None) -> bool:
        instants, ready = self._instants, self._ready
        while True:
            if ready:
                self._turns()
            if self._halted:
                self.check()
                continue
            if condition is not None and condition():
                return True
            if not instants or instants[0] > until_ms:
                self.now_ms = max(self.now_ms, until_ms)
                return condition is None
            if self.steps >= self._collect_at:
                self._collect()
            self.now_ms = instants[0]
            self._fire_timers()

    def _collect(self) -> None:
        """Collect young garbage, and seldom where steps leave little of it.

        A collection visits all that was made since the last one. The messages and rows that a run
        keeps for a while are gone by themselves when collections are rare.
        """
        found = gc.collect(1)
        few = found < self._collect_after // STEPS_PER_GARBAGE
        steps = 2 * self._collect_after if few else STEPS_PER_COLLECTION
        self._collect_after = min(steps, STEPS_PER_COLLECTION_MAX)
        self._collect_at = self.steps + self._collect_after

    def _fire_timers(self) -> None:
        """Make the calls that are due now, those included that they post for this time."""
        instants, calls_at, now_ms = self._instants, self._calls_at, self.now_ms
        while instants and instants[0] <= now_ms:
            at_ms = instants[0]
            calls = calls_at[at_ms]
            while calls:
                call, argument = calls.popleft()
                call(argument)
            if instants and instants[0] == at_ms:  # else a call has run the cluster, or closed it
                del calls_at[heappop(instants)]

    def _turns(self) -> None:
        """Let the ready actors take their turns until none has a message."""
        ready, steps = self._ready, 0
        tripwire.enter()
        try:
            while ready:
                inbox = ready.pop() if len(ready) == 1 else self._next()
                if inbox.paused or inbox.stopped.flag:
                    inbox.queued = False
                    continue
                steps += 1
                self._step(inbox)
                if self._halted:
                    return
                if steps == STEPS_PER_INSTANT_MAX:
                    names = sorted({other.owner.name for other in (*ready, inbox)})  # type: ignore[attr-defined]
                    raise Livelock(
                        f"{STEPS_PER_INSTANT_MAX} steps at {self.now_ms} ms without the clock "
                        f"moving; busy: {', '.join(names)}"
                    )
        finally:
            self.steps += steps
            tripwire.leave()

    def _step(self, inbox: SimulatedInbox) -> None:
        """Let one actor handle one message; meanwhile it counts as queued."""
        waiting, actor = inbox.waiting, inbox.owner
        self._running = inbox
        try:
            if not inbox.started:
                inbox.started = True
                actor._actor_loop_setup()
            elif waiting:
                if waiting[0].__class__ is _Envelope:
                    self._pykka_step(actor)
                else:
                    try:  # a bare message: the same as in Pykka's loop, without its cost
                        actor.on_receive(waiting.popleft())
                    except BaseException as error:
                        self._raised(actor, error)
            if inbox.stopped.flag:
                self._teardown(actor)
                return
        finally:
            self._running = None
        if waiting and not inbox.paused:
            inbox.make_ready()
        else:
            inbox.queued = False

    def _raised(self, actor: SimulatedBackend, error: BaseException) -> None:
        """Fail an actor whose handler raised, as Pykka's loop does."""
        if isinstance(error, Exception):
            actor._handle_failure(type(error), error, error.__traceback__)
            actor.on_failure(type(error), error, error.__traceback__)
        else:
            # Pykka would stop every actor of the process; here the test's thread raises it.
            self.interrupted(error)
            actor._handle_failure(type(error), error, error.__traceback__)

    def _pykka_step(self, actor: SimulatedBackend) -> None:
        """Let Pykka's own loop handle one envelope: a message, a proxy call or a stop."""
        actor.actor_inbox.granted = True
        try:  # noqa: SIM105 (a context manager per step costs)
            actor._actor_loop_running()
        except _Idle:
            pass

    def _teardown(self, actor: SimulatedBackend) -> None:
        """Fail the futures of the envelopes that a stopped actor left in its inbox."""
        waiting = actor.actor_inbox.waiting
        envelopes = [entry for entry in waiting if entry.__class__ is _Envelope]
        waiting.clear()
        waiting.extend(envelopes)
        actor._actor_loop_teardown()

    def _refuse_in_actor(self) -> None:
        if self._running is not None:
            raise blocking_call(self._running.owner.name)  # type: ignore[attr-defined]

    def _discard(self, actor: ClusterActor) -> None:
        inbox: SimulatedInbox = actor.actor_inbox  # type: ignore[assignment]
        for envelope in inbox.waiting:
            if (
                envelope.__class__ is _Envelope
                and envelope.reply_to is not None
                and not isinstance(envelope.message, messages._ActorStop)
            ):
                error = pykka.ActorDeadError(f"{actor.name} was killed")
                envelope.reply_to.set_exception((type(error), error, None))
        inbox.waiting.clear()

    def _drain(self, actor: ClusterActor) -> None:
        inbox: SimulatedInbox = actor.actor_inbox  # type: ignore[assignment]
        inbox.paused = False
        while not inbox.stopped.flag:
            self._step(inbox)

    def _close(self) -> None:
        self._instants.clear()
        self._calls_at.clear()
        self._ready.clear()
        if self._guard is not None:
            self._guard()
