"""Actors and the runtime that starts, kills, restarts and stops them.

A ``ClusterActor`` names no back end. The runtime mixes one in when it spawns the actor: real
threads (``threaded.py``) or one seeded scheduler with a virtual clock (``simulated.py``). The same
class therefore runs in both, and Pykka's own receive loop runs in both.

**Invariant:** nobody blocks. A handler that calls Pykka's ``ask``, or that waits for a future,
gets ``BlockingCallInActor`` in both modes (``test_runtime.py``).
**Invariant:** the runtime holds its own actors; Pykka's process-wide registry is not used, so two
clusters in one process cannot stop each other.
"""

from __future__ import annotations

import random
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import TracebackType
from typing import Any, ClassVar, ParamSpec, TypeVar

import pykka
from msgspec import Struct
from pykka import messages

from minicluster.actors.runtime import garbage
from minicluster.errors import MiniclusterError
from minicluster.values import Value

_wall_s = time.time  # as it is before a simulation guards it

P = ParamSpec("P")
A = TypeVar("A", bound="ClusterActor")


class BlockingCallInActor(MiniclusterError, RuntimeError):
    """An actor waited for another. Only the test's thread may."""


class ActorCrashed(MiniclusterError, AssertionError):
    """An actor raised. It is dead; the rest of the run proves nothing."""


class LeakedThread(MiniclusterError, AssertionError):
    """A thread of the runtime outlived it."""


class Crash(Value, kw_only=True):
    """An actor that raised, with the time and the error."""

    actor: str
    at_ms: int
    error: BaseException

    def __str__(self) -> str:
        lines = traceback.format_exception(self.error)
        return f"{self.actor} crashed at {self.at_ms} ms\n{''.join(lines)}"


class Timer(Struct, eq=False):
    """A call that is due at a time, unless it is cancelled before."""

    call: Callable[[Any], None] | None
    argument: Any

    def cancel(self) -> None:
        """Drop the call; no effect after it was made."""
        self.call = None
        self.argument = None

    def fire(self) -> None:
        """Make the call, once."""
        call, argument = self.call, self.argument
        self.call = None
        if call is not None:
            call(argument)


class ClusterActor(pykka.Actor):
    """The base of every actor here. Subclass this, never one of Pykka's back ends."""

    __slots__ = ("name", "rt")

    rt: Runtime
    name: str

    def __init__(self) -> None:
        """Set what Pykka's own sets, with a stable name in place of a uuid4."""
        self.actor_urn = f"urn:minicluster:{self.name}"
        self.actor_inbox = self._create_actor_inbox()
        self.actor_stopped = self._create_stopped()
        self._actor_ref = pykka.ActorRef(self)

    # The hooks of a back end; spawn() mixes in a class that fills them.
    @staticmethod
    def _create_stopped() -> Any:
        return threading.Event()

    @staticmethod
    def _create_actor_inbox() -> Any:
        raise NotImplementedError("spawn actors with Runtime.spawn")

    @staticmethod
    def _create_future() -> Any:
        raise NotImplementedError("spawn actors with Runtime.spawn")

    def _start_actor_loop(self) -> None:
        raise NotImplementedError("spawn actors with Runtime.spawn")

    def now(self) -> int:
        """The cluster's clock in milliseconds."""
        return self.rt.now_ms

    def after(self, delay_ms: int, message: Any) -> Timer:
        """Put a message into this actor's inbox after a delay."""
        return self.rt.schedule(self.rt.now() + delay_ms, self.deliver, message)

    def deliver(self, message: Any) -> None:
        """Put a message into this actor's inbox; that of a dead actor takes none."""
        if not self.actor_stopped.is_set():
            self.actor_inbox.put(_envelope(message))

    def cancel_timers(self) -> None:
        """Cancel the timers of this actor, which has ended; they would keep it in memory."""

    def _handle_receive(self, message: Any) -> Any:
        if self.actor_stopped.is_set():  # killed while messages were queued
            return None
        try:
            if message.__class__ in _PYKKAS_OWN:
                return super()._handle_receive(message)
            return self.on_receive(message)
        except Exception:
            raise
        except BaseException as error:
            # On a BaseException Pykka would stop every actor of the process.
            self.rt.interrupted(error)
            raise ActorCrashed(f"{self.name}: {type(error).__name__}: {error}") from error

    def _handle_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pykka.ActorRegistry.unregister(self.actor_ref)
        self.actor_stopped.set()
        if exception_value is not None:
            self.rt.crashed(self, exception_value)


_envelope = pykka._envelope.Envelope
_PYKKAS_OWN = frozenset(
    {messages._ActorStop, messages.ProxyCall, messages.ProxyGetAttr, messages.ProxySetAttr}
)


class Runtime(ABC):
    """One cluster's actors, clock and chance.

    Units:   the clock counts whole milliseconds, from 0 or where ``begin_at`` has set it.
    """

    mode: ClassVar[str]
    backend: ClassVar[type[pykka.Actor]]
    now_ms: int

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.crashes: list[Crash] = []
        self._actors: dict[str, ClusterActor] = {}
        self._spawning = threading.RLock()
        self._interrupt: BaseException | None = None
        self._halted = False  # a crash or an interruption may be left to ``check``
        self.raised = False  # a crash has reached the test
        self.epoch_ms = 0  # the time of day at the clock's zero, where clients have one
        self.wall_s: Callable[[], float] = _wall_s
        self.is_closed = False
        self.at_close: list[Callable[[], None]] = []  # calls that come before the actors stop

    def spawn(
        self, cls: Callable[P, A], name: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> pykka.ActorRef[A]:
        """Start an actor under a name that is free.

        Errors:  ValueError when an actor of this name is running.
        """
        assert isinstance(cls, type) and issubclass(cls, ClusterActor)
        with self._spawning:  # an actor's __init__ may spawn children
            if name in self._actors:
                raise ValueError(f"an actor named {name} is running")
            self._open()
            bound = _bound(cls, self.backend)
            actor = bound.__new__(bound)
            actor.rt, actor.name = self, name  # every __init__ may use them
            bound.__init__(actor, *args, **kwargs)
            self._actors[name] = actor  # a strong reference: an ActorRef holds a weak one
            actor._start_actor_loop()
            ref: pykka.ActorRef[A] = actor.actor_ref
            return ref

    def actor(self, name: str) -> ClusterActor | None:
        """The running actor of this name."""
        return self._actors.get(name)

    @property
    def actors(self) -> tuple[str, ...]:
        """The names of the running actors in the order in which they were started."""
        return tuple(self._actors)

    def kill(self, name: str) -> None:
        """End an actor now, as a crash does: its inbox is lost and on_stop is not called."""
        actor = self._actors.pop(name, None)
        if actor is not None:
            actor.actor_stopped.set()
            self._discard(actor)
            actor.cancel_timers()
            garbage.actor_ended()

    def stop(self, name: str) -> None:
        """End an actor after the messages that are in its inbox now."""
        actor = self._actors.pop(name, None)
        if actor is not None and not actor.actor_stopped.is_set():
            actor.stop()
            self._drain(actor)
            garbage.actor_ended()

    def abandoned(self) -> None:  # noqa: B027 (most have nothing to do)
        """Nobody can run or close it any more: the collector of garbage is to find it."""

    def close(self) -> None:
        """Stop every actor in the reverse order of starting, then look for leaked threads.

        Errors:  LeakedThread when a thread of this runtime is still alive.
        """
        self.is_closed = True
        while self.at_close:
            self.at_close.pop()()
        for name in reversed(list(self._actors)):
            self.stop(name)
        self._close()

    def rng(self, name: str) -> random.Random:
        """A source of chance of its own for this name, fixed by the seed."""
        return random.Random(f"{self.seed}/{name}")  # a string is seeded by sha512, not hash()

    def crashed(self, actor: ClusterActor, error: BaseException) -> None:
        """Record that an actor raised."""
        if self._actors.get(actor.name) is actor:
            del self._actors[actor.name]
        if not isinstance(error, Exception):
            return  # an interruption ends the test, which is not a fault of the actor
        crash = Crash(actor=actor.name, at_ms=self.now(), error=error)
        self.crashes.append(crash)
        self._halted = True

    def interrupted(self, error: BaseException) -> None:
        """Keep an error that must leave through the test's thread (KeyboardInterrupt, a skip)."""
        self._interrupt = error
        self._halted = True

    def check(self) -> None:
        """Raise what an actor could not handle.

        Errors:  the interruption itself, or ActorCrashed that shows the first crash.
        """
        if self._interrupt is not None:
            error, self._interrupt = self._interrupt, None
            self._halted = bool(self.crashes)
            raise error
        if self.crashes:
            first = self.crashes[0]
            self.raised = True
            raise ActorCrashed(str(first)) from first.error
        self._halted = False

    def begin_at(self, time_ms: int) -> None:
        """Let the clock begin at a time, before anything has happened."""
        self.now_ms = time_ms

    def now(self) -> int:
        """The time of the clock."""
        return self.now_ms

    @property
    def behind_ms(self) -> int:
        """How far the clock is behind the time of day: it leaves out what the machine did not run.

        Timeouts go by the clock, so that a stall ends no session; dates go by the time of day.
        """
        return 0

    def behind_wall_ms(self) -> int:
        """The same for a clock as fast as the wall's; 0 where clients have no time of day."""
        if not self.epoch_ms:
            return 0
        return int(self.wall_s() * 1000) - self.epoch_ms - self.now_ms

    def record_time_ms(self) -> int:
        """The timestamp of a record that the cluster itself produces: the time of day."""
        return self.epoch_ms + self.now() + self.behind_ms

    def exclusive(self) -> AbstractContextManager[None]:
        """A section of the test's thread in which no actor takes a step, where the mode has one."""
        return nullcontext()

    def inject(self, call: Callable[[], None]) -> None:
        """Make a call of a thread that carries no actors, as an event at the current time."""
        call()

    @abstractmethod
    def post(self, when_ms: int, call: Callable[[Any], None], argument: Any) -> None:
        """Make a call at a time of this runtime's clock (at once, if that is past)."""

    def schedule(self, when_ms: int, call: Callable[[Any], None], argument: Any) -> Timer:
        """Make a call at a time, unless its timer is cancelled before."""
        timer = Timer(call, argument)
        self.post(when_ms, Timer.fire, timer)
        return timer

    @abstractmethod
    def run_for(self, duration_ms: int) -> None:
        """Let the cluster run for this long."""

    @abstractmethod
    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        """Let the cluster run until a condition holds; False when the time is over before."""

    @abstractmethod
    def pause(self, names: tuple[str, ...]) -> None:
        """Let these actors take no step; their inboxes fill and their timers run on."""

    @abstractmethod
    def resume(self, names: tuple[str, ...]) -> None:
        """Undo a pause."""

    def _open(self) -> None:  # noqa: B027 (most need nothing)
        """Take what the back end needs to run, once; a runtime without actors holds nothing."""

    @abstractmethod
    def _discard(self, actor: ClusterActor) -> None:
        """Drop what a killed actor left in its inbox and let its loop end."""

    @abstractmethod
    def _drain(self, actor: ClusterActor) -> None:
        """Wait until a stopping actor has ended."""

    @abstractmethod
    def _close(self) -> None:
        """Free what the back end holds."""


@cache
def _bound(cls: type[ClusterActor], backend: type[pykka.Actor]) -> Any:
    """An actor's class on a back end: one for all clusters."""
    return type(cls.__name__, (backend, cls), {})


def blocking_call(actor: str) -> BlockingCallInActor:
    """The error for an actor that waits for another."""
    return BlockingCallInActor(
        f"{actor} waited inside a handler; only the test's thread may call ask or wait"
    )
