"""The simulated runtime: one thread, a seeded scheduler, a virtual clock.

``turns.py`` has the scheduler and the clock, and this file what Pykka and the garbage collector do
for them. Nothing here waits, so an hour of cluster time takes seconds.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import pykka
from pykka import messages

from minicluster.actors.runtime import garbage, tripwire
from minicluster.actors.runtime.runtime import ClusterActor, Runtime, blocking_call
from minicluster.actors.runtime.turns import Envelope, Idle, SimulatedInbox, Stopped, Turns


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
        rt._reject_in_actor()
        self._rt = rt

    def set(self, value: Any = None) -> None:
        self._done, self._value = True, value

    def set_exception(self, exc_info: Any = None) -> None:
        if exc_info is None:
            exc_info = sys.exc_info()
        self._done, self._error = True, exc_info[1]

    def get(self, *, timeout: float | None = None) -> Any:
        if self._rt is not None:  # else it failed where it was made: the actor had ended
            self._rt._reject_in_actor()
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
        inbox.begin(self, self.rt)
        self.deliver = inbox.deliver  # in place of a method that would call it


class SimulatedRuntime(Turns, Runtime):
    """All actors of a cluster in the thread of the test."""

    mode = "simulated"
    backend = SimulatedBackend

    def __init__(self, *, seed: int = 0) -> None:
        Turns.__init__(self)
        Runtime.__init__(self, seed=seed)
        self._young_collections = garbage.YoungCollections()
        self._collect_at = garbage.STEPS_PER_COLLECTION
        self._collector_on: weakref.finalize[[], Any] | None = None  # a call that counts once

    def run_for(self, duration_ms: int) -> None:
        self._reject_in_actor()
        self._run(self.now_ms + duration_ms, None)

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        self._reject_in_actor()
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

    # The scheduler, and what it calls.

    def _run(self, until_ms: int, condition: Callable[[], bool] | None) -> bool:
        """Run to a time or a condition, which is evaluated once per instant."""
        self._collect_rarely()
        with tripwire.standing(), tripwire.outside():
            return self._run_on(until_ms, condition)

    def _collect_rarely(self) -> None:
        """Garbage is looked for by steps alone, from the first run to the close."""
        if self._collector_on is None:
            garbage.simulation_begins()
            self._collector_on = weakref.finalize(self, garbage.simulation_ends)
            self.at_close.append(self._collector_on)

    def abandoned(self) -> None:
        if self._collector_on is not None:
            self._collector_on()

    def _collect(self) -> None:
        self._collect_at = self._young_collections.collect(self.steps)

    def _on_halt(self) -> None:
        self.check()

    def bind(self, future: Any) -> None:
        if isinstance(future, SimulatedFuture):
            future.bind(self)

    def _raised(self, actor: SimulatedBackend, error: BaseException) -> None:
        """Fail it as Pykka's loop does."""
        if isinstance(error, Exception):
            actor._handle_failure(type(error), error, error.__traceback__)
            actor.on_failure(type(error), error, error.__traceback__)
        else:
            # Pykka would stop every actor of the process; here the test's thread raises it.
            self.interrupted(error)
            actor._handle_failure(type(error), error, error.__traceback__)

    def _pykka_step(self, actor: SimulatedBackend) -> None:
        actor.actor_inbox.granted = True
        try:  # noqa: SIM105 (a context manager per step costs)
            actor._actor_loop_running()
        except Idle:
            pass

    def _teardown(self, actor: SimulatedBackend) -> None:
        """Fail the futures of the envelopes that a stopped actor left in its inbox."""
        waiting = actor.actor_inbox.waiting
        envelopes = [entry for entry in waiting if entry.__class__ is Envelope]
        waiting.clear()
        waiting.extend(envelopes)
        actor._actor_loop_teardown()

    def _reject_in_actor(self) -> None:
        if self._running is not None:
            raise blocking_call(self._running.owner.name)

    def _discard(self, actor: ClusterActor) -> None:
        inbox: SimulatedInbox = actor.actor_inbox  # type: ignore[assignment]
        for envelope in inbox.waiting:
            if (
                envelope.__class__ is Envelope
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
