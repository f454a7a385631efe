"""Appends to partitions that this broker leads, and the wait until they are replicated.

Source:  ReplicaManager.appendRecords, appendToLocalLog, DelayedProduce.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from minicluster.log import RecordBatch
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.topics import INTERNAL_TOPICS
from minicluster.replica.errors import InvalidRecords, RecordError, ReplicaError
from minicluster.replica.partition.leader_log import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    LogAppendInfo,
    acknowledge,
    append_records_to_leader,
    check_enough_replicas,
)
from minicluster.replica.partition.partition import Partition
from minicluster.replica.producers.markers import EndTransactionMarker, marker_batch
from minicluster.replica.producers.states import AppendCheck, AppendOrigin
from minicluster.replica.producers.verification import VerificationGuard
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests.purgatory import DelayedOperation, Key
from minicluster.values import replace

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
"""Rejections by the log that are expected; with any other one the response has the log start."""


class AppendStatus(Struct):
    """The append to one partition; its error is what it would respond with now.

    Source:  ProducePartitionStatus.
    """

    topic: str
    topic_id: uuid.UUID
    index: int
    key: Key | None
    batch: RecordBatch | None = None
    guard: VerificationGuard | None = None
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    record_errors: tuple[RecordError, ...] = field(default=())
    log_start_offset: int = -1
    appended: LogAppendInfo | None = None
    waits: bool = False

    def reject(self, rejection: ReplicaError) -> None:
        """Take the error of the partition, with its message where Kafka gives one."""
        self.error = rejection.error
        if isinstance(rejection, InvalidRecords):
            self.message, self.record_errors = rejection.message, rejection.errors


OnAppended = Callable[[Sequence[AppendStatus], int], None]
"""Takes the statuses and the time, once all of them have their error."""


def append_records(
    state: ReplicaManagerState,
    statuses: Sequence[AppendStatus],
    *,
    acks: int,
    timeout_ms: int,
    how: AppendCheck,
    internal_topics_allowed: bool,
    on_appended: OnAppended,
    now_ms: int,
) -> None:
    """Append the batches without an error, and complete as the acks require.

    Source:  ReplicaManager.appendRecords, maybeAddDelayedProduce.
    """
    for status in statuses:
        if status.error == ErrorCode.NONE:
            append_to_local_log(state, status, acks, how, internal_topics_allowed, now_ms)
    waiting = [s for s in statuses if acks == ACKS_ALL and s.appended is not None]
    # What a partition would respond with if time ran out now. It is appended in any case, and may
    # be committed after the response: to a producer a timeout means that the outcome is unknown.
    for status in waiting:
        status.waits, status.error = True, ErrorCode.REQUEST_TIMED_OUT
    operation = DelayedProduce(state, statuses, on_appended, now_ms + timeout_ms)
    if operation.try_complete(now_ms):
        operation.on_complete(now_ms)
    else:
        state.delayed.produces.watch(operation, [s.key for s in waiting if s.key is not None])


def append_markers(
    state: ReplicaManagerState,
    marker: EndTransactionMarker,
    producer: tuple[int, int],
    partitions: Sequence[tuple[str, int]],
    *,
    transaction_version: int,
    timeout_ms: int,
    on_appended: OnAppended,
    now_ms: int,
) -> None:
    """Append the end of a transaction to partitions, internal ones included, as with acks=all.

    Shapes:  producer: id, and the epoch of the marker.
    Errors:  per partition UNKNOWN_TOPIC_OR_PARTITION without a local replica, those of
             ``append_records_to_leader``, REQUEST_TIMED_OUT.
    Source:  KafkaApis.handleWriteTxnMarkersRequest.
    """
    append_records(
        state,
        [marker_status(state, marker, producer, partition, now_ms) for partition in partitions],
        acks=ACKS_ALL,
        timeout_ms=timeout_ms,
        internal_topics_allowed=True,
        how=AppendCheck(origin=AppendOrigin.COORDINATOR, transaction_version=transaction_version),
        on_appended=on_appended,
        now_ms=now_ms,
    )


@step
def marker_status(
    state: ReplicaManagerState,
    marker: EndTransactionMarker,
    producer: tuple[int, int],
    partition: tuple[str, int],
    now_ms: int,
) -> AppendStatus:
    """The append of a marker to one partition, rejected where no replica of it is here."""
    topic, index = partition
    key = state.key_named(topic, index)
    status = AppendStatus(topic, uuid.UUID(int=0) if key is None else key[0], index, key)
    if key is None or key not in state.partitions:
        status.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        status.batch = marker_batch(marker, *producer, state.date_ms(now_ms))
    return status


@step
def append_to_local_log(
    state: ReplicaManagerState,
    status: AppendStatus,
    acks: int,
    how: AppendCheck,
    internal_topics_allowed: bool,
    now_ms: int,
) -> None:
    """Append the batch of one partition, and complete the operations that waited for it.

    Source:  ReplicaManager.appendToLocalLog.
    """
    assert status.key is not None
    assert status.batch is not None
    if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
        status.error = ErrorCode.INVALID_REQUIRED_ACKS
        return
    # Before the partition is looked up: it does not matter who leads an internal topic. With
    # NOT_LEADER_OR_FOLLOWER a client would look for a leader that rejects it as well.
    if not internal_topics_allowed and state.topic_name(status.key[0]) in INTERNAL_TOPICS:
        status.error = ErrorCode.INVALID_TOPIC_EXCEPTION
        return
    try:
        partition = state.partition(status.key)
        guarded = how if status.guard is None else replace(how, guard=status.guard)
        appended = append_records_to_leader(partition, status.batch, acks, now_ms, how=guarded)
    except ReplicaError as rejection:
        status.reject(rejection)
        if rejection.error not in _WITHOUT_LOG_START:
            status.log_start_offset = partition.log_start_offset
        return
    status.appended, status.log_start_offset = appended, appended.log_start_offset
    if appended.high_watermark_increased:
        state.delayed.check_and_complete_all(status.key, now_ms)
    else:
        # Followers may read up to the log end.
        state.delayed.fetches.check_and_complete(status.key, now_ms)


class DelayedProduce(DelayedOperation):
    """Appends with acks=all that wait for the high watermarks of their partitions."""

    __slots__ = ("_on_appended", "_replicated", "_state", "_statuses", "deadline_ms")

    def __init__(
        self,
        state: ReplicaManagerState,
        statuses: Sequence[AppendStatus],
        on_appended: OnAppended,
        deadline_ms: int,
    ) -> None:
        self._state = state
        self._statuses = statuses
        self._on_appended = on_appended
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
        self._on_appended(self._statuses, now_ms)

    def _check(self, status: AppendStatus) -> None:
        """End the wait for one partition that is replicated, or that this broker leads no more.

        A leader that lost the partition must not acknowledge: the next one may lack the records,
        and this one's high watermark says nothing any more.
        """
        assert status.appended is not None
        try:
            partition = self._state.partition(status.key)
        except ReplicaError as rejection:
            status.waits, status.error = False, rejection.error
            return
        replicas = check_enough_replicas(partition, status.appended.last_offset + 1)
        if not replicas.reached and replicas.error == ErrorCode.NONE:
            return
        status.waits, status.error = False, replicas.error
        if replicas.error == ErrorCode.NONE:
            self._replicated.append((partition, status.appended.last_offset))
