"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords on the leader.

Source:  KIP-79, KIP-107, KIP-320; ReplicaManager.fetchOffset, lastOffsetForLeaderEpoch,
         deleteRecords, DelayedDeleteRecords.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minicluster.effects import Effect, Respond
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    DeleteRecordsResponse,
    ListOffsetsResponse,
    OffsetForLeaderEpochResponse,
)
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.reads import FIRST_VERSIONS
from minicluster.replica.requests.purgatory import DelayedOperation, Key

if TYPE_CHECKING:
    from minicluster.replica.machine import ReplicaManagerMachine

NO_EPOCH = -1
DEBUGGING_CONSUMER = -2
_TELLS_EPOCH = 4
_OFFSET_NOT_AVAILABLE = 5  # the first version that knows this error


def handle_list_offsets(
    manager: ReplicaManagerMachine, now_ms: int, token: Any, request: Any, version: int
) -> list[Effect]:
    """Latest, earliest, or the first offset of a time; a replica is told its leader's log end."""
    kind = ListOffsetsResponse
    topics = tuple(
        kind.ListOffsetsTopicResponse(
            name=topic.name,
            partitions=tuple(
                _list_offset(manager, topic.name, asked, request.replica_id, version)
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return [Respond(token, kind(topics=topics))]


def _list_offset(
    manager: ReplicaManagerMachine, topic: str, asked: Any, replica_id: int, version: int
) -> Any:
    kind = ListOffsetsResponse.ListOffsetsPartitionResponse
    index = asked.partition_index
    epoch = asked.current_leader_epoch
    if asked.timestamp < 0 and version < FIRST_VERSIONS.get(asked.timestamp, version + 1):
        return kind(partition_index=index, error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        found = manager.partition_named(topic, index).list_offsets(
            timestamp=asked.timestamp,
            from_replica=replica_id >= 0,
            current_leader_epoch=None if epoch == NO_EPOCH else epoch,
            leader_only=replica_id != DEBUGGING_CONSUMER,
        )
    except ReplicaError as refusal:
        error = refusal.error
        if error == ErrorCode.OFFSET_NOT_AVAILABLE and version < _OFFSET_NOT_AVAILABLE:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        return kind(partition_index=index, error_code=error)
    if found is None:
        return kind(partition_index=index)
    if version == 0:
        return kind(partition_index=index, old_style_offsets=(found.offset,))
    epoch = found.leader_epoch if version >= _TELLS_EPOCH else None
    return kind(
        partition_index=index,
        timestamp=-1 if found.timestamp is None else found.timestamp,
        offset=found.offset,
        leader_epoch=NO_EPOCH if epoch is None else epoch,
    )


def handle_offset_for_leader_epoch(
    manager: ReplicaManagerMachine, now_ms: int, token: Any, request: Any, version: int
) -> list[Effect]:
    """Where leader epochs end in this log."""
    kind = OffsetForLeaderEpochResponse
    topics = tuple(
        kind.OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=tuple(_epoch_end(manager, topic.topic, asked) for asked in topic.partitions),
        )
        for topic in request.topics
    )
    return [Respond(token, kind(topics=topics))]


def _epoch_end(manager: ReplicaManagerMachine, topic: str, asked: Any) -> Any:
    kind = OffsetForLeaderEpochResponse.EpochEndOffset
    epoch = asked.current_leader_epoch
    try:
        answer = manager.partition_named(topic, asked.partition).last_offset_for_leader_epoch(
            asked.leader_epoch, current_leader_epoch=None if epoch == NO_EPOCH else epoch
        )
    except ReplicaError as refusal:
        return kind(partition=asked.partition, error_code=refusal.error)
    return kind(
        partition=asked.partition,
        error_code=answer.error,
        leader_epoch=answer.leader_epoch,
        end_offset=answer.end_offset,
    )


@dataclass(slots=True)
class Deletion:
    """What became of one partition's deletion so far."""

    topic: str
    index: int
    key: Key | None
    error: ErrorCode = ErrorCode.NONE
    low_watermark: int = -1
    requested: int = -1
    waits: bool = False


def handle_delete_records(
    manager: ReplicaManagerMachine, now_ms: int, token: Any, request: Any, version: int
) -> list[Effect]:
    """Move log starts up and wait until every live replica has done the same."""
    results: list[Deletion] = []
    for topic in request.topics:
        for asked in topic.partitions:
            key = manager.key_of(topic.name, ZERO_UUID, asked.partition_index, version=0)
            result = Deletion(topic.name, asked.partition_index, key)
            results.append(result)
            try:
                done = manager.partition_named(topic.name, asked.partition_index).delete_records(
                    manager.view, asked.offset
                )
            except ReplicaError as refusal:
                result.error = refusal.error
                continue
            result.requested, result.low_watermark = done.requested_offset, done.low_watermark
            result.waits, result.error = True, ErrorCode.REQUEST_TIMED_OUT
    operation = DelayedDelete(manager, token, results, now_ms + request.timeout_ms)
    effects = operation.try_complete(now_ms)
    if effects is not None:
        return effects
    return manager.deletes.watch(operation, [r.key for r in results if r.waits and r.key])


class DelayedDelete(DelayedOperation):
    """A deletion of records that waits for the low watermarks of its partitions."""

    __slots__ = ("_manager", "_results", "_token", "deadline_ms")

    def __init__(
        self,
        manager: ReplicaManagerMachine,
        token: Any,
        results: list[Deletion],
        deadline_ms: int,
    ) -> None:
        self._manager = manager
        self._token = token
        self._results = results
        self.deadline_ms = deadline_ms

    def try_complete(self, now_ms: int) -> list[Effect] | None:
        """Answer once every low watermark is there, or never will be."""
        for result in self._results:
            if not result.waits:
                continue
            try:
                low = self._manager.partition(result.key).low_watermark(self._manager.view)
            except ReplicaError as refusal:
                result.waits, result.error = False, refusal.error
                continue
            result.low_watermark = low
            if low >= result.requested:
                result.waits, result.error = False, ErrorCode.NONE
        if any(result.waits for result in self._results):
            return None
        return self.expire(now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """Answer; what still waits has timed out."""
        kind = DeleteRecordsResponse
        topics: dict[str, list[Any]] = {}
        for result in self._results:
            failed = result.error != ErrorCode.NONE
            topics.setdefault(result.topic, []).append(
                kind.DeleteRecordsPartitionResult(
                    partition_index=result.index,
                    low_watermark=-1 if failed else result.low_watermark,
                    error_code=result.error,
                )
            )
        response = kind(
            topics=tuple(
                kind.DeleteRecordsTopicResult(name=name, partitions=tuple(partitions))
                for name, partitions in topics.items()
            )
        )
        return [Respond(self._token, response)]
