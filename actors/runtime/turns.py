"""The turns of simulated actors: inboxes, chance that orders them, and a clock that jumps.

Of the actors that have messages, one is picked by stateless chance and takes one message: each
draws a number for its turn, and the smallest is first. Every inbox is first in, first out, so
Pykka's order per sender holds. When no actor has a message, the clock jumps to the next timer.

What Pykka does for an actor are the methods that ``simulated.py`` fills.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

import pykka

from minicluster.actors.runtime import chance, tripwire
from minicluster.errors import MiniclusterError

STEPS_PER_INSTANT_MAX = 200_000

Envelope: Any = pykka._envelope.Envelope
_number: Any = attrgetter("number")


class Livelock(MiniclusterError, AssertionError):
    """The actors kept each other busy without letting the clock move."""


class Idle(BaseException):
    """Leaves Pykka's receive loop after one message.

    Each raise is a new one: an exception keeps the frames that it passed through, and those hold
    the cluster.
    """


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
        "turns",
        "waiting",
    )

    owner: Any  # an actor; this and what follows: from the start of its loop on
    turns: Turns
    stopped: Stopped
    ready: list[SimulatedInbox]  # the runtime's
    numbers: Iterator[int]  # of its turns

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.granted = self.paused = self.queued = self.started = False
        self.number = 0  # drawn for the next turn

    def begin(self, owner: Any, turns: Turns) -> None:
        """Take a place in the scheduler of the actor's runtime."""
        self.owner, self.stopped = owner, owner.actor_stopped
        self.turns, self.ready = turns, turns._ready
        self.numbers = chance.draws(chance.key(turns.seed, f"turn/{owner.name}"), first=1)
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
        if envelope.reply_to is not None:
            self.turns.bind(envelope.reply_to)
        self.deliver(envelope)

    def get(self) -> Any:
        if not self.granted and not self.stopped.flag:
            raise Idle
        self.granted = False
        return self.waiting.popleft()

    def empty(self) -> bool:
        return not self.waiting


class Turns:
    """The scheduler: the actors that are ready, and the calls that are due at a time."""

    seed: int
    _halted: bool

    def __init__(self) -> None:
        self.steps = 0
        self.now_ms = 0
        self._calls_at: dict[int, deque[tuple[Callable[[Any], None], Any]]] = {}
        self._instants: list[int] = []  # a heap: the times in _calls_at
        self._collect_at = 0  # of ``steps``
        self._ready: list[SimulatedInbox] = []
        self._running: SimulatedInbox | None = None

    # The hooks for what Pykka does, and for the runtime.

    def bind(self, future: Any) -> None:
        """Let a future wait in this scheduler."""
        raise NotImplementedError

    def _pykka_step(self, actor: Any) -> None:
        """Let Pykka's own loop handle one envelope: a message, a proxy call or a stop."""
        raise NotImplementedError

    def _raised(self, actor: Any, error: BaseException) -> None:
        """Fail an actor whose handler raised."""
        raise NotImplementedError

    def _teardown(self, actor: Any) -> None:
        """End an actor that has stopped."""
        raise NotImplementedError

    def _on_halt(self) -> None:
        """Raise what an actor could not handle."""
        raise NotImplementedError

    def _collect(self) -> None:
        """Collect garbage, and set when to do it again."""
        raise NotImplementedError

    # The clock.

    def post(self, when_ms: int, call: Callable[[Any], None], argument: Any) -> None:
        """Make a call at a time of the clock (at once, if that is past)."""
        if when_ms < self.now_ms:
            when_ms = self.now_ms
        calls = self._calls_at.get(when_ms)
        if calls is None:
            calls = self._calls_at[when_ms] = deque()
            heappush(self._instants, when_ms)
        calls.append((call, argument))  # of one time: in the order in which they were posted

    def _run_on(self, until_ms: int, condition: Callable[[], bool] | None) -> bool:
        """Run to a time or a condition, which is evaluated once per instant."""
        instants, ready = self._instants, self._ready
        while True:
            if ready:
                self._turns()
            if self._halted:
                self._on_halt()
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

    def _fire_timers(self) -> None:
        """Make the calls that are due now, those included that they post for this time.

        A call may run the cluster, which then makes the calls after it, or close it.
        """
        instants, calls_at, now_ms = self._instants, self._calls_at, self.now_ms
        while instants and instants[0] <= now_ms:
            calls = calls_at[instants[0]]
            if calls:
                call, argument = calls.popleft()
                call(argument)
            else:
                del calls_at[heappop(instants)]

    def _turns(self) -> None:
        """Let the ready actors take their turns until none has a message."""
        ready, steps = self._ready, 0
        tripwire.enter()
        try:
            while ready:
                inbox = ready.pop() if len(ready) == 1 else _next(ready)
                if inbox.paused or inbox.stopped.flag:
                    inbox.queued = False
                    continue
                steps += 1
                self._step(inbox)
                if self._halted:
                    return
                if steps == STEPS_PER_INSTANT_MAX:
                    names = sorted({other.owner.name for other in (*ready, inbox)})
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
                if waiting[0].__class__ is Envelope:
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


def _next(ready: list[SimulatedInbox]) -> SimulatedInbox:
    """Take the ready one that drew the smallest number."""
    first = min(ready, key=_number)
    ready.remove(first)
    return first
