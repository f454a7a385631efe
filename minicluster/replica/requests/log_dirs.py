"""The log directories of this broker: what lies in them, and replicas that move between them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from minicluster.java_order import (
    concurrent_map_order,
    scala_trie_order,
    string_hash,
    topic_partition_hash,
)
from minicluster.metadata.topic_partition import grouped_by_topic
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterReplicaLogDirsResponse, DescribeLogDirsResponse
from minicluster.replica.errors import ReplicaError
from minicluster.replica.log_directories import begin_move, cancel_move
from minicluster.replica.log_manager import VOLUME_BYTES, StoredLog, log_name, size_on_disk
from minicluster.replica.replica_manager_state import ReplicaManagerState

# DescribeLogDirs (35): the logs in each log directory of this broker (KIP-113).
#
# Versions:   v1 is as v0, v2 flexible. v3 has an error for the whole response, v4 the size of the
#             volume (KIP-827), v5 the cordoned directories (KIP-1066).
# Source:     KafkaApis.handleDescribeLogDirsRequest, ReplicaManager.describeLogDirs.

_INVALID_OFFSET_LAG = -1

Result = DescribeLogDirsResponse.DescribeLogDirsResult


def handle_describe_log_dirs(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Describe every directory, with the requested partitions in it; null requests all.

    Errors:  per directory KAFKA_STORAGE_ERROR.
    """
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    names = state.config.dir_names
    cordoned = state.cordoned_directories
    online = state.store.online_directories
    usable_bytes = state.store.usable_bytes
    logs = _in_order_of_maps(state)
    results = []
    for name, directory in names.items():
        if directory in online:
            is_cordoned = directory in cordoned
            result = _directory(state, name, directory, logs, wanted, is_cordoned, usable_bytes)
        else:
            result = Result(log_dir=name, error_code=ErrorCode.KAFKA_STORAGE_ERROR, topics=())
        results.append(result)
    state.respond(token, DescribeLogDirsResponse(results=tuple(results)))


def _directory(
    state: ReplicaManagerState,
    name: str,
    directory: uuid.UUID,
    logs: Sequence[StoredLog],
    wanted: set[tuple[str, int]] | None,
    is_cordoned: bool,
    usable_bytes: int,
) -> Any:
    topics: dict[str, list[StoredLog]] = {}
    for stored in logs:
        if stored.directory == directory:
            topics.setdefault(stored.topic, []).append(stored)
    described = {
        topic: [
            _partition(state, stored)
            for stored in topics[topic]
            if wanted is None or (topic, stored.index) in wanted
        ]
        for topic in scala_trie_order(topics, string_hash)
    }
    return Result(
        log_dir=name,
        topics=tuple(
            DescribeLogDirsResponse.DescribeLogDirsTopic(name=topic, partitions=tuple(partitions))
            for topic, partitions in described.items()
            if partitions
        ),
        total_bytes=VOLUME_BYTES,
        usable_bytes=usable_bytes,
        is_cordoned=is_cordoned,
    )


def _in_order_of_maps(state: ReplicaManagerState) -> list[StoredLog]:
    """The logs, then those that are still copied, each in the order of their map.

    Source:  LogManager.allLogs.
    """
    current: dict[tuple[str, int], StoredLog] = {}
    copied: dict[tuple[str, int], StoredLog] = {}
    for log in state.store.stored_logs():
        (copied if log.is_future else current)[log.topic, log.index] = log
    return [
        logs[key]
        for logs in (current, copied)
        for key in concurrent_map_order(logs, topic_partition_hash)
    ]


def _partition(state: ReplicaManagerState, stored: StoredLog) -> Any:
    return DescribeLogDirsResponse.DescribeLogDirsPartition(
        partition_index=stored.index,
        partition_size=size_on_disk(stored.log),
        offset_lag=_offset_lag(state, stored),
        is_future_key=stored.is_future,
    )


def _offset_lag(state: ReplicaManagerState, stored: StoredLog) -> int:
    """The lag of a future log behind the current one, or of this one behind its high watermark.

    Source:  ReplicaManager.getLogEndOffsetLag.
    """
    partition = state.partitions.get((stored.topic_id, stored.index))
    if partition is None:
        return _INVALID_OFFSET_LAG
    if stored.is_future:
        return partition.log_end_offset - stored.log.end_offset
    return max(partition.high_watermark - stored.log.end_offset, 0)


# AlterReplicaLogDirs (34): move replicas of this broker to other log directories (KIP-113).
#
# Versions:  v1 is as v0; from v2 on the encoding is flexible.
# Source:    KafkaApis.handleAlterReplicaLogDirsRequest, ReplicaManager.alterReplicaLogDirs.


_FUTURE_SUFFIX_BYTES = len(".-future") + 32  # LocalLog.logFutureDirName, with a uuid
_LONGEST_NAME = 255


def handle_alter_replica_log_dirs(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Begin to move each replica; the response comes before the data has moved.

    Errors:  per partition INVALID_TOPIC_EXCEPTION (no room for the name of a log that is copied),
             LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, INVALID_REPLICA_ASSIGNMENT (a
             cordoned directory), REPLICA_NOT_AVAILABLE (no replica here), and
             UNKNOWN_TOPIC_OR_PARTITION.
    """
    wanted = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    kind = AlterReplicaLogDirsResponse
    results = {
        (topic, index): kind.AlterReplicaLogDirPartitionResult(
            partition_index=index, error_code=_move(state, topic, index, path, now_ms)
        )
        for (topic, index), path in wanted.items()
    }
    response = kind(
        results=tuple(
            kind.AlterReplicaLogDirTopicResult(
                topic_name=name, partitions=tuple(results[name, index] for index in indexes)
            )
            for name, indexes in grouped_by_topic(results).items()
        )
    )
    state.respond(token, response)


def _move(state: ReplicaManagerState, topic: str, index: int, path: str, now_ms: int) -> ErrorCode:
    if len(log_name(topic, index)) + _FUTURE_SUFFIX_BYTES > _LONGEST_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    directory = state.config.dir_names.get(path)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directory not in state.store.online_directories:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if directory in state.cordoned_directories:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    name = log_name(topic, index)
    try:
        partition = state.partition_named(topic, index)
    except ReplicaError as rejection:
        if rejection.error == ErrorCode.KAFKA_STORAGE_ERROR:
            return rejection.error
        state.preferred_directories[name] = directory  # for a replica that comes here later
        if rejection.error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return ErrorCode.REPLICA_NOT_AVAILABLE  # as clients have known it from before KIP-516
        return rejection.error
    if partition.future is not None and partition.future.directory != directory:
        cancel_move(state, partition, now_ms)
    current = state.store.partition_file(name)
    is_there = current is not None and current.directory == directory
    if not is_there and partition.future is None:
        begin_move(state, partition, directory, now_ms)
    return ErrorCode.NONE
