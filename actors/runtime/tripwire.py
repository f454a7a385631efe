"""The one switch of clocks and chance: who runs decides what time the standard library tells.

While a simulated actor takes a step, the clocks and random sources of the standard library raise.
While a user's program has its step (``actors/programs``), they are the program's: virtual.
Outside of a step, in other threads, and in actors for the libraries named below, they are real.
``datetime.now`` cannot be patched; the linter's DTZ rules watch over that one in actors.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from minicluster.errors import MiniclusterError

RANDOM = (
    "random", "seed", "getstate", "setstate", "getrandbits", "randbytes", "randrange", "randint",
    "choice", "choices", "sample", "shuffle", "uniform", "triangular", "betavariate",
    "expovariate", "gammavariate", "gauss", "lognormvariate", "normalvariate", "vonmisesvariate",
    "paretovariate", "weibullvariate",
)  # fmt: skip
GUARDED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        time,
        (
            *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
            *("process_time", "process_time_ns", "thread_time", "thread_time_ns", "sleep"),
        ),
    ),
    (random, RANDOM),
    (uuid, ("uuid1", "uuid4")),
    (os, ("urandom", "getrandom") if hasattr(os, "getrandom") else ("urandom",)),
)
_Functions = dict[str, Callable[..., Any]]  # by name
ALLOWED = ("logging", "pykka", "threading", "queue", "concurrent", "coverage", "_pytest", "pytest")

_standing = 0
_lock = threading.Lock()
_thread = 0  # the thread that takes a simulated step now
_program: Program | None = None  # whose step it is; None: an actor's


class Program(Protocol):
    """A user's program that has its step.

    Shapes:  virtual: what guarded names are for it; a name that is missing is the real one.
    """

    virtual: Mapping[str, Callable[..., Any]]

    def suspend(self) -> None:
        """The program waits inside its step, while the cluster runs on."""

    def resume(self) -> None:
        """It continues.

        Errors:  whatever ends a program that was killed meanwhile.
        """


class UnseededChance(MiniclusterError, RuntimeError):
    """A simulated actor looked at a real clock or drew unseeded chance."""


def enter() -> None:
    """Begin a simulated step in this thread."""
    global _thread
    _thread = threading.get_ident()


def leave() -> None:
    """End the simulated step."""
    global _thread
    _thread = 0


def program() -> Program | None:
    """The program that has its step in this thread."""
    return _program if _thread and _thread == threading.get_ident() else None


def enter_program(entering: Program | None, thread: int = 0) -> tuple[int, Program | None]:
    """Begin the step of a program, in this thread or another; -> what ``back_to`` takes."""
    global _thread, _program
    before = _thread, _program
    _thread, _program = thread or threading.get_ident(), entering
    return before


def back_to(before: tuple[int, Program | None]) -> None:
    """End the step of a program."""
    global _thread, _program
    _thread, _program = before


def originals() -> Mapping[str, Callable[..., Any]]:
    """The functions that are guarded, by what they are called, as they are without guards."""
    return {
        f"{module['__name__']}.{name}": original
        for module, _, originals in _GUARDS
        for name, original in originals.items()
    }


@contextmanager
def outside() -> Iterator[None]:
    """Run the cluster from within the step of a program, which waits for that."""
    waiting = program()
    if waiting is None:
        yield
        return
    waiting.suspend()
    try:
        yield
    finally:
        waiting.resume()


@contextmanager
def standing() -> Iterator[None]:
    """Set the wire for a while; uses nest.

    It stands only while the runtime runs: in between, the test's own code takes the functions of
    the standard library as they are.
    """
    global _standing
    with _lock:
        _standing += 1
        if _standing == 1:
            _load_what_takes_clocks()
            for module, guards, originals in _GUARDS:
                if not originals.items() <= module.items():  # a test patches some of them
                    for name, guard in guards.items():
                        original = module[name]
                        if original is not guard:  # a patch that began in a run has put it back
                            originals[name] = original
                module.update(guards)
    try:
        yield
    finally:
        with _lock:
            _standing -= 1
            if _standing == 0:
                for module, _, originals in _GUARDS:
                    module.update(originals)


@cache
def _load_what_takes_clocks() -> None:
    """Load what takes clocks when it is first imported, before they are guarded.

    time-machine's module in C, from 3.0 on, takes them for functions of C without a look at them:
    a first import in a condition of a test, or beside a paced cluster, would end the process.
    """
    with suppress(ImportError):
        import_module("_time_machine")


def _guard(originals: _Functions, called: str) -> Callable[..., Any]:
    name = called.rpartition(".")[2]

    def guarded(*args: Any, **kwargs: Any) -> Any:
        original = originals[name]
        if not _thread or _thread != threading.get_ident():
            return original(*args, **kwargs)
        if _program is not None:
            return _program.virtual.get(called, original)(*args, **kwargs)
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.partition(".")[0] not in ALLOWED:
            raise UnseededChance(
                f"{caller} called {called} inside a simulated actor; "
                "time is rt.now(), chance is rt.rng(name)"
            )
        return original(*args, **kwargs)

    guarded.__name__ = name
    return guarded


def _guards(module: ModuleType, names: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """The names of a module, those of them that are guarded, and what those were without guards."""
    originals: _Functions = {name: vars(module)[name] for name in names}
    guards = {name: _guard(originals, f"{module.__name__}.{name}") for name in names}
    return vars(module), guards, originals


_GUARDS = [_guards(module, names) for module, names in GUARDED]
