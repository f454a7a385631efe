"""Time and chance as a program sees them while it has its step.

Names of the standard library (``time.time``, ``random.choice``, …) are switched by the trip-wire.
``datetime.now()``, ``time.strftime()``, and names that a module has imported (``from time import
time``) are reached in C by time-machine, which is asked for the time of whoever runs.

A clock that stands still makes clients spin: ``if now > deadline`` at the very deadline waits for
nothing, again and again. So each look at it moves it by a microsecond, within its millisecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import time_machine

from minicluster.actors.programs.chance import ProgramChance
from minicluster.actors.runtime import tripwire
from minicluster.actors.runtime.runtime import Runtime

SPIN_LOOKS = 5_000  # at the clock in one millisecond; then it costs one: ``while time() < end: …``
_NS = 1_000
_US_PER_MS = 1_000


class Clock:
    """The clock of all programs of a cluster.

    Units:   microseconds since the cluster's zero.
    """

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._at_ms = -1
        self._looks = 0  # in this millisecond

    def look_us(self) -> int:
        """The time now."""
        now_ms = self._rt.now_ms
        if now_ms != self._at_ms:
            self._at_ms, self._looks = now_ms, 0
        self._looks += 1
        return now_ms * _US_PER_MS + min(self._looks, _US_PER_MS - 1)

    @property
    def spins(self) -> bool:
        """True where a program has looked so often that it must be waiting for time to pass."""
        return self._looks > SPIN_LOOKS

    def since_epoch_us(self) -> int:
        """The time of day."""
        return self._rt.epoch_ms * _US_PER_MS + self.look_us()


def virtual_functions(
    clock: Clock, chances: ProgramChance, sleep: Callable[[float], None]
) -> Mapping[str, Callable[..., Any]]:
    """What the guarded names of the standard library are for one program."""

    def look(us: Callable[[], int]) -> int:
        now_us = us()
        if clock.spins:
            sleep(1 / 1_000)
        return now_us

    functions: dict[str, Callable[..., Any]] = {
        "time.time": lambda: look(clock.since_epoch_us) / 1_000_000,
        "time.time_ns": lambda: look(clock.since_epoch_us) * _NS,
        "time.sleep": sleep,
        "uuid.uuid1": lambda node=None, clock_seq=None: chances.uuid1(clock.since_epoch_us() * _NS),
        "uuid.uuid4": chances.uuid4,
        "os.urandom": chances.urandom,
        "os.getrandom": lambda size, flags=0: chances.urandom(size),
    }
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        functions[f"time.{name}"] = lambda: look(clock.look_us) / 1_000_000
        functions[f"time.{name}_ns"] = lambda: look(clock.look_us) * _NS
    for name in tripwire.RANDOM:
        functions[f"random.{name}"] = getattr(chances, name)
    return functions


class _Traveller(time_machine.Traveller):
    """time-machine's clock: a program's own while it has its step, else the real one."""

    def __init__(self) -> None:
        super().__init__(0, None, False)

    def time_ns(self) -> int:
        program: Any = tripwire.program()
        if program is None:
            return int(time_machine.escape_hatch.time.time_ns())
        return int(program.clock.since_epoch_us()) * _NS


class Switched:
    """The switches for as long as a cluster has programs, besides the trip-wire's names."""

    def __init__(self) -> None:
        self._travel = time_machine.travel(0, tick=False)
        self._travel.start()
        # Its documented clocks stand or tick; this one is that of the program that asks.
        self._traveller = time_machine.traveller_stack[-1] = _Traveller()
        self._random: Any = random.Random  # the class, which gets another method
        self._seed: Any = self._random.seed
        self._urandom: Any = random._urandom  # type: ignore[attr-defined]
        self._shared: Any = random._inst
        self._switch_random()

    def _switch_random(self) -> None:
        """Reach names that a module has imported: ``from random import choice``."""
        seed, shared, urandom = self._seed, self._shared, self._urandom
        own_random, own_bits = shared.random, shared.getrandbits

        def seeded(this: Any, a: Any = None, version: int = 2) -> None:
            chances = _chances()
            if a is None and chances is not None and not isinstance(this, ProgramChance):
                a = int.from_bytes(chances.urandom(32), "little")  # Random() without a seed
            seed(this, a, version)

        def drawn() -> float:
            chances = _chances()
            return float(own_random() if chances is None else chances.random())

        def bits(k: int) -> int:
            chances = _chances()
            return int(own_bits(k) if chances is None else chances.getrandbits(k))

        def of_system(size: int) -> bytes:
            chances = _chances()
            return bytes(urandom(size) if chances is None else chances.urandom(size))

        self._random.seed = seeded
        random._urandom = of_system  # type: ignore[attr-defined]
        shared.random, shared.getrandbits = drawn, bits

    def close(self) -> None:
        """Switch everything back."""
        self._random.seed = self._seed
        random._urandom = self._urandom  # type: ignore[attr-defined]
        del self._shared.random, self._shared.getrandbits
        if time_machine.traveller_stack[-1] is self._traveller:
            self._travel.stop()
        else:  # a test travels in time itself, and ends that later
            time_machine.traveller_stack.remove(self._traveller)


def _chances() -> ProgramChance | None:
    program: Any = tripwire.program()
    return None if program is None else program.chances
