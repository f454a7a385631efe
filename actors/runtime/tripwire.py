"""A trip-wire against real time and real chance inside simulated actors.

While a simulated actor takes a step, the clocks and random sources of the standard library raise.
Outside of a step, in other threads, and for the libraries named below they work as ever.
``datetime.now`` cannot be patched; the linter's DTZ rules watch over that one.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any

from minicluster.errors import MiniclusterError

GUARDED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep")),
    (random, ("random", "randint", "randrange", "choice", "shuffle", "uniform", "sample")),
    (uuid, ("uuid1", "uuid4")),
    (os, ("urandom",)),
)
ALLOWED = ("logging", "pykka", "threading", "queue", "concurrent", "coverage", "_pytest", "pytest")

_standing = 0
_lock = threading.Lock()
_originals: list[tuple[Any, str, Any]] = []
_thread = 0  # the thread that takes a simulated step now


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
            for module, names in GUARDED:
                for name in names:
                    original = getattr(module, name)
                    _originals.append((module, name, original))
                    setattr(module, name, _guard(f"{module.__name__}.{name}", original))
    try:
        yield
    finally:
        with _lock:
            _standing -= 1
            if _standing == 0:
                while _originals:
                    module, name, original = _originals.pop()
                    setattr(module, name, original)


@cache
def _load_what_takes_clocks() -> None:
    """Load what takes clocks when it is first imported, before they are guarded.

    time-machine's module in C, from 3.0 on, takes them for functions of C without a look at them:
    a first import in a condition of a test, or beside a paced cluster, would end the process.
    """
    with suppress(ImportError):
        import_module("_time_machine")


def _guard(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if _thread and _thread == threading.get_ident():
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.partition(".")[0] not in ALLOWED:
                raise UnseededChance(
                    f"{caller} called {name} inside a simulated actor; "
                    "time is rt.now(), chance is rt.rng(name)"
                )
        return original(*args, **kwargs)

    guarded.__name__ = name.rpartition(".")[2]
    guarded.__wrapped__ = original  # type: ignore[attr-defined]
    return guarded
