"""AlterReplicaLogDirs (34): move replicas of this broker to other log directories (KIP-113).

Versions:  v1 is as v0; from v2 on the encoding is flexible.
Source:    KafkaApis.handleAlterReplicaLogDirsRequest, ReplicaManager.alterReplicaLogDirs.
"""

from __future__ import annotations

from typing import Any

from minicluster.metadata.cordoned import cordoned_directories
from minicluster.metadata.topic_partition import grouped_by_topic
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterReplicaLogDirsResponse
from minicluster.replica.errors import ReplicaError
from minicluster.replica.log_directories import begin_move, cancel_move
from minicluster.replica.log_manager import log_name
from minicluster.replica.state.replica_manager_state import ReplicaManagerState

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
    cordoned = cordoned_directories(state.image, state.broker_id, state.config.dir_names) or ()
    if directory in cordoned:
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
