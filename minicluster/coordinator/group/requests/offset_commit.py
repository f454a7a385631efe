"""OffsetCommit (8): a member, or a consumer that assigns itself, commits its offsets.

Versions:  0-10; 4.x serves 2-10. 2-4: retention time. 6: leader epoch (KIP-320). 7: static members
           (KIP-345). 9: GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH (KIP-848). 10: topics by id.
Source:    KafkaApis.handleOffsetCommitRequest, GroupCoordinatorService.commitOffsets,
           OffsetMetadataManager.commitOffset.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.coordinator.group.classic.group import GroupState
from minicluster.coordinator.group.classic.rebalance import reschedule_heartbeat
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
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import OffsetCommitRequest, OffsetCommitResponse
from minicluster.protocol.uuids import ZERO_UUID

_TOPIC_IDS_FROM = 10
_GROUP_NOT_FOUND_FROM = 9
_DEFAULT_RETENTION = -1


def _plus(now_ms: int, retention_ms: int) -> int:
    """The sum as Java's long holds it: past the largest one it goes on from the least."""
    return (now_ms + retention_ms + (1 << 63)) % (1 << 64) - (1 << 63)


def _response(outcomes: Outcomes, version: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id if version >= _TOPIC_IDS_FROM else ZERO_UUID,
                partitions=tuple(
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=index, error_code=error
                    )
                    for index, error in topic.errors
                ),
            )
            for topic in outcomes
        )
    )


def handle_offset_commit(
    state: CoordinatorState,
    context: Context,
    request: OffsetCommitRequest,
    version: int,
    now_ms: int,
) -> None:
    """Commit the offsets of partitions that exist.

    Errors:  by partition UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE;
             for all of them what the group refuses.
    """
    outcomes = Outcomes(by_id=version >= _TOPIC_IDS_FROM)
    topics = _known_topics(state, request, version, outcomes)
    if not topics:
        state.respond(context.token, _response(outcomes, version))
        return

    def done(errors: Sequence[ErrorCode], error: ErrorCode | None, _: str | None) -> None:
        outcomes.add_all(topics, errors if error is None else error)
        state.respond(context.token, _response(outcomes, version))

    def operation(shard: GroupShard, at_ms: int) -> Result:
        return commit_offsets(state, shard, request, version, topics, at_ms)

    state.write(request.group_id, operation, done, now_ms)


def _known_topics(
    state: CoordinatorState, request: OffsetCommitRequest, version: int, outcomes: Outcomes
) -> list[TopicToCommit]:
    known = []
    for item in request.topics:
        by_id = version >= _TOPIC_IDS_FROM
        images = state.image.topics
        topic = images.get(item.topic_id) if by_id else images.named(item.name)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for partition in item.partitions:
                outcomes.add(item.name, item.topic_id, partition.partition_index, error)
            continue
        for partition in item.partitions:
            if partition.partition_index not in topic.partitions:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                outcomes.add(topic.name, topic.id, partition.partition_index, error)
        there = [p for p in item.partitions if p.partition_index in topic.partitions]
        if there:
            known.append(TopicToCommit(topic.name, topic.id, there))
    return known


@step
def commit_offsets(
    state: CoordinatorState,
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
