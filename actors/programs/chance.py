"""The chance of one program, without state: its n-th draw is a function of seed, program and n."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from minicluster.actors.runtime import chance

_BITS = 64


class ProgramChance(random.Random):
    """``random`` as a program has it.

    A program that calls ``seed`` with a value has the sequence of that seed from then on, as
    anywhere else.
    """

    def __init__(self, seed: int, program: str) -> None:
        self._source = chance.key(seed, f"program/{program}/random")
        self._number = 0  # draws so far
        self._seeded: random.Random | None = None
        super().__init__()

    def random(self) -> float:
        if self._seeded is not None:
            return self._seeded.random()
        return (self._draw() >> 11) * (1.0 / (1 << 53))

    def getrandbits(self, k: int, /) -> int:
        if self._seeded is not None:
            return self._seeded.getrandbits(k)
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        value = 0
        for _ in range(0, k, _BITS):
            value = value << _BITS | self._draw()
        return value >> -k % _BITS

    def seed(self, a: Any = None, version: int = 2) -> None:
        self._seeded = None if a is None else random.Random(a)

    def getstate(self) -> tuple[Any, ...]:
        return self._number, None if self._seeded is None else self._seeded.getstate()

    def setstate(self, state: tuple[Any, ...]) -> None:
        self._number, seeded = state
        self._seeded = None
        if seeded is not None:
            self._seeded = random.Random(0)
            self._seeded.setstate(seeded)

    def urandom(self, size: int) -> bytes:
        """Bytes of the system, which no ``seed`` fixes."""
        return b"".join(
            self._draw().to_bytes(_BITS // 8, "little") for _ in range(0, size, _BITS // 8)
        )[:size]

    def uuid4(self) -> UUID:
        """A random UUID."""
        return UUID(bytes=self.urandom(16), version=4)

    def uuid1(self, time_ns: int) -> UUID:
        """A UUID of a time, of no machine."""
        count = time_ns // 100 + 0x01B21DD213814000  # 100 ns since 15 Oct 1582
        drawn = self._draw()
        return UUID(
            fields=(
                count & 0xFFFFFFFF,
                count >> 32 & 0xFFFF,
                count >> 48 & 0x0FFF,
                drawn & 0x3F,
                drawn >> 8 & 0xFF,
                drawn >> 16 | 1 << 40,  # the bit of addresses that no network card has
            ),
            version=1,
        )

    def _draw(self) -> int:
        self._number += 1
        return chance.draw(self._source, self._number)
