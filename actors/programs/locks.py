"""``threading`` as a program has it: locks that wait in virtual time, threads by baton.

Conditions, events, semaphores, barriers and queues of the standard library are Python upon locks.
So are a program's, where their locks are made in its steps. A lock that a module makes when it is
imported stays the system's.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

from minicluster.actors.programs.threads import Carried
from minicluster.actors.runtime import tripwire


class Process(Protocol):
    """The process of a program."""

    threads: Any

    def block(
        self, holds: Callable[[], bool], timeout_s: float | None, waiting: list[Carried]
    ) -> bool:
        """Wait in the thread that calls this; True if the condition holds."""


def wake(waiting: list[Carried]) -> None:
    """Let those that wait look again."""
    for carried in waiting:
        carried.wake()


class Lock:
    """``threading.Lock`` of a program."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._is_held = False
        self._waiting: list[Carried] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._is_held:
            limit_s = None if timeout < 0 else timeout
            is_free = lambda: not self._is_held  # noqa: E731
            if not blocking or not self._process.block(is_free, limit_s, self._waiting):
                return False
        self._is_held = True
        return True

    def release(self) -> None:
        if not self._is_held:
            raise RuntimeError("release unlocked lock")
        self._is_held = False
        wake(self._waiting)

    def locked(self) -> bool:
        return self._is_held

    def _at_fork_reinit(self) -> None:
        self._is_held = False  # concurrent.futures, imported by a program, registers it

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()


class RLock:
    """``threading.RLock`` of a program, with what ``Condition`` asks of one."""

    def __init__(self, process: Process) -> None:
        self._lock = Lock(process)
        self._owner, self._count = 0, 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        ident = threading.get_ident()
        if self._owner != ident:
            if not self._lock.acquire(blocking, timeout):
                return False
            self._owner = ident
        self._count += 1
        return True

    def release(self) -> None:
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = 0
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    def _is_owned(self) -> bool:
        return self._owner == threading.get_ident()

    def _release_save(self) -> tuple[int, int]:
        saved = self._count, self._owner
        self._count, self._owner = 0, 0
        self._lock.release()
        return saved

    def _acquire_restore(self, saved: tuple[int, int]) -> None:
        self._lock.acquire()
        self._count, self._owner = saved


class _SimpleQueue:
    """``queue.SimpleQueue``: the one of C outside of programs, that of Python in them."""

    own: Any = queue.SimpleQueue

    def __new__(cls) -> Any:
        in_python = queue._PySimpleQueue  # type: ignore[attr-defined]
        return cls.own() if tripwire.program() is None else in_python()

    def __class_getitem__(cls, item: object) -> type[_SimpleQueue]:
        return cls


class ThreadNames:
    """The names of ``threading`` and ``queue``, for as long as a cluster has programs."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []
        for name in ("Lock", "_allocate_lock"):
            self._put(threading, name, _made_by(Lock, getattr(threading, name)))
        self._put(threading, "RLock", _made_by(RLock, threading.RLock))
        self._put(threading.Thread, "start", _start(threading.Thread.start))
        self._put(threading.Thread, "join", _join(threading.Thread.join))
        self._put(threading.Thread, "is_alive", _is_alive(threading.Thread.is_alive))
        self._put(queue, "SimpleQueue", _SimpleQueue)

    @property
    def own(self) -> dict[tuple[Any, str], Any]:
        """The values that they had before."""
        return {(owner, name): value for owner, name, value in self._originals}

    def close(self) -> None:
        """Give them their own values back."""
        while self._originals:
            owner, name, value = self._originals.pop()
            setattr(owner, name, value)

    def _put(self, owner: Any, name: str, value: Any) -> None:
        self._originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)


def _made_by(kind: Callable[[Any], Any], own: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        process: Any = tripwire.program()
        return own(*args, **kwargs) if process is None else kind(process)

    return make


def _start(own: Callable[..., None]) -> Callable[..., None]:
    def start(thread: Any) -> None:
        process: Any = tripwire.program()
        if process is None:
            own(thread)
            return
        if thread._started.is_set():
            raise RuntimeError("threads can only be started once")
        thread._joining = []
        ended = lambda _: wake(thread._joining)  # noqa: E731
        thread._process = process
        thread._carried = process.threads.start(lambda: _run(thread), ended)
        if hasattr(thread, "_handle"):  # from Python 3.13 on: that of a thread which runs
            thread._handle = threading._make_thread_handle(threading.get_ident())  # type: ignore[attr-defined]
        thread._started.set()
        process.threads.at_end.append(lambda: _mark_as_ended(thread))

    return start


def _run(thread: Any) -> None:
    """Run a thread as its own bootstrap does."""
    ident = threading.get_ident()
    thread._ident = ident
    active: dict[int, Any] = threading._active  # type: ignore[attr-defined]
    of_system = active.get(ident)
    active[ident] = thread
    try:
        thread.run()
    except BaseException:
        thread._invoke_excepthook(thread)
    finally:
        active[ident] = of_system
        _mark_as_ended(thread)


def _mark_as_ended(thread: Any) -> None:
    """Let a thread look as one of the system that has ended: objects that are freed join theirs."""
    if hasattr(thread, "_handle"):  # from Python 3.13 on
        thread._handle._set_done()
    else:
        thread._is_stopped = True


def _join(own: Callable[..., None]) -> Callable[..., None]:
    def join(thread: Any, timeout: float | None = None) -> None:
        carried: Carried | None = getattr(thread, "_carried", None)
        if carried is None:
            own(thread, timeout)
        else:
            is_over = lambda: carried.is_over  # noqa: E731
            thread._process.block(is_over, timeout, thread._joining)

    return join


def _is_alive(own: Callable[..., bool]) -> Callable[..., bool]:
    def is_alive(thread: Any) -> bool:
        carried: Carried | None = getattr(thread, "_carried", None)
        return own(thread) if carried is None else not carried.is_over

    return is_alive
