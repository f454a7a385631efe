"""The markers on their way: queued by the leader that they go to, one request in flight each.

    prepared ──▶ queue per leader ──WriteTxnMarkers──▶ leader of partitions
       ▲               ▲  └─ no leader known: looked for again with each input
       │               └───── not written: to the leader of then
       └── all written: the Complete record is appended, again until it is committed

A partition that was deleted needs no marker. A marker that is rejected because of its epochs ends
the sending: another coordinator, or another transaction, has taken over.

Kafka's sender tries at once what a leader could not write; here it waits a little, or a simulated
network would carry thousands of requests until a leader is known.

Source:  TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler,
         PendingCompleteTxn, TxnMarkerEntry, WriteTxnMarkersRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, field

from minicluster.channel.backoff import RETRY_BACKOFF_MS
from minicluster.channel.controller_channel import CorrelationIds
from minicluster.coordinator.runtime.timers import Timer, Timers
from minicluster.coordinator.transaction.transaction import (
    TopicPartition,
    Transaction,
    TransactionMetadata,
    TransactionShard,
    TransactionState,
    by_topic,
)
from minicluster.effects import Effect, Send
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.api import highest_version
from minicluster.protocol.messages import WriteTxnMarkersRequest
from minicluster.rules import Rules
from minicluster.values import Value, replace


class PendingCompleteTxn(Value, eq=False):
    """A transaction that is completed with ``new`` once all of its markers are written."""

    shard: TransactionShard
    transaction: Transaction
    new: TransactionMetadata
    coordinator_epoch: int


class TxnMarkerEntry(Value, eq=False):
    """The marker of one transaction for some partitions of one leader."""

    pending: PendingCompleteTxn
    producer_id: int
    producer_epoch: int
    committed: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


# --- WriteTxnMarkers (27): versions 0-2; 4.x sends 1-2, 2 with the transaction version (KIP-1228) -


def write_txn_markers_request(markers: Iterable[TxnMarkerEntry]) -> WriteTxnMarkersRequest:
    """The request that writes some markers."""
    return WriteTxnMarkersRequest(
        markers=tuple(
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.committed,
                topics=tuple(
                    WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                        name=topic, partition_indexes=tuple(indexes)
                    )
                    for topic, indexes in by_topic(marker.partitions).items()
                ),
                coordinator_epoch=marker.pending.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for marker in markers
        )
    )


def errors_by_producer_id(response: Any) -> dict[int, dict[TopicPartition, ErrorCode]]:
    """The outcome of each partition, by the producer of its marker."""
    errors: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in response.markers:
        of_producer = errors.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for partition in topic.partitions:
                place = topic.name, partition.partition_index
                of_producer[place] = ErrorCode.for_code(partition.error_code)
    return errors


# --- the queues -----------------------------------------------------------------------------------

_UNKNOWN = -1
_WRITTEN = frozenset(
    {
        ErrorCode.NONE,
        # No record of the producer can be in such a partition.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_GIVEN_UP = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class _Queue(Struct):
    """The markers for one broker; nothing is sent before a time, or while a request is open."""

    entries: list[TxnMarkerEntry] = field(default_factory=list)
    in_flight: tuple[int, tuple[TxnMarkerEntry, ...]] | None = None
    hold_until_ms: int = 0


AppendComplete = Callable[[PendingCompleteTxn, Callable[[ErrorCode, int], None], int], None]


class MarkerChannelManager:
    """All markers of the transactions that this broker coordinates."""

    def __init__(
        self,
        effects: list[Effect],
        timers: Timers,
        ids: CorrelationIds,
        rules: Rules,
        *,
        request_timeout_ms: int,
        append_complete: AppendComplete,
        is_current: Callable[[TransactionShard], bool],
    ) -> None:
        self.image = MetadataImage.EMPTY
        self._effects = effects
        self._timers = timers
        self._ids = ids
        self._version = highest_version(rules, WriteTxnMarkersRequest)
        self._request_timeout_ms = request_timeout_ms
        self._append_complete = append_complete
        self._is_current = is_current
        self._queues: dict[int, _Queue] = {}
        self._pending: dict[str, PendingCompleteTxn] = {}
        self._wakeup: Timer | None = None

    # --- transactions -----------------------------------------------------------------------------

    def add_markers_to_send(self, pending: PendingCompleteTxn, now_ms: int) -> None:
        """Queue the markers of a prepared transaction; one without partitions is completed."""
        metadata = pending.transaction.metadata
        self._pending[metadata.transactional_id] = pending
        entry = TxnMarkerEntry(
            pending,
            metadata.producer_id,
            metadata.producer_epoch,
            metadata.state is TransactionState.PREPARE_COMMIT,
            metadata.client_transaction_version,
            metadata.partitions,
        )
        self._enqueue(entry, now_ms)
        self._maybe_write_completion(pending, now_ms)

    def remove_markers(self, shard: TransactionShard) -> None:
        """Forget the markers of a shard that this broker does not coordinate any more."""
        for queue in self._queues.values():
            queue.entries = [e for e in queue.entries if e.pending.shard is not shard]
        gone = [i for i, pending in self._pending.items() if pending.shard is shard]
        for transactional_id in gone:
            del self._pending[transactional_id]

    def _maybe_write_completion(self, pending: PendingCompleteTxn, now_ms: int) -> None:
        metadata = pending.transaction.metadata
        transactional_id = metadata.transactional_id
        if metadata.partitions or self._pending.get(transactional_id) is not pending:
            return
        del self._pending[transactional_id]
        self._write_completion(pending, now_ms)

    def _write_completion(self, pending: PendingCompleteTxn, now_ms: int) -> None:
        def appended(error: ErrorCode, at_ms: int) -> None:
            if error == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._timers.add(
                    at_ms + RETRY_BACKOFF_MS,
                    lambda later_ms: self._write_completion(pending, later_ms),
                )

        if self._is_current(pending.shard):
            self._append_complete(pending, appended, now_ms)

    # --- queues -----------------------------------------------------------------------------------

    def _enqueue(self, entry: TxnMarkerEntry, now_ms: int) -> None:
        """Queue a marker for the leaders of its partitions; a deleted partition needs none.

        Source:  TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue.
        """
        by_leader: dict[int | None, list[TopicPartition]] = {}
        topics: dict[str, TopicImage | None] = {}  # each is looked up once
        for partition in entry.partitions:
            name, index = partition
            if name not in topics:
                topics[name] = self.image.topics.named(name)
            by_leader.setdefault(self._leader_of(topics[name], index), []).append(partition)
        for leader, led in by_leader.items():
            if leader is None:
                if self._is_current(entry.pending.shard):
                    entry.pending.transaction.remove_partitions(led)
                    self._maybe_write_completion(entry.pending, now_ms)
                continue
            queue = self._queues.setdefault(leader, _Queue())
            queue.entries.append(replace(entry, partitions=tuple(led)))

    def _leader_of(self, topic: TopicImage | None, index: int) -> int | None:
        """The leader of a partition, -1 where it has none now, None if it does not exist.

        Source:  MetadataCache.getPartitionLeaderEndpoint.
        """
        partition_image = None if topic is None else topic.partitions.get(index)
        if partition_image is None:
            return None
        leader = partition_image.leader
        return leader if self.image.cluster.broker(leader) is not None else _UNKNOWN

    def send_requests(self, now_ms: int) -> None:
        """Send what is queued for brokers without a request in flight.

        Source:  TransactionMarkerChannelManager.generateRequests.
        """
        unknown = self._queues.pop(_UNKNOWN, None)
        for entry in () if unknown is None else unknown.entries:
            self._enqueue(entry, now_ms)
        waits_until_ms: int | None = None
        for broker, queue in self._queues.items():
            if broker == _UNKNOWN or queue.in_flight is not None or not queue.entries:
                continue
            if now_ms < queue.hold_until_ms:
                waits_until_ms = min(queue.hold_until_ms, waits_until_ms or queue.hold_until_ms)
                continue
            entries, queue.entries = tuple(queue.entries), []
            correlation_id = self._ids.take()
            queue.in_flight = correlation_id, entries
            request = write_txn_markers_request(entries)
            timeout_ms = self._request_timeout_ms
            self._effects.append(Send(broker, request, self._version, correlation_id, timeout_ms))
        self._wake_at(waits_until_ms)

    def _wake_at(self, at_ms: int | None) -> None:
        if at_ms is not None and (self._wakeup is None or self._wakeup.task is None):
            self._wakeup = self._timers.add(at_ms, lambda _: None)  # what is due leaves with it

    # --- outcomes ---------------------------------------------------------------------------------

    def owns(self, correlation_id: int) -> bool:
        """True for the id of a request in flight."""
        return self._queue_of(correlation_id) is not None

    def _queue_of(self, correlation_id: int) -> _Queue | None:
        for queue in self._queues.values():
            if queue.in_flight is not None and queue.in_flight[0] == correlation_id:
                return queue
        return None

    def _take(self, correlation_id: int) -> tuple[_Queue, tuple[TxnMarkerEntry, ...]] | None:
        queue = self._queue_of(correlation_id)
        if queue is None or queue.in_flight is None:
            return None
        entries, queue.in_flight = queue.in_flight[1], None
        return queue, entries

    def on_failure(self, correlation_id: int, now_ms: int) -> None:
        """No response will come: the markers go to the leaders of now."""
        taken = self._take(correlation_id)
        if taken is None:
            return
        queue, entries = taken
        queue.hold_until_ms = now_ms + RETRY_BACKOFF_MS
        for entry in entries:
            if self._is_current(entry.pending.shard):
                self._enqueue(entry, now_ms)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> None:
        """A leader has written markers, or rejected them."""
        taken = self._take(correlation_id)
        if taken is None:
            return
        queue, entries = taken
        errors = errors_by_producer_id(response)
        for entry in entries:
            if not self._is_current(entry.pending.shard):
                continue
            if self._complete(entry, errors, now_ms):
                queue.hold_until_ms = now_ms + RETRY_BACKOFF_MS

    def _complete(
        self,
        entry: TxnMarkerEntry,
        errors: dict[int, dict[TopicPartition, ErrorCode]],
        now_ms: int,
    ) -> bool:
        """Take the outcome of one marker; True if some of its partitions are tried again.

        Source:  TransactionMarkerRequestCompletionHandler.onComplete.
        """
        pending = entry.pending
        outcomes = errors.get(entry.producer_id, {})
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        by_partition = {p: outcomes.get(p, unknown) for p in entry.partitions}
        written = [p for p, error in by_partition.items() if error in _WRITTEN]
        pending.transaction.remove_partitions(written)
        if any(error in _GIVEN_UP for error in by_partition.values()):
            transactional_id = pending.transaction.metadata.transactional_id
            if self._pending.get(transactional_id) is pending:
                del self._pending[transactional_id]
            return False
        rejected = tuple(p for p, error in by_partition.items() if error not in _WRITTEN)
        if rejected:
            self._enqueue(replace(entry, partitions=rejected), now_ms)
        else:
            self._maybe_write_completion(pending, now_ms)
        return bool(rejected)
