"""The draws of chance in machine words; in the compiled wheel this is ``minicluster._draws``.

mypyc compiles it. In Python the same numbers come from ``chance._blocks``, since there a product of
two words is a large number.
"""

from __future__ import annotations

from collections.abc import Iterator

from mypy_extensions import i64

_WORD = 1 << 64


def draws(source: int, first: int, stride: int) -> Iterator[int]:
    """The draws ``first``, ``first + stride`` and so on of a key (SplitMix64)."""
    golden = 0x9E3779B97F4A7C15
    state: i64 = _signed(source + first * golden)
    step: i64 = _signed(stride * golden)
    while True:
        x: i64 = state
        # A word has a sign here, and a shift to the right repeats it; a mask takes it away.
        x = (x ^ ((x >> 30) & 0x3_FFFF_FFFF)) * -0x40A7_B892_E31B_1A47
        x = (x ^ ((x >> 27) & 0x1F_FFFF_FFFF)) * -0x6B2F_B644_ECCE_EE15
        x = x ^ ((x >> 31) & 0x1_FFFF_FFFF)
        state += step
        yield int(x) if x >= 0 else int(x) + _WORD


def _signed(number: int) -> int:
    """A number modulo 2 ** 64, as a word with a sign has it."""
    number &= _WORD - 1
    return number - _WORD if number >> 63 else number
