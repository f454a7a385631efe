"""A share of a log's partitions: several workers judge one long log, each its own partitions.

Each of them folds the brokers, topics and settings of the whole log. Checks that are about no
partition are judged in the first share alone. A change of a partition of another share is not
decoded, and one of its own only if no record before has set the same fields.
"""

from __future__ import annotations

from uuid import UUID
from zlib import crc32

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.rules.online import LOG_RULES

_OF_NO_PARTITION = ("broker_states", "topic_states", "batch_states", "transaction_states")


@dataclass(frozen=True, slots=True)
class Share:
    """One of ``count`` shares."""

    index: int
    count: int

    def owns(self, topic_id: UUID, part: int) -> bool:
        """The partition belongs to this share."""
        return self.has(part.to_bytes(4, "big", signed=True) + topic_id.bytes)

    def has(self, key: bytes) -> bool:
        """The partition whose number and topic id these bytes are belongs to this share."""
        return crc32(key) % self.count == self.index

    @property
    def left_out(self) -> frozenset[tuple[str, int]]:
        """The checks, by rule and place, that another share judges."""
        if self.index == 0:
            return frozenset()
        registered_directories = ("D5", 1)
        return frozenset(
            (rule.id, index)
            for rule in LOG_RULES
            for index, check in enumerate(rule.checks)
            if check.view in _OF_NO_PARTITION or (rule.id, index) == registered_directories
        )
