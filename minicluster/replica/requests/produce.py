"""Produce: append, and with acks=all wait for the high watermark.

Versions: v1 and v2 add throttle time and timestamps. v3 adds the transactional id and takes one
          batch per partition, of magic 2 (KIP-98). v5 adds the log start to the response, v8 record
          errors (KIP-467), v10 the current leader (KIP-951), v12 the transaction of KIP-890, v13
          topic ids in place of names (KIP-516).
Leaves out: transactions, message format v0 and v1, record errors.
Source:   ReplicaManager.appendRecords, DelayedProduce, KafkaApis.handleProduceRequest.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

from minicluster.log import InvalidBatch, RecordBatch, Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ProduceResponse
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.leader_log import (
    ACKS_ALL,
    acknowledge,
    append_records_to_leader,
    check_enough_replicas,
)
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.results import LogAppendInfo
from minicluster.replica.requests.purgatory import DelayedOperation, Key
from minicluster.replica.state.replica_manager_state import TOPIC_IDS_FROM, ReplicaManagerState

ACKS_NONE = 0
ACKS_LEADER = 1
_ONE_BATCH_FROM = 3
_CURRENT_LEADER_FROM = 10


@dataclass(slots=True)
class ProducePartitionStatus:
    """The append to one partition; its error is what it would respond with now."""

    topic: str
    topic_id: uuid.UUID
    index: int
    key: Key | None
    error: ErrorCode = ErrorCode.NONE
    appended: LogAppendInfo | None = None
    waits: bool = False


def handle_produce(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Append, and respond now or once the records are replicated.

    With acks=0 the response is None, and nothing is to be sent.
    """
    statuses: list[ProducePartitionStatus] = []
    acks = request.acks
    for topic in request.topic_data:
        for data in topic.partition_data:
            key = state.key_of(topic.name, topic.topic_id, data.index, version)
            status = ProducePartitionStatus(topic.name, topic.topic_id, data.index, key)
            statuses.append(status)
            try:
                if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
                    raise ReplicaError(ErrorCode.INVALID_REQUIRED_ACKS, f"{acks} acks")
                _append(state, status, data.records, acks, version, now_ms)
            except ReplicaError as refusal:
                status.error = refusal.error
    if acks == ACKS_NONE:
        state.respond(token, None)
        return
    waiting = [s for s in statuses if acks == ACKS_ALL and s.appended is not None]
    for status in waiting:
        status.waits, status.error = True, ErrorCode.REQUEST_TIMED_OUT
    operation = DelayedProduce(state, token, statuses, version, now_ms + request.timeout_ms)
    if operation.try_complete(now_ms):
        operation.on_complete(now_ms)
    else:
        state.delayed.produces.watch(operation, [s.key for s in waiting if s.key is not None])


class DelayedProduce(DelayedOperation):
    """A produce with acks=all that waits for the high watermarks of its partitions."""

    __slots__ = ("_replicated", "_state", "_statuses", "_token", "_version", "deadline_ms")

    def __init__(
        self,
        state: ReplicaManagerState,
        token: Any,
        statuses: list[ProducePartitionStatus],
        version: int,
        deadline_ms: int,
    ) -> None:
        self._state = state
        self._token = token
        self._statuses = statuses
        self._version = version
        self._replicated: list[tuple[Partition, int]] = []  # acknowledged with the response
        self.deadline_ms = deadline_ms

    def try_complete(self, now_ms: int) -> bool:
        """Complete once each partition is replicated far enough, or cannot be any more.

        Source:  DelayedProduce.tryComplete.
        """
        for status in self._statuses:
            if status.waits:
                self._check(status)
        return not any(status.waits for status in self._statuses)

    def on_complete(self, now_ms: int) -> None:
        """Respond; partitions that still wait have timed out, and may be replicated yet."""
        for partition, last_offset in self._replicated:
            acknowledge(partition, last_offset)
        response = _response(self._state, self._statuses, self._version)
        self._state.respond(self._token, response)

    def _check(self, status: ProducePartitionStatus) -> None:
        assert status.appended is not None
        try:
            partition = self._state.partition(status.key)
        except ReplicaError as refusal:
            status.waits, status.error = False, refusal.error
            return
        replicas = check_enough_replicas(partition, status.appended.last_offset + 1)
        if not replicas.reached and replicas.error == ErrorCode.NONE:
            return
        status.waits, status.error = False, replicas.error
        if replicas.error == ErrorCode.NONE:
            self._replicated.append((partition, status.appended.last_offset))


def _append(
    state: ReplicaManagerState,
    status: ProducePartitionStatus,
    records: Any,
    acks: int,
    version: int,
    now_ms: int,
) -> None:
    """Append the batches of one partition, and complete the operations that waited for them."""
    if status.key is None:
        raise ReplicaError(
            ErrorCode.UNKNOWN_TOPIC_ID
            if version >= TOPIC_IDS_FROM
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
    batches = _validated(records, version)
    partition = state.partition(status.key)
    first: LogAppendInfo | None = None
    for batch in batches:
        last = append_records_to_leader(partition, batch, acks, now_ms)
        first = first or last
        if last.high_watermark_increased:
            state.delayed.check_and_complete_all(status.key, now_ms)
        elif not last.is_duplicate:
            # Followers may read up to the log end.
            state.delayed.fetches.check_and_complete(status.key, now_ms)
        status.appended = replace(last, first_offset=first.first_offset, size=first.size)


def _validated(records: Any, version: int) -> tuple[RecordBatch, ...]:
    """The batches of a produce.

    Errors:  CORRUPT_MESSAGE for a damaged one; INVALID_RECORD where there is none, or more than
             one from version 3 on.
    Source:  ProduceRequest.validateRecords.
    """
    try:
        batches = Records.of(records).batches
    except InvalidBatch as damage:
        raise ReplicaError(ErrorCode.CORRUPT_MESSAGE, str(damage)) from damage
    if not batches:
        raise ReplicaError(ErrorCode.INVALID_RECORD, "the request holds no record batch")
    if version >= _ONE_BATCH_FROM and len(batches) > 1:
        raise ReplicaError(ErrorCode.INVALID_RECORD, "the request holds more than one batch")
    if any(batch.is_control for batch in batches):
        raise ReplicaError(ErrorCode.INVALID_RECORD, "clients cannot write control batches")
    return batches


def _response(
    state: ReplicaManagerState, statuses: list[ProducePartitionStatus], version: int
) -> ProduceResponse:
    topics: dict[tuple[uuid.UUID, str], list[Any]] = {}
    for status in statuses:
        data = _partition_response(state, status, version)
        topics.setdefault((status.topic_id, status.topic), []).append(data)
    return ProduceResponse(
        responses=tuple(
            ProduceResponse.TopicProduceResponse(
                name=name, topic_id=topic_id, partition_responses=tuple(data)
            )
            for (topic_id, name), data in topics.items()
        )
    )


def _partition_response(
    state: ReplicaManagerState, status: ProducePartitionStatus, version: int
) -> Any:
    leader = ProduceResponse.LeaderIdAndEpoch()
    # The producer finds the new leader without another Metadata request (KIP-951).
    if status.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= _CURRENT_LEADER_FROM:
        leader_id, leader_epoch = state.current_leader(status.key)
        leader = ProduceResponse.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    appended = status.appended
    return ProduceResponse.PartitionProduceResponse(
        index=status.index,
        error_code=status.error,
        base_offset=-1 if appended is None else appended.first_offset,
        log_start_offset=-1 if appended is None else appended.log_start_offset,
        error_message=None,  # Kafka has one for record errors alone
        current_leader=leader,
    )
