"""Offsets in a leader's log: of timestamps (ListOffsets), of epochs (OffsetForLeaderEpoch).

Leaves out: tiered storage.
"""

from __future__ import annotations

from typing import Any

from minicluster.log.epochs import NO_EPOCH, optional_epoch
from minicluster.metadata.topic_partition import grouped_by_topic
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import ListOffsetsResponse, OffsetForLeaderEpochResponse
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.reads import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    last_offset_for_leader_epoch,
    list_offsets,
)
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests.fetch import CONSUMER, ISOLATION_LEVELS, READ_COMMITTED

# ListOffsets: the offsets of timestamps.
#
# Versions: v0 has a list of offsets per partition, v1 one offset and its timestamp (KIP-79). v2
#           adds the isolation level, v4 the leader epoch (KIP-320). v5 has OFFSET_NOT_AVAILABLE
#           (KIP-207). The special timestamps come in v7 (-3, KIP-734), v8 (-4, KIP-405), v9 (-5,
#           KIP-1005) and v11 (-6, KIP-1023). v10 adds a timeout, for tiered storage.
# Source:   KIP-79, KIP-207, KIP-734; ReplicaManager.fetchOffset.

DEBUGGING_CONSUMER = -2
_LEADER_EPOCH_FROM = 4
_OFFSET_NOT_AVAILABLE_FROM = 5

# The first version of each special timestamp (ReplicaManager.isListOffsetsTimestampUnsupported).
FIRST_VERSIONS = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}


def handle_list_offsets(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Look up offsets; a follower gets the log end where a consumer gets the high watermark.

    Errors:  UNKNOWN_SERVER_ERROR for an unknown isolation level; per partition INVALID_REQUEST for
             one that the request has twice.
    """
    if request.topics and request.isolation_level not in ISOLATION_LEVELS:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        state.respond(token, error_response(request, error, version=version))
        return
    kind = ListOffsetsResponse
    topics: dict[str, dict[int, Any]] = {}
    for topic in request.topics:
        responses = topics.setdefault(topic.name, {})
        for wanted in topic.partitions:
            index = wanted.partition_index
            if index in responses:
                responses[index] = kind.ListOffsetsPartitionResponse(
                    partition_index=index, error_code=ErrorCode.INVALID_REQUEST
                )
            else:
                responses[index] = _list_offset(state, topic.name, wanted, request, version)
    places = {name: list(responses) for name, responses in topics.items()}
    if state.rules.list_offsets_in_hash_order:
        places = grouped_by_topic((name, index) for name in places for index in places[name])
    response = kind(
        topics=tuple(
            kind.ListOffsetsTopicResponse(
                name=name, partitions=tuple(topics[name][index] for index in indexes)
            )
            for name, indexes in places.items()
        )
    )
    state.respond(token, response)


def _list_offset(
    state: ReplicaManagerState, topic: str, wanted: Any, request: Any, version: int
) -> Any:
    kind = ListOffsetsResponse.ListOffsetsPartitionResponse
    index, replica_id = wanted.partition_index, request.replica_id
    if wanted.timestamp < 0 and version < FIRST_VERSIONS.get(wanted.timestamp, version + 1):
        return kind(partition_index=index, error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        located = list_offsets(
            state.partition_named(topic, index),
            timestamp=wanted.timestamp,
            from_replica=replica_id != CONSUMER,
            read_committed=request.isolation_level == READ_COMMITTED,
            current_leader_epoch=optional_epoch(wanted.current_leader_epoch),
            leader_only=replica_id != DEBUGGING_CONSUMER,
        )
    except ReplicaError as rejection:
        error = rejection.error
        # Older clients have no such error, and retry after LEADER_NOT_AVAILABLE.
        if error == ErrorCode.OFFSET_NOT_AVAILABLE and version < _OFFSET_NOT_AVAILABLE_FROM:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        return kind(partition_index=index, error_code=error)
    if located is None:
        return kind(partition_index=index)
    if version == 0:
        return kind(partition_index=index, old_style_offsets=(located.offset,))
    leader_epoch = located.leader_epoch if version >= _LEADER_EPOCH_FROM else None
    return kind(
        partition_index=index,
        timestamp=located.timestamp,
        offset=located.offset,
        leader_epoch=NO_EPOCH if leader_epoch is None else leader_epoch,
    )


# OffsetForLeaderEpoch: the ends of leader epochs in a leader's log.
#
# Versions: v1 adds the leader epoch to the response (KIP-279), v2 the current leader epoch to the
#           request (KIP-320), v3 the replica id.
# Source:   KIP-101, KIP-279, KIP-320; ReplicaManager.lastOffsetForLeaderEpoch.


def handle_offset_for_leader_epoch(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Look up where leader epochs end."""
    kind = OffsetForLeaderEpochResponse
    topics = tuple(
        kind.OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=tuple(_epoch_end(state, topic.topic, wanted) for wanted in topic.partitions),
        )
        for topic in request.topics
    )
    state.respond(token, kind(topics=topics))


def _epoch_end(state: ReplicaManagerState, topic: str, wanted: Any) -> Any:
    kind = OffsetForLeaderEpochResponse.EpochEndOffset
    try:
        end = last_offset_for_leader_epoch(
            state.partition_named(topic, wanted.partition),
            wanted.leader_epoch,
            current_leader_epoch=optional_epoch(wanted.current_leader_epoch),
        )
    except ReplicaError as rejection:
        return kind(partition=wanted.partition, error_code=rejection.error)
    return kind(partition=wanted.partition, leader_epoch=end.epoch, end_offset=end.end_offset)
