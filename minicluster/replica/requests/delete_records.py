"""DeleteRecords: move log starts up, and wait until every live replica has done the same.

Versions: v1 and v2 are as v0; from v2 on the encoding is flexible.
Source:   KIP-107; ReplicaManager.deleteRecords, DelayedDeleteRecords.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from minicluster.metadata.topic_partition import grouped_by_topic
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteRecordsResponse
from minicluster.protocol.topics import INTERNAL_TOPICS
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.high_watermark import low_watermark
from minicluster.replica.partition.leader_log import delete_records_on_leader
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests.purgatory import DelayedOperation, Key


class DeleteRecordsPartitionStatus(Struct):
    """The deletion in one partition; its error and low watermark are the response as of now."""

    topic: str
    index: int
    key: Key | None
    error: ErrorCode = ErrorCode.NONE
    low_watermark: int = -1
    requested: int = -1
    waits: bool = False


def handle_delete_records(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Move log starts up, and respond once the low watermarks have followed.

    Source:  ReplicaManager.deleteRecordsOnLocalLog.
    """
    statuses: list[DeleteRecordsPartitionStatus] = []
    offsets = {
        (topic.name, wanted.partition_index): wanted.offset
        for topic in request.topics
        for wanted in topic.partitions
    }
    for (topic, index), offset in offsets.items():
        status = DeleteRecordsPartitionStatus(topic, index, state.key_named(topic, index))
        statuses.append(status)
        try:
            if topic in INTERNAL_TOPICS and state.is_known(topic, index):
                raise ReplicaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal")
            deleted = delete_records_on_leader(state.partition_named(topic, index), offset)
        except ReplicaError as rejection:
            status.error = rejection.error
            continue
        # Until the followers have moved as well: a client that was told of the deletion could
        # otherwise read the records again, from a follower that is leader by then.
        status.requested, status.low_watermark = deleted.requested_offset, deleted.low_watermark
        status.waits, status.error = True, ErrorCode.REQUEST_TIMED_OUT
    operation = DelayedDeleteRecords(state, token, statuses, now_ms + request.timeout_ms)
    if operation.try_complete(now_ms):
        operation.on_complete(now_ms)
    else:
        state.delayed.deletes.watch(operation, [s.key for s in statuses if s.waits and s.key])


class DelayedDeleteRecords(DelayedOperation):
    """A deletion of records that waits for the low watermarks of its partitions."""

    __slots__ = ("_state", "_statuses", "_token")

    def __init__(
        self,
        state: ReplicaManagerState,
        token: Any,
        statuses: list[DeleteRecordsPartitionStatus],
        deadline_ms: int,
    ) -> None:
        self._state = state
        self._token = token
        self._statuses = statuses
        self.deadline_ms = deadline_ms

    def try_complete(self, now_ms: int) -> bool:
        """Complete once each low watermark has reached its offset, or its replica is lost.

        Errors:  per partition UNKNOWN_TOPIC_OR_PARTITION without a local replica, wherever the
                 partition is by the metadata.
        Source:  ReplicaManager.deleteRecords (onAcks).
        """
        for status in self._statuses:
            if not status.waits:
                continue
            try:
                low = low_watermark(self._state.hosted(status.key))
            except ReplicaError as rejection:
                status.waits, status.error, status.low_watermark = False, rejection.error, -1
                continue
            if low >= status.requested:
                status.waits, status.error, status.low_watermark = False, ErrorCode.NONE, low
        return not any(status.waits for status in self._statuses)

    def on_complete(self, now_ms: int) -> None:
        """Respond; partitions that still wait have timed out, with their first low watermark."""
        kind = DeleteRecordsResponse
        results = {
            (status.topic, status.index): kind.DeleteRecordsPartitionResult(
                partition_index=status.index,
                low_watermark=status.low_watermark,
                error_code=status.error,
            )
            for status in self._statuses
        }
        response = kind(
            topics=tuple(
                kind.DeleteRecordsTopicResult(
                    name=name, partitions=tuple(results[name, index] for index in indexes)
                )
                for name, indexes in grouped_by_topic(results).items()
            )
        )
        self._state.respond(self._token, response)
