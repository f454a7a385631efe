"""A partition by the name of its topic, as everything before KRaft names it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from minicluster.java_order import (
    scala_map_order,
    scala_trie_order,
    string_hash,
    topic_partition_hash,
)


class TopicPartition(NamedTuple):
    """The name of a topic and the number of a partition; pairs sort by name, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def in_scala_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The partitions of a mutable Scala map or set, where its order shows in what Kafka writes."""
    return scala_map_order(partitions, topic_partition_hash)


def grouped_by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The partitions of each topic, as ``groupBy`` of a mutable Scala map gives them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in dict.fromkeys(partitions):
        topics.setdefault(topic, []).append(partition)
    return {
        topic: [
            p.partition for p in in_scala_order(TopicPartition(topic, i) for i in topics[topic])
        ]
        for topic in scala_trie_order(topics, string_hash)
    }
