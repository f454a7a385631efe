"""A partition by the name of its topic, as everything before KRaft names it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from minicluster.java_order import scala_map_order, topic_partition_hash


class TopicPartition(NamedTuple):
    """The name of a topic and the number of a partition; pairs sort by name, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def in_scala_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The partitions of a mutable Scala map or set, where its order shows in what Kafka writes."""
    return scala_map_order(partitions, topic_partition_hash)
