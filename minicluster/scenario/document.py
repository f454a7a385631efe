"""The values of a scenario file, each with its line and column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from minicluster.values import Value

QUOTE_HINT = "a value with a bracket or a comma needs quotes"
Path = tuple[str | int, ...]


class Document(Value):
    """The values of a text, and where each begins.

    Shapes:  value: plain values; places: names and indexes on the way to a value -> line, column,
             both from 1.
    """

    where: str
    value: Any
    places: Mapping[Path, tuple[int, int]] = field(default_factory=dict)

    def at(self, *path: str | int) -> str:
        """The place of a value for an error: ``my.yaml:3:5``, without numbers if it has none."""
        place = self.places.get(path)
        return self.where if place is None else f"{self.where}:{place[0]}:{place[1]}"
