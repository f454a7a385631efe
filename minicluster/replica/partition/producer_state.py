"""The last batches of each idempotent producer, by which a log detects duplicates (KIP-98).

Leaves out: transactions.
Source:     ProducerStateManager, ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from minicluster.log import RecordBatch
from minicluster.log.batch import NO_PRODUCER_EPOCH
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError

BATCHES_REMEMBERED = 5
_LAST_SEQUENCE = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """One batch of a producer; its timestamp is its greatest one."""

    base_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class ProducerStateEntry:
    """The epoch of a producer and its last batches in that epoch, the oldest first."""

    producer_id: int
    epoch: int
    batches: tuple[BatchMetadata, ...]

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record."""
        return self.batches[-1].last_sequence


class ProducerStates:
    """The producers of one log, by producer id."""

    __slots__ = ("_producers",)

    def __init__(self) -> None:
        self._producers: dict[int, ProducerStateEntry] = {}

    def __iter__(self) -> Iterator[ProducerStateEntry]:
        return iter(self._producers.values())

    def find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        """The same batch, if it is among the producer's last five."""
        if batch.producer_id < 0:
            return None
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            return None
        sequences = (batch.base_sequence, batch.last_sequence)
        for seen in producer.batches:
            if (seen.base_sequence, seen.last_sequence) == sequences:
                return seen
        return None

    def check(self, batch: RecordBatch) -> None:
        """Refuse a batch that does not continue its producer's sequence.

        A producer that is not known, or wrote without an epoch, may begin anywhere.

        Errors:  ReplicaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
        Source:  ProducerAppendInfo.checkProducerEpoch, checkSequence.
        """
        producer = self._producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        if producer is None or producer.epoch == NO_PRODUCER_EPOCH or batch.is_control:
            return
        if batch.producer_epoch < producer.epoch:
            raise ReplicaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {batch.producer_id} is at epoch {producer.epoch}, "
                f"not {batch.producer_epoch}",
            )
        is_new_epoch = batch.producer_epoch > producer.epoch
        expected = 0 if is_new_epoch else (producer.last_sequence + 1) & _LAST_SEQUENCE
        if batch.base_sequence != expected:
            raise ReplicaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} should send {expected}, not {batch.base_sequence}",
            )

    def update(self, batch: RecordBatch) -> None:
        """Remember a batch that was appended."""
        if batch.producer_id < 0 or batch.is_control:
            return
        producer = self._producers.get(batch.producer_id)
        before = (
            producer.batches
            if producer is not None and producer.epoch == batch.producer_epoch
            else ()
        )
        seen = BatchMetadata(
            batch.base_sequence,
            batch.last_sequence,
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
        )
        self._producers[batch.producer_id] = ProducerStateEntry(
            batch.producer_id, batch.producer_epoch, (*before, seen)[-BATCHES_REMEMBERED:]
        )

    def rebuild(
        self, snapshot: Iterable[ProducerStateEntry], batches: Iterable[RecordBatch]
    ) -> None:
        """Take the producers of a snapshot, and those of the batches after it."""
        self._producers = {entry.producer_id: entry for entry in snapshot}
        for batch in batches:
            self.update(batch)

    def remove_expired(self, lowest_timestamp: int) -> None:
        """Forget the producers whose last batch is older.

        Source:  ProducerStateManager.removeExpiredProducers.
        """
        expired = [e.producer_id for e in self if e.batches[-1].timestamp <= lowest_timestamp]
        for producer_id in expired:
            del self._producers[producer_id]

    @property
    def is_empty(self) -> bool:
        """No idempotent producer has written."""
        return not self._producers
