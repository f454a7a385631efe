"""A partition by the name of its topic, as everything before KRaft names it."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """The name of a topic and the number of a partition; pairs sort by name, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
