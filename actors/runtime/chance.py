"""Chance without state: the n-th draw of a key is a function of seed, key and n.

With one shared stream, deleting a step of a scenario changes every draw after it; with these, the
luck of one link or actor never depends on another's (``spec``: stateless randomness).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from itertools import chain
from uuid import UUID

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_LANES = 16  # draws of a block
_LANE_BITS = 128  # a product of two numbers of 64 bits
_ONES = sum(1 << (lane * _LANE_BITS) for lane in range(_LANES))
_unpack = struct.Struct("<" + "Q8x" * _LANES).unpack


def key(seed: int, name: str) -> int:
    """The 64-bit key of a named source of chance."""
    return int.from_bytes(blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "big")


def draw(source: int, n: int) -> int:
    """The n-th 64-bit draw of a key."""
    return _finalise((source + n * _GOLDEN) & _MASK, _MASK)


def draws(source: int, first: int, stride: int = 1) -> Iterator[int]:
    """The draws ``first``, ``first + stride`` and so on of a key, without an end."""
    return chain.from_iterable(_blocks(source, first, stride))


def _blocks(source: int, first: int, stride: int) -> Iterator[tuple[int, ...]]:
    """Draws by the block: lanes of one large number, which costs little more than one draw."""
    steps, mask = _steps(stride), _MASK * _ONES
    while True:
        x = (((source + first * _GOLDEN) & _MASK) * _ONES + steps) & mask
        yield _unpack(_finalise(x, mask).to_bytes(_LANES * _LANE_BITS // 8, "little"))
        first += _LANES * stride


@cache
def _steps(stride: int) -> int:
    """The distance of each lane from the first."""
    distances = ((lane * stride * _GOLDEN) & _MASK for lane in range(_LANES))
    return sum(distance << (lane * _LANE_BITS) for lane, distance in enumerate(distances))


def _finalise(x: int, mask: int) -> int:
    """The finaliser of SplitMix64, of each lane of a number; ``mask`` is the lower half of each."""
    x = ((x ^ (x >> 30) & mask) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27) & mask) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31) & mask


def fraction(source: int, n: int) -> float:
    """The n-th draw of a key as a number in [0, 1)."""
    return (draw(source, n) >> 11) * (1.0 / (1 << 53))


def random_uuid(source: int, n: int) -> UUID:
    """The n-th and the next draw of a key as a random UUID."""
    return UUID(int=(draw(source, n) << 64) | draw(source, n + 1), version=4)
