"""OffsetDelete (47): committed offsets of topics that a group does not read any more (KIP-496).

The offsets of topics that are deleted go with them.

Versions:  0.
Source:    KafkaApis.handleOffsetDeleteRequest, OffsetMetadataManager.deleteOffsets;
           GroupCoordinatorService.onMetadataUpdate, OffsetMetadataManager.onTopicsDeleted.
"""

from __future__ import annotations

import uuid

from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.group.offsets.committed import OffsetKey, offset_record
from minicluster.coordinator.group.request_context import Context
from minicluster.coordinator.runtime.shard import Result
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse
from minicluster.protocol.uuids import ZERO_UUID

Places = dict[str, dict[int, ErrorCode]]
"""The outcome of each partition by topic, both in the order of their first mention."""


def handle_offset_delete(
    state: GroupCoordinatorState,
    context: Context,
    request: OffsetDeleteRequest,
    version: int,
    now_ms: int,
) -> None:
    """Delete the offsets of partitions that exist.

    Errors:  INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP for the whole; by partition
             UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC.
    """
    unknown: Places = {}
    known: dict[str, list[int]] = {}
    for item in request.topics:
        topic = state.image.topics.named(item.name)
        for partition in item.partitions:
            index = partition.partition_index
            if topic is not None and index in topic.partitions:
                known.setdefault(item.name, []).append(index)
            else:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                unknown.setdefault(item.name, {}).setdefault(index, error)

    def operation(shard: GroupShard, _: int) -> Result:
        return _delete(shard, request.group_id, known)

    def reject(error: ErrorCode) -> None:
        state.respond(context.token, OffsetDeleteResponse(error_code=error))

    def done(places: Places, error: ErrorCode | None, _: str | None) -> None:
        if error is not None:
            reject(error)
            return
        for name, partitions in places.items():
            unknown.setdefault(name, {}).update(partitions)
        state.respond(context.token, _response(unknown))

    if not request.group_id:
        reject(ErrorCode.INVALID_GROUP_ID)
        return
    state.write(request.group_id, operation, done, now_ms)


def _delete(shard: GroupShard, group_id: str, topics: dict[str, list[int]]) -> Result:
    group = shard.group(group_id)
    group.validate_offset_delete()
    keys: list[OffsetKey] = []
    places: Places = {}
    for name, indexes in topics.items():
        subscribed = group.is_subscribed_to(name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        places[name] = dict.fromkeys(indexes, error)
        if not subscribed:
            keys += [(group_id, name, index) for index in places[name]]
    has = shard.offsets.has
    records = tuple(offset_record(key, None) for key in keys if has(key))
    return Result(records=records, response=places)


def _response(places: Places) -> OffsetDeleteResponse:
    kind = OffsetDeleteResponse
    return kind(
        topics=tuple(
            kind.OffsetDeleteResponseTopic(
                name=name,
                partitions=tuple(
                    kind.OffsetDeleteResponsePartition(partition_index=index, error_code=error)
                    for index, error in partitions.items()
                ),
            )
            for name, partitions in places.items()
        )
    )


# --- topics that are deleted ----------------------------------------------------------------------


def delete_offsets_of_deleted_topics(
    state: GroupCoordinatorState, delta: MetadataDelta, now_ms: int
) -> None:
    """Write a tombstone for each offset of a topic that the delta deletes."""
    if delta.before.topics is delta.after.topics:
        return
    before, after = delta.before.topics, delta.after.topics
    deleted = {topic.name: topic.id for topic in before if after.get(topic.id) is None}
    if not deleted:
        return
    for partition in state.runtime.partitions:
        state.runtime.write(
            partition, lambda shard, _: _tombstones(shard, deleted), lambda *_: None, now_ms
        )


def _tombstones(shard: GroupShard, deleted: dict[str, uuid.UUID]) -> Result:
    records = tuple(
        offset_record(key, None)
        for key, value in shard.offsets.of_topics(deleted)
        if value.topic_id in (ZERO_UUID, deleted[key[1]])
    )
    return Result(records=records)
