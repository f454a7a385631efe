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
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, ClassVar
from weakref import finalize

import pykka
from pykka import messages

from minicluster.actors.runtime import chance, tripwire
from minicluster.actors.runtime.runtime import ClusterActor, Runtime, blocking_call
from minicluster.errors import MiniclusterError

STEPS_PER_INSTANT_MAX = 200_000
STEPS_PER_COLLECTION = 50_000


class Livelock(MiniclusterError, AssertionError):
    """The actors kept each other busy without letting the clock move."""


class _Idle(BaseException):
    """Leaves Pykka's receive loop after one message.

    Each raise is a new one: an exception keeps the frames that it passed through, and those hold
    the cluster.
    """


_Envelope = pykka._envelope.Envelope


class SimulatedInbox:
    """An inbox that makes its actor ready when a message arrives.

    It holds Pykka's envelopes, and bare messages (``deliver``), whose sender never waits. Pykka's
    loop gets one envelope for each grant of the scheduler.
    """

    __slots__ = ("granted", "owner", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.granted = False
        self.owner: SimulatedBackend | None = None

    def put(self, envelope: Any) -> None:
        self.waiting.append(envelope)
        owner = self.owner
        if owner is not None and not owner.queued:
            owner.rt._enqueue(owner)

    def get(self) -> Any:
        if not self.granted and not (self.owner and self.owner.actor_stopped.is_set()):
            raise _Idle
        self.granted = False
        return self.waiting.popleft()

    def empty(self) -> bool:
        return not self.waiting


class SimulatedFuture(pykka.Future[Any]):
    """A future whose get() drives the scheduler from the test's thread."""

    rt: ClassVar[SimulatedRuntime]

    def __init__(self) -> None:
        super().__init__()
        self.rt._refuse_in_actor()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def set(self, value: Any = None) -> None:
        self._done, self._value = True, value

    def set_exception(self, exc_info: Any = None) -> None:
        if exc_info is None:
            exc_info = sys.exc_info()
        self._done, self._error = True, exc_info[1]

    def get(self, *, timeout: float | None = None) -> Any:
        self.rt._refuse_in_actor()
        if not self._done:
            within_ms = 3_600_000 if timeout is None else round(timeout * 1000)
            if not self.rt.run_until(lambda: self._done, within_ms):
                raise pykka.Timeout(f"{within_ms} ms")
        if self._error is not None:
            raise self._error
        return self._value


class SimulatedBackend(pykka.Actor):
    """Pykka's three hooks for the simulated runtime."""

    rt: ClassVar[SimulatedRuntime]
    queued = False
    paused = False
    started = False
    is_stopped: Callable[[], bool]
    number = -1  # drawn for its turn; -1: not drawn yet

    def deliver(self, message: Any) -> None:
        """Put a bare message into the inbox; the scheduler skips a dead actor."""
        self.actor_inbox.waiting.append(message)  # type: ignore[attr-defined]
        if not self.queued:
            self.rt._enqueue(self)

    @staticmethod
    def _create_actor_inbox() -> Any:
        return SimulatedInbox()

    @classmethod
    def _create_future(cls) -> Any:
        return cls.rt.future()

    def _start_actor_loop(self) -> None:
        self.chance = chance.key(self.rt.seed, f"turn/{self.name}")  # type: ignore[attr-defined]
        self.turns = 0
        self.is_stopped = self.actor_stopped.is_set
        inbox: SimulatedInbox = self.actor_inbox  # type: ignore[assignment]
        inbox.owner = self
        self.rt._enqueue(self)  # on_start() is a step of its own


class SimulatedRuntime(Runtime):
    """All actors of a cluster in the thread of the test."""

    mode = "simulated"
    backend = SimulatedBackend

    def __init__(self, *, seed: int = 0, guard: bool = True) -> None:
        super().__init__(seed=seed)
        self.steps = 0
        self.now_ms = 0
        self._sequence = 0
        self._timers: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._ready: list[SimulatedBackend] = []
        self._running: SimulatedBackend | None = None
        self._guard: Callable[[], Any] | None = None
        self._guarded = guard
        self.future: type[SimulatedFuture] = type("Future", (SimulatedFuture,), {"rt": self})

    def _open(self) -> None:
        """Set the trip-wire, until the runtime is closed or collected as garbage."""
        if self._guarded and self._guard is None:
            tripwire.install()
            self._guard = finalize(self, tripwire.uninstall)

    def post(self, when_ms: int, call: Callable[[Any], None], argument: Any) -> None:
        self._sequence = sequence = self._sequence + 1
        if when_ms < self.now_ms:
            when_ms = self.now_ms
        heappush(self._timers, (when_ms, sequence, call, argument))

    def run_for(self, duration_ms: int) -> None:
        self._refuse_in_actor()
        self._run(self.now_ms + duration_ms, None)

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        self._refuse_in_actor()
        return self._run(self.now_ms + within_ms, condition)

    def pause(self, names: tuple[str, ...]) -> None:
        for name in names:
            actor = self._actors.get(name)
            if actor is not None:
                actor.paused = True  # type: ignore[attr-defined]

    def resume(self, names: tuple[str, ...]) -> None:
        for name in names:
            actor: Any = self._actors.get(name)
            if actor is not None and actor.paused:
                actor.paused = False
                if not actor.queued and (actor.actor_inbox.waiting or not actor.started):
                    self._enqueue(actor)

    # The scheduler.

    def _enqueue(self, actor: SimulatedBackend) -> None:
        if actor.paused:
            return
        actor.queued = True
        actor.turns += 1
        self._ready.append(actor)

    def _next(self) -> SimulatedBackend:
        """Take the ready actor that drew the smallest number."""
        ready = self._ready
        best, place = 1 << 64, 0
        for index, candidate in enumerate(ready):
            number = candidate.number
            if number < 0:
                number = candidate.number = chance.draw(candidate.chance, candidate.turns)
            if number < best:
                best, place = number, index
        actor = ready[place]
        ready[place] = ready[-1]
        ready.pop()
        actor.number = -1
        actor.queued = False
        return actor

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
        timers = self._timers
        collect_at = self.steps + STEPS_PER_COLLECTION
        while True:
            self._turns()
            if self.crashes or self._interrupt is not None:
                self.check()
            if condition is not None and condition():
                return True
            if not timers or timers[0][0] > until_ms:
                self.now_ms = max(self.now_ms, until_ms)
                return condition is None
            if self.steps >= collect_at:
                gc.collect(1)
                collect_at = self.steps + STEPS_PER_COLLECTION
            self.now_ms = timers[0][0]
            self._fire_timers()

    def _fire_timers(self) -> None:
        """Make the calls that are due now."""
        timers, now_ms = self._timers, self.now_ms
        while timers and timers[0][0] <= now_ms:
            _, _, call, argument = heappop(timers)
            call(argument)

    def _turns(self) -> None:
        """Let the ready actors take their turns until none has a message."""
        ready = self._ready
        if not ready:
            return
        budget = STEPS_PER_INSTANT_MAX
        tripwire.enter()
        try:
            while ready:
                if len(ready) == 1:
                    actor = ready.pop()
                    actor.number = -1
                    actor.queued = False
                else:
                    actor = self._next()
                if actor.paused or actor.is_stopped():
                    continue
                self._step(actor)
                if self.crashes or self._interrupt is not None:
                    return
                budget -= 1
                if budget == 0:
                    names = sorted({other.name for other in ready} | {actor.name})  # type: ignore[attr-defined]
                    raise Livelock(
                        f"{STEPS_PER_INSTANT_MAX} steps at {self.now_ms} ms without the clock "
                        f"moving; busy: {', '.join(names)}"
                    )
        finally:
            tripwire.leave()

    def _step(self, actor: SimulatedBackend) -> None:
        """Let one actor handle one message."""
        inbox: SimulatedInbox = actor.actor_inbox  # type: ignore[assignment]
        waiting = inbox.waiting
        self.steps += 1
        self._running = actor
        try:
            if waiting and actor.started:
                if waiting[0].__class__ is _Envelope:
                    self._pykka_step(actor, inbox)
                else:
                    try:  # a bare message: the same as in Pykka's loop, without its cost
                        actor.on_receive(waiting.popleft())
                    except BaseException as error:
                        self._raised(actor, error)
            elif not actor.started:
                actor.started = True
                actor._actor_loop_setup()
            if actor.is_stopped():
                self._teardown(actor, inbox)
                return
        finally:
            self._running = None
        if waiting and not actor.queued:
            self._enqueue(actor)

    def _raised(self, actor: SimulatedBackend, error: BaseException) -> None:
        """Fail an actor whose handler raised, as Pykka's loop does."""
        if isinstance(error, Exception):
            actor._handle_failure(type(error), error, error.__traceback__)
            actor.on_failure(type(error), error, error.__traceback__)
        else:
            # Pykka would stop every actor of the process; here the test's thread raises it.
            self.interrupted(error)
            actor._handle_failure(type(error), error, error.__traceback__)

    def _pykka_step(self, actor: SimulatedBackend, inbox: SimulatedInbox) -> None:
        """Let Pykka's own loop handle one envelope: a message, a proxy call or a stop."""
        inbox.granted = True
        try:  # noqa: SIM105 (a context manager per step costs)
            actor._actor_loop_running()
        except _Idle:
            pass

    def _teardown(self, actor: SimulatedBackend, inbox: SimulatedInbox) -> None:
        """Fail the futures of the envelopes that a stopped actor left in its inbox."""
        envelopes = [entry for entry in inbox.waiting if entry.__class__ is _Envelope]
        inbox.waiting.clear()
        inbox.waiting.extend(envelopes)
        actor._actor_loop_teardown()

    def _refuse_in_actor(self) -> None:
        if self._running is not None:
            raise blocking_call(self._running.name)  # type: ignore[attr-defined]

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
        sim: Any = actor
        sim.paused = False
        while not actor.actor_stopped.is_set():
            self._step(sim)

    def _close(self) -> None:
        self._timers.clear()
        self._ready.clear()
        if self._guard is not None:
            self._guard()
