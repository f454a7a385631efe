"""A share of the partitions of a log or run: several workers judge one, each its own partitions.

Each of them folds the brokers, topics and settings of the whole log, which is little.
"""

from __future__ import annotations

from uuid import UUID
from zlib import crc32

from minicluster.values import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """One of ``count`` shares."""

    index: int
    count: int

    @property
    def is_first(self) -> bool:
        """The share that judges what is about no partition."""
        return self.index == 0

    def owns(self, topic_id: UUID, part: int) -> bool:
        """The partition belongs to this share."""
        return share_of(partition_key(topic_id, part), self.count) == self.index


def partition_key(topic_id: UUID, part: int) -> bytes:
    """A partition as its records begin: its number (4 bytes) and topic id."""
    return part.to_bytes(4, "big", signed=True) + topic_id.bytes


def share_of(key: bytes, count: int) -> int:
    """The share of a partition, by its ``partition_key``."""
    return crc32(key) % count
