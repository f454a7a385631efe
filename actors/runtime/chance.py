"""Chance without state: the n-th draw of a key is a function of seed, key and n.

With one shared stream, deleting a step of a scenario changes every draw after it; with these, the
luck of one link or actor never depends on another's (``spec``: stateless randomness).
"""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def key(seed: int, name: str) -> int:
    """The 64-bit key of a named source of chance."""
    return int.from_bytes(blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "big")


def draw(source: int, n: int) -> int:
    """The n-th 64-bit draw of a key (the finaliser of SplitMix64)."""
    x = (source + n * _GOLDEN) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def fraction(source: int, n: int) -> float:
    """The n-th draw of a key as a number in [0, 1)."""
    return (draw(source, n) >> 11) * (1.0 / (1 << 53))


def random_uuid(source: int, n: int) -> UUID:
    """The n-th and the next draw of a key as a random UUID."""
    return UUID(int=(draw(source, n) << 64) | draw(source, n + 1), version=4)
