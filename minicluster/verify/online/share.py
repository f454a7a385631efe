"""A share of a log's partitions: several workers judge one long log, each its own partitions.

Each of them folds the brokers, topics and settings of the whole log. Checks that are about no
partition are judged in the first share alone. A change of a partition of another share is not even
decoded.
"""

from __future__ import annotations

from uuid import UUID
from zlib import crc32

from minicluster.lazy_dataclass import dataclass
from minicluster.log.batch import RecordBatch
from minicluster.protocol.records import PartitionChangeRecord, VersionedRecord, decode_record
from minicluster.verify.rules import RULES

_OF_NO_PARTITION = ("broker_states", "topic_states", "batch_states", "transaction_states")
_CHANGE = bytes((1, 5))  # frame version and type of a PartitionChangeRecord
_KEY = slice(3, 23)  # after its own version: partition (4 bytes), topic id
_FIRST = bytes(4)

# A change of a partition that another share judges.
ELSEWHERE = PartitionChangeRecord(partition_id=-1)
_ELSEWHERE = VersionedRecord(ELSEWHERE, 0)


@dataclass(frozen=True, slots=True)
class Share:
    """One of ``count`` shares."""

    index: int
    count: int

    def owns(self, topic_id: UUID, part: int) -> bool:
        """The partition belongs to this share."""
        return self._has(part.to_bytes(4, "big", signed=True) + topic_id.bytes)

    def _has(self, key: bytes) -> bool:
        return crc32(key) % self.count == self.index

    @property
    def left_out(self) -> frozenset[tuple[str, int]]:
        """The checks, by rule and place, that another share judges."""
        if self.index == 0:
            return frozenset()
        registered_directories = ("D5", 1)
        return frozenset(
            (rule.id, index)
            for rule in RULES
            for index, check in enumerate(rule.checks)
            if check.view in _OF_NO_PARTITION or (rule.id, index) == registered_directories
        )

    def batch_of(self, batch: RecordBatch) -> RecordBatch:
        """The batch as this share needs it; the replicas of a first partition count for all.

        Errors:  InvalidBatch, ProtocolError for a batch that does not hold metadata records.
        """
        if batch.is_control or self.count == 1:
            return batch
        records = []
        for record in batch.records:
            value = record.value or b""
            is_change = value[:2] == _CHANGE and value[3:7] != _FIRST
            if is_change and len(value) >= 23 and not self._has(value[_KEY]):
                records.append(_ELSEWHERE)
            else:
                records.append(decode_record(value))
        return RecordBatch(
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            leader_epoch=batch.leader_epoch,
            base_timestamp=batch.base_timestamp,
            max_timestamp=batch.max_timestamp,
            count=batch.count,
            attributes=batch.attributes,
            metadata_records=tuple(records),
        )
