"""Version ranges as declarations write them: "0+", "2-4", "3", "none"."""

from __future__ import annotations

from functools import cache

FOREVER = 1 << 15
"""The end of an open range: Kafka's versions are 16-bit numbers."""

NONE = range(0)


@cache
def parse_versions(text: str) -> range:
    """The range that a declaration names.

    Errors:  ValueError for anything else than the four forms; it is an error in a declaration.
    """
    if text == "none":
        return NONE
    if text.endswith("+"):
        return range(int(text[:-1]), FOREVER)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
