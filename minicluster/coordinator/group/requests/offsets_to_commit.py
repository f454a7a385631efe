"""Offsets to commit, with or without a transaction, and the outcome for each partition.

Source:  OffsetMetadataManager.commitOffset, commitTransactionalOffset;
         OffsetCommitResponse.Builder, TxnOffsetCommitResponse.Builder.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from minicluster.coordinator.group.consumer.member import ConsumerGroupMember
from minicluster.coordinator.group.consumer.offsets import validate_partition
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.group.state.offsets import OffsetAndMetadata, offset_record
from minicluster.java_order import utf16_length
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.uuids import ZERO_UUID


@dataclass(frozen=True, slots=True)
class TopicToCommit:
    """The partitions of a request that exist."""

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[Any]


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """The errors of a topic's partitions."""

    name: str
    topic_id: uuid.UUID
    errors: list[tuple[int, ErrorCode]]


class Outcomes:
    """Partition by partition, topics in the order of their first one.

    Shapes:  a topic is known by its id where the version has ids, else by its name.
    """

    def __init__(self, *, by_id: bool) -> None:
        self._by_id = by_id
        self._topics: dict[object, TopicOutcome] = {}

    def __iter__(self) -> Iterator[TopicOutcome]:
        return iter(self._topics.values())

    def add(self, name: str, topic_id: uuid.UUID, partition: int, error: ErrorCode) -> None:
        """Add the outcome of one partition."""
        key = topic_id if self._by_id else name
        topic = self._topics.setdefault(key, TopicOutcome(name, topic_id, []))
        topic.errors.append((partition, error))

    def add_all(
        self, topics: Sequence[TopicToCommit], errors: Sequence[ErrorCode] | ErrorCode
    ) -> None:
        """Add the outcomes of topics, partition by partition, or one error for all of them."""
        places = [(topic, p.partition_index) for topic in topics for p in topic.partitions]
        each = [errors] * len(places) if isinstance(errors, ErrorCode) else errors
        for (topic, index), error in zip(places, each, strict=True):
            self.add(topic.name, topic.topic_id, index, error)


def offset_records(
    shard: GroupShard,
    group_id: str,
    topics: Sequence[TopicToCommit],
    expires_ms: int | None,
    now_ms: int,
    *,
    committer: ConsumerGroupMember | None,
    epoch: int,
    transactional: bool = False,
) -> tuple[tuple[CoordinatorRecord, ...], list[ErrorCode]]:
    """The records of offsets, and the error of each partition; those of a transaction have no id.

    Shapes:  committer: the member that may commit only what it had in its epoch; None: all may be
             committed.
    Errors:  OFFSET_METADATA_TOO_LARGE; for all partitions, those of ``validate_partition``.
    """
    records = []
    errors = []
    most = shard.config.offset_metadata_max_bytes
    for topic in topics:
        for partition in topic.partitions:
            metadata = partition.committed_metadata
            if metadata is not None and utf16_length(metadata) > most:
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            if committer is not None:
                validate_partition(committer, epoch, topic.topic_id, partition.partition_index)
            errors.append(ErrorCode.NONE)
            value = OffsetAndMetadata(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata or "",
                committed_ms=now_ms,
                expires_ms=expires_ms,
                topic_id=ZERO_UUID if transactional else topic.topic_id,
            )
            key = group_id, topic.name, partition.partition_index
            records.append(offset_record(key, value))
    return tuple(records), errors
