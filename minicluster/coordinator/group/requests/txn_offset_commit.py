"""TxnOffsetCommit (28): a transaction commits the offsets of a group.

Versions:  0-5. 2: leader epoch (KIP-320), and COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296). 3:
           generation and member, static members (KIP-447). 4: TRANSACTION_ABORTABLE (KIP-890). 5:
           the partition of ``__consumer_offsets`` is added to the transaction (KIP-890).
Source:    KafkaApis.handleTxnOffsetCommitRequest,
           GroupCoordinatorService.commitTransactionalOffsets,
           OffsetMetadataManager.commitTransactionalOffset.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.member import ConsumerGroupMember
from minicluster.coordinator.group.consumer.offsets import committing_member
from minicluster.coordinator.group.requests.offsets_to_commit import (
    Outcomes,
    TopicToCommit,
    offset_records,
)
from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.internal_log import Producer
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from minicluster.protocol.uuids import ZERO_UUID

_LOAD_IN_PROGRESS_FROM = 2


def handle_txn_offset_commit(
    state: CoordinatorState,
    context: Context,
    request: TxnOffsetCommitRequest,
    version: int,
    now_ms: int,
) -> None:
    """Write the offsets of partitions that exist; they count once the transaction is committed.

    Errors:  by partition UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE; for all of them
             INVALID_GROUP_ID, those of the verification, and what the group refuses.
    """
    outcomes = Outcomes(by_id=False)
    topics = _known_topics(state, request, outcomes)
    if not topics:
        state.respond(context.token, _response(outcomes, version))
        return

    def done(errors: Sequence[ErrorCode], error: ErrorCode | None, _: str | None) -> None:
        outcomes.add_all(topics, errors if error is None else error)
        state.respond(context.token, _response(outcomes, version))

    def operation(shard: GroupShard, at_ms: int) -> Result:
        return commit_offsets(state, shard, request, version, topics, at_ms)

    if not request.group_id:
        done((), ErrorCode.INVALID_GROUP_ID, None)
        return
    producer = Producer(
        request.transactional_id, request.producer_id, request.producer_epoch, version
    )
    state.write_transactional(request.group_id, producer, operation, done, now_ms)


@step
def commit_offsets(
    state: CoordinatorState,
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
    except OperationError as refusal:
        if refusal.error == ErrorCode.STALE_MEMBER_EPOCH:  # which no version has
            raise OperationError(ErrorCode.ILLEGAL_GENERATION) from refusal
        raise
    return Result(records=records, response=errors)


def _known_topics(
    state: CoordinatorState, request: TxnOffsetCommitRequest, outcomes: Outcomes
) -> list[TopicToCommit]:
    known = []
    for item in request.topics:
        topic = state.image.topics.named(item.name)
        there = () if topic is None else topic.partitions
        for partition in item.partitions:
            if partition.partition_index not in there:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                outcomes.add(item.name, ZERO_UUID, partition.partition_index, error)
        partitions = [p for p in item.partitions if p.partition_index in there]
        if topic is not None and partitions:
            known.append(TopicToCommit(item.name, topic.id, partitions))
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


def _response(outcomes: Outcomes, version: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=index, error_code=_for_version(error, version)
                    )
                    for index, error in topic.errors
                ),
            )
            for topic in outcomes
        )
    )


def _for_version(error: ErrorCode, version: int) -> ErrorCode:
    """The error as old producers understand it: they fail on a coordinator that loads."""
    if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _LOAD_IN_PROGRESS_FROM:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error
