"""OffsetCommit (8), TxnOffsetCommit (28): a group's offsets, alone or in a transaction.

Versions:  OffsetCommit 0-10; 4.x serves 2-10. 2-4: retention time. 6: leader epoch (KIP-320). 7:
           static members (KIP-345). 9: GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH (KIP-848). 10:
           topics by id.
           TxnOffsetCommit 0-5. 2: leader epoch (KIP-320), and COORDINATOR_LOAD_IN_PROGRESS
           (KAFKA-7296). 3: generation and member, static members (KIP-447). 4:
           TRANSACTION_ABORTABLE (KIP-890). 5: the partition of ``__consumer_offsets`` is added to
           the transaction (KIP-890).
Source:    KafkaApis.handleOffsetCommitRequest, handleTxnOffsetCommitRequest;
           GroupCoordinatorService.commitOffsets, commitTransactionalOffsets;
           OffsetMetadataManager.commitOffset, commitTransactionalOffset;
           OffsetCommitResponse.Builder, TxnOffsetCommitResponse.Builder.
"""

from __future__ import annotations

import uuid
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from minicluster.coordinator.group.classic.group import GroupState
from minicluster.coordinator.group.classic.members import reschedule_heartbeat
from minicluster.coordinator.group.consumer.group import ConsumerGroup, ConsumerGroupMember
from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.group.offsets.committed import OffsetAndMetadata, offset_record
from minicluster.coordinator.group.offsets.validation import committing_member, validate_partition
from minicluster.coordinator.group.request_context import Context
from minicluster.coordinator.runtime.internal_log import Producer
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.java_order import utf16_length
from minicluster.metadata.image.topics import TopicsImage
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import Value


class TopicToCommit(Value):
    """The partitions of a request that exist."""

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[Any]


class TopicOutcome(Value):
    """The errors of a topic's partitions."""

    name: str
    topic_id: uuid.UUID
    errors: list[tuple[int, ErrorCode]]


class Outcomes:
    """Topic by topic: those with what does not exist first, then what the group responds.

    Shapes:  a topic is known by its id where the version has ids, else by its name.
    Source:  OffsetCommitResponse.Builder, TxnOffsetCommitResponse.Builder.
    """

    def __init__(self, *, by_id: bool) -> None:
        self._by_id = by_id
        self._topics: list[TopicOutcome] = []
        self._by_key: dict[object, TopicOutcome] = {}

    def __iter__(self) -> Iterator[TopicOutcome]:
        return iter(self._topics)

    def topic(self, name: str, topic_id: uuid.UUID) -> TopicOutcome:
        """The outcome of a topic, new if there is none: it is in the response without partitions
        as well.
        """
        key = topic_id if self._by_id else name
        if key not in self._by_key:
            self._by_key[key] = TopicOutcome(name, topic_id, [])
            self._topics.append(self._by_key[key])
        return self._by_key[key]

    def extend(self, outcome: TopicOutcome) -> None:
        """Add the outcomes of some partitions of a topic."""
        self.topic(outcome.name, outcome.topic_id).errors.extend(outcome.errors)

    def merged(self, topics: Sequence[TopicToCommit], errors: Iterable[ErrorCode]) -> Outcomes:
        """These, and the outcomes of topics, partition by partition.

        A topic that the request has twice is there twice where there is nothing to merge it with.
        """
        each = iter(errors)
        added = [
            TopicOutcome(
                topic.name,
                topic.topic_id,
                [(partition.partition_index, next(each)) for partition in topic.partitions],
            )
            for topic in topics
        ]
        merged = Outcomes(by_id=self._by_id)
        if not self._topics:
            merged._topics = added
            return merged
        for outcome in (*self._topics, *added):
            merged.extend(outcome)
        return merged


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
    most = shard.config.offset_metadata_max_bytes

    def record(topic: TopicToCommit, partition: Any) -> CoordinatorRecord | None:
        metadata = partition.committed_metadata
        if metadata is not None and utf16_length(metadata) > most:
            return None
        if committer is not None:
            validate_partition(committer, epoch, topic.topic_id, partition.partition_index)
        value = OffsetAndMetadata(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata or "",
            committed_ms=now_ms,
            expires_ms=expires_ms,
            topic_id=ZERO_UUID if transactional else topic.topic_id,
        )
        return offset_record((group_id, topic.name, partition.partition_index), value)

    records = [record(topic, partition) for topic in topics for partition in topic.partitions]
    too_large, none = ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE
    errors = [too_large if record is None else none for record in records]
    return tuple(record for record in records if record is not None), errors


# --- OffsetCommit ---------------------------------------------------------------------------------

_TOPIC_IDS_FROM = 10
_GROUP_NOT_FOUND_FROM = 9
_DEFAULT_RETENTION = -1


def _plus(now_ms: int, retention_ms: int) -> int:
    """The sum as Java's long holds it: past the largest one it continues from the least."""
    return (now_ms + retention_ms + (1 << 63)) % (1 << 64) - (1 << 63)


def _response(version: int, outcomes: Outcomes) -> OffsetCommitResponse:
    kind = OffsetCommitResponse
    topics = (
        kind.OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id if version >= _TOPIC_IDS_FROM else ZERO_UUID,
            partitions=tuple(
                kind.OffsetCommitResponsePartition(partition_index=index, error_code=error)
                for index, error in topic.errors
            ),
        )
        for topic in outcomes
    )
    return kind(topics=tuple(topics))


def handle_offset_commit(
    state: GroupCoordinatorState,
    context: Context,
    request: OffsetCommitRequest,
    version: int,
    now_ms: int,
) -> None:
    """Commit the offsets of partitions that exist.

    Errors:  by partition UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE;
             for all of them what the group rejects.
    """
    outcomes = Outcomes(by_id=version >= _TOPIC_IDS_FROM)
    topics = _known_topics(state.image.topics, request, version, outcomes)

    def respond(errors: Iterable[ErrorCode]) -> None:
        state.respond(context.token, _response(version, outcomes.merged(topics, errors)))

    def done(errors: list[ErrorCode], error: ErrorCode | None, _: str | None) -> None:
        respond(errors if error is None else repeat(error))

    def operation(shard: GroupShard, at_ms: int) -> Result:
        return commit_offsets(state, shard, request, version, topics, at_ms)

    if topics:
        state.write(request.group_id, operation, done, now_ms)
    else:
        respond(())


def _known_topics(
    images: TopicsImage, request: OffsetCommitRequest, version: int, outcomes: Outcomes
) -> list[TopicToCommit]:
    """The topics of the request with their partitions that exist; the others have their outcome."""
    by_id = version >= _TOPIC_IDS_FROM
    known = []
    for item in request.topics:
        topic = images.get(item.topic_id) if by_id else images.named(item.name)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            missing = [(partition.partition_index, error) for partition in item.partitions]
            outcomes.extend(TopicOutcome(item.name, item.topic_id, missing))
            continue
        there, missing = _existing(item, topic.partitions)
        if missing:
            outcomes.extend(TopicOutcome(topic.name, topic.id, missing))
        if there:
            known.append(TopicToCommit(topic.name, topic.id, there))
    return known


def _existing(
    item: Any, partitions: Container[int]
) -> tuple[list[Any], list[tuple[int, ErrorCode]]]:
    """The partitions of a request's topic that exist, and the outcome of those that do not."""
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    there = [p for p in item.partitions if p.partition_index in partitions]
    if len(there) == len(item.partitions):
        return there, []
    indexes = (p.partition_index for p in item.partitions)
    return there, [(index, error) for index in indexes if index not in partitions]


@step
def commit_offsets(
    state: GroupCoordinatorState,
    shard: GroupShard,
    request: OffsetCommitRequest,
    version: int,
    topics: Sequence[TopicToCommit],
    now_ms: int,
) -> Result:
    """Check the member, and write the offsets in its name."""
    member = _validate(shard, request, version, now_ms)
    epoch = request.generation_id_or_member_epoch
    retention_ms = request.retention_time_ms
    expires_ms = None if retention_ms == _DEFAULT_RETENTION else _plus(now_ms, retention_ms)
    records, errors = offset_records(
        shard, request.group_id, topics, expires_ms, now_ms, committer=member, epoch=epoch
    )
    return Result(records=records, response=errors)


def _validate(
    shard: GroupShard, request: OffsetCommitRequest, version: int, now_ms: int
) -> ConsumerGroupMember | None:
    """Check the member; one whose partitions are still to be checked is returned.

    Source:  OffsetMetadataManager.validateOffsetCommit.
    """
    group = shard.groups.get(request.group_id)
    generation_id = request.generation_id_or_member_epoch
    if group is None:
        if generation_id < 0:  # a consumer that assigns itself, whatever becomes of its offsets
            shard.new_classic_group(request.group_id, now_ms)
            return None
        if version >= _GROUP_NOT_FOUND_FROM:
            shard.group(request.group_id)
        raise OperationError(ErrorCode.ILLEGAL_GENERATION)
    if isinstance(group, ConsumerGroup):
        return committing_member(
            group,
            request.member_id,
            request.group_instance_id,
            generation_id,
            transactional=False,
            version=version,
        )
    group.validate_offset_commit(
        request.member_id, request.group_instance_id, generation_id, transactional=False
    )
    member = group.members.get(request.member_id)
    # A commit is a sign of life.
    if group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE) and member is not None:
        reschedule_heartbeat(shard, group, member, now_ms)
    return None


# --- TxnOffsetCommit ------------------------------------------------------------------------------

_LOAD_IN_PROGRESS_FROM = 2


def handle_txn_offset_commit(
    state: GroupCoordinatorState,
    context: Context,
    request: TxnOffsetCommitRequest,
    version: int,
    now_ms: int,
) -> None:
    """Write the offsets of partitions that exist; they count once the transaction is committed.

    Errors:  by partition UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE; for all of them
             INVALID_GROUP_ID, those of the verification, and what the group rejects.
    """
    outcomes = Outcomes(by_id=False)
    topics = _known_topics_of_transaction(state.image.topics, request, outcomes)

    def respond(errors: Iterable[ErrorCode]) -> None:
        state.respond(context.token, _txn_response(version, outcomes.merged(topics, errors)))

    def done(errors: list[ErrorCode], error: ErrorCode | None, _: str | None) -> None:
        respond(errors if error is None else repeat(error))

    def operation(shard: GroupShard, at_ms: int) -> Result:
        return commit_transactional_offsets(state, shard, request, version, topics, at_ms)

    if not topics:
        respond(())
    elif not request.group_id:
        respond(repeat(ErrorCode.INVALID_GROUP_ID))
    else:
        producer = Producer(
            request.transactional_id, request.producer_id, request.producer_epoch, version
        )
        state.write_transactional(request.group_id, producer, operation, done, now_ms)


@step
def commit_transactional_offsets(
    state: GroupCoordinatorState,
    shard: GroupShard,
    request: TxnOffsetCommitRequest,
    version: int,
    topics: Sequence[TopicToCommit],
    now_ms: int,
) -> Result:
    """Check the member, and write the offsets in its name: pending until the transaction ends."""
    try:
        committer = _committer(shard, request, version, now_ms)
        records, errors = offset_records(
            shard,
            request.group_id,
            topics,
            None,
            now_ms,
            committer=committer,
            epoch=request.generation_id,
            transactional=True,
        )
    except OperationError as rejection:
        if rejection.error == ErrorCode.STALE_MEMBER_EPOCH:  # which no version has
            raise OperationError(ErrorCode.ILLEGAL_GENERATION) from rejection
        raise
    return Result(records=records, response=errors)


def _known_topics_of_transaction(
    images: TopicsImage, request: TxnOffsetCommitRequest, outcomes: Outcomes
) -> list[TopicToCommit]:
    known = []
    for item in request.topics:
        topic = images.named(item.name)
        there, missing = _existing(item, () if topic is None else topic.partitions)
        if topic is None or missing:
            outcomes.extend(TopicOutcome(item.name, ZERO_UUID, missing))
        if topic is not None and there:
            known.append(TopicToCommit(item.name, topic.id, there))
    return known


def _committer(
    shard: GroupShard, request: TxnOffsetCommitRequest, version: int, now_ms: int
) -> ConsumerGroupMember | None:
    """Check the member; one whose partitions are still to be checked is returned.

    No version has GROUP_ID_NOT_FOUND: a group that is not there is ILLEGAL_GENERATION.

    Source:  OffsetMetadataManager.validateTransactionalOffsetCommit.
    """
    group = shard.groups.get(request.group_id)
    member_id, instance_id = request.member_id, request.group_instance_id
    epoch = request.generation_id
    if group is None:
        if epoch >= 0:
            raise OperationError(ErrorCode.ILLEGAL_GENERATION)
        shard.new_classic_group(request.group_id, now_ms)
    elif isinstance(group, ConsumerGroup):
        return committing_member(
            group, member_id, instance_id, epoch, transactional=True, version=version
        )
    else:
        group.validate_offset_commit(member_id, instance_id, epoch, transactional=True)
    return None


def _txn_response(version: int, outcomes: Outcomes) -> TxnOffsetCommitResponse:
    kind = TxnOffsetCommitResponse
    topics = (
        kind.TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=tuple(
                kind.TxnOffsetCommitResponsePartition(
                    partition_index=index, error_code=_for_version(error, version)
                )
                for index, error in topic.errors
            ),
        )
        for topic in outcomes
    )
    return kind(topics=tuple(topics))


def _for_version(error: ErrorCode, version: int) -> ErrorCode:
    """The error as old producers understand it: they fail on a coordinator that loads."""
    if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _LOAD_IN_PROGRESS_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error
