"""The last batches of each idempotent producer, by which a log detects duplicates (KIP-98).

Leaves out: transactions, expiry of producers.
Source:     ProducerStateManager, ProducerAppendInfo, ProducerStateEntry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from minicluster.log import RecordBatch
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError

BATCHES_REMEMBERED = 5
_LAST_SEQUENCE = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class _BatchMetadata:
    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class _Producer:
    epoch: int
    batches: tuple[_BatchMetadata, ...]


class ProducerStates:
    """The producers of one log, by producer id."""

    __slots__ = ("_producers",)

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def find_duplicate(self, batch: RecordBatch) -> tuple[int, int] | None:
        """The (base, last) offset of the same batch, if it is among the producer's last five."""
        if batch.producer_id < 0:
            return None
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            return None
        for seen in producer.batches:
            if (seen.base_sequence, seen.last_sequence) == (
                batch.base_sequence,
                batch.last_sequence,
            ):
                return seen.base_offset, seen.last_offset
        return None

    def check(self, batch: RecordBatch) -> None:
        """Refuse a batch that does not continue its producer's sequence.

        Errors:  ReplicaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        producer = self._producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        if producer is None or batch.is_control:
            return
        if batch.producer_epoch < producer.epoch:
            raise ReplicaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {batch.producer_id} is at epoch {producer.epoch}, "
                f"not {batch.producer_epoch}",
            )
        if batch.producer_epoch > producer.epoch:
            expected = 0
        elif producer.batches:
            expected = (producer.batches[-1].last_sequence + 1) & _LAST_SEQUENCE
        else:
            return
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
        seen = _BatchMetadata(
            batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset
        )
        self._producers[batch.producer_id] = _Producer(
            batch.producer_epoch, (*before, seen)[-BATCHES_REMEMBERED:]
        )

    def rebuild(self, batches: Iterable[RecordBatch]) -> None:
        """Read the producers from a log."""
        self._producers.clear()
        for batch in batches:
            self.update(batch)

    @property
    def is_empty(self) -> bool:
        """No idempotent producer has written."""
        return not self._producers
