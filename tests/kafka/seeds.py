"""Seeds on a command line."""

from __future__ import annotations


def numbers(text: str) -> list[int]:
    """The seeds that are named: ``1-20``, or ``3,7,9``."""
    named: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        named += range(int(first), int(last or first) + 1)
    return named
