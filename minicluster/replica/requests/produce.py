"""Produce: append, and with acks=all wait for the high watermark.

Versions: v1 and v2 add throttle time and timestamps. v3 adds the transactional id and takes one
          batch per partition, of magic 2 (KIP-98). v5 adds the log start to the response, v7 takes
          zstd (KIP-110), v8 adds record errors (KIP-467), v10 the current leader (KIP-951), v12 the
          transaction of KIP-890, v13 topic ids in place of names (KIP-516).
Leaves out: transactions: no coordinator can verify one.
Source:   KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend, appendRecords,
          DelayedProduce.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from minicluster.log import RecordBatch
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import ProduceResponse
from minicluster.protocol.topics import INTERNAL_TOPICS
from minicluster.replica.appending.produced_records import ProducedRecords, produced_records
from minicluster.replica.effects import CloseConnection
from minicluster.replica.errors import InvalidRecords, RecordError, ReplicaError
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
_CURRENT_LEADER_FROM = 10
_UNVERIFIED = (
    "Unable to verify the partition has been added to the transaction. Underlying error: "
    "COORDINATOR_NOT_AVAILABLE"
)
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Refusals by the log that are expected; with any other one the response has the log start."""


@dataclass(slots=True)
class ProducePartitionStatus:
    """The append to one partition; its error is what it would respond with now."""

    topic: str
    topic_id: uuid.UUID
    index: int
    key: Key | None
    produced: ProducedRecords
    batch: RecordBatch | None = None  # set once the request is found to be sound
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    record_errors: tuple[RecordError, ...] = field(default=())
    log_start_offset: int = -1
    appended: LogAppendInfo | None = None
    waits: bool = False

    def refuse(self, refusal: ReplicaError) -> None:
        """Take the error of the partition, with its message where Kafka gives one."""
        self.error = refusal.error
        if isinstance(refusal, InvalidRecords):
            self.message, self.record_errors = refusal.message, refusal.errors


def handle_produce(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Append, and respond now or once the records are replicated.

    With acks=0 nothing is sent: the response is None, and after an error the connection is closed,
    so that the producer finds out.
    """
    acks = request.acks
    statuses = _statuses(state, request, version)
    try:
        _check_transactional_id(statuses, request)
        _check_partitions(state, statuses, version)
        _check_transactions(state, statuses)
    except _WholeRequest as refused:
        if acks == ACKS_NONE:
            state.effects.append(CloseConnection(token))
        else:
            response = error_response(request, refused.error, refused.message, version=version)
            state.respond(token, response)
        return
    for status in statuses:
        if status.error == ErrorCode.NONE:
            _append(state, status, acks, now_ms)
    if acks == ACKS_NONE:
        if any(status.error != ErrorCode.NONE for status in statuses):
            state.effects.append(CloseConnection(token))
        else:
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


# --- checks before any append -----------------------------------------------------------------


class _WholeRequest(Exception):
    """The refusal of a request as a whole."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        self.error = error
        self.message = message


def _statuses(
    state: ReplicaManagerState, request: Any, version: int
) -> list[ProducePartitionStatus]:
    """The partitions of a request; of one that it names twice the last records count."""
    found: dict[tuple[uuid.UUID, str, int], ProducePartitionStatus] = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            name, topic_id, index = topic.name, topic.topic_id, data.index
            key = state.key_of(name, topic_id, index, version)
            found[topic_id, name, index] = ProducePartitionStatus(
                name, topic_id, index, key, produced_records(data.records)
            )
    return list(found.values())


def _check_transactional_id(statuses: Iterable[ProducePartitionStatus], request: Any) -> None:
    """Refuse transactional records of nobody.

    Source:  RequestUtils.hasTransactionalRecords, which reads the first batches as they come.
    """
    for status in statuses:
        produced = status.produced
        if produced.batches:
            if produced.batches[0].is_transactional:
                if request.transactional_id is None:
                    raise _WholeRequest(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                return
        elif produced.damage is not None and produced.damage.error == ErrorCode.CORRUPT_MESSAGE:
            raise _WholeRequest(ErrorCode.CORRUPT_MESSAGE, produced.damage.why)


def _check_partitions(
    state: ReplicaManagerState, statuses: Iterable[ProducePartitionStatus], version: int
) -> None:
    """Refuse partitions that do not exist, and records that no version or this one cannot have."""
    for status in statuses:
        try:
            if status.key is None and version >= TOPIC_IDS_FROM:
                raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_ID)
            if status.key is None or state.image.topics.partition(*status.key) is None:
                raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            status.batch = status.produced.only_batch(version)
        except ReplicaError as refusal:
            status.refuse(refusal)


def _check_transactions(
    state: ReplicaManagerState, statuses: Iterable[ProducePartitionStatus]
) -> None:
    """Refuse transactional records: a coordinator would have to verify their transaction.

    Source:  ReplicaManager.handleProduceAppend, maybeSendPartitionsToTransactionCoordinator.
    """
    transactional = [
        (status, status.batch)
        for status in statuses
        if status.batch is not None
        and status.batch.is_transactional
        and status.batch.producer_id >= 0
    ]
    if len({(batch.producer_id, batch.producer_epoch) for _, batch in transactional}) > 1:
        raise _WholeRequest(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    for status, _ in transactional:
        try:
            state.partition(status.key).require_leader()
        except ReplicaError as refusal:
            status.refuse(refusal)
        else:
            status.error, status.message = ErrorCode.NOT_ENOUGH_REPLICAS, _UNVERIFIED


# --- append -----------------------------------------------------------------------------------


def _append(
    state: ReplicaManagerState, status: ProducePartitionStatus, acks: int, now_ms: int
) -> None:
    """Append the batch of one partition, and complete the operations that waited for it.

    Source:  ReplicaManager.appendToLocalLog.
    """
    assert status.key is not None
    assert status.batch is not None
    if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
        status.error = ErrorCode.INVALID_REQUIRED_ACKS
        return
    try:
        partition = state.partition(status.key)
        if partition.topic in INTERNAL_TOPICS:
            status.error = ErrorCode.INVALID_TOPIC_EXCEPTION
            return
        appended = append_records_to_leader(partition, status.batch, acks, now_ms)
    except ReplicaError as refusal:
        status.refuse(refusal)
        if refusal.error not in _WITHOUT_LOG_START:
            status.log_start_offset = partition.log_start_offset
        return
    status.appended, status.log_start_offset = appended, appended.log_start_offset
    if appended.high_watermark_increased:
        state.delayed.check_and_complete_all(status.key, now_ms)
    elif not appended.is_duplicate:
        # Followers may read up to the log end.
        state.delayed.fetches.check_and_complete(status.key, now_ms)


# --- responses --------------------------------------------------------------------------------


def _response(
    state: ReplicaManagerState, statuses: list[ProducePartitionStatus], version: int
) -> ProduceResponse:
    """The response; where this broker does not lead, with the leaders and their endpoints.

    The producer finds them without another Metadata request (KIP-951).
    """
    topics: dict[tuple[uuid.UUID, str], list[Any]] = {}
    leaders: dict[int, None] = {}
    for status in statuses:
        leader = ProduceResponse.LeaderIdAndEpoch()
        if status.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= _CURRENT_LEADER_FROM:
            number, epoch = state.current_leader(status.key)
            leader = ProduceResponse.LeaderIdAndEpoch(leader_id=number, leader_epoch=epoch)
            leaders[number] = None
        data = _partition_response(status, leader)
        topics.setdefault((status.topic_id, status.topic), []).append(data)
    return ProduceResponse(
        responses=tuple(
            ProduceResponse.TopicProduceResponse(
                name=name, topic_id=topic_id, partition_responses=tuple(data)
            )
            for (topic_id, name), data in topics.items()
        ),
        node_endpoints=tuple(
            ProduceResponse.NodeEndpoint(node_id=n, host=e.host, port=e.port, rack=rack)
            for n in leaders
            if (found := state.endpoint(n)) is not None
            for e, rack in (found,)
        ),
    )


def _partition_response(
    status: ProducePartitionStatus, leader: ProduceResponse.LeaderIdAndEpoch
) -> ProduceResponse.PartitionProduceResponse:
    appended = status.appended
    error = ProduceResponse.BatchIndexAndErrorMessage
    return ProduceResponse.PartitionProduceResponse(
        index=status.index,
        error_code=status.error,
        base_offset=-1 if appended is None else appended.first_offset,
        log_append_time_ms=-1 if appended is None else appended.log_append_time_ms,
        log_start_offset=status.log_start_offset,
        record_errors=tuple(
            error(batch_index=e.batch_index, batch_index_error_message=e.message)
            for e in status.record_errors
        ),
        error_message=status.message,
        current_leader=leader,
    )
