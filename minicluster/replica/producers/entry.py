"""The state of one producer in a log.

Source:  ProducerStateEntry, BatchMetadata.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from minicluster.log import RecordBatch
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP

BATCHES_REMEMBERED = 5
NO_COORDINATOR_EPOCH = -1


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """One batch of a producer; its timestamp is its greatest one."""

    base_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int

    @classmethod
    def of(cls, batch: RecordBatch) -> BatchMetadata:
        """The metadata of a batch in the log."""
        return cls(
            batch.base_sequence,
            batch.last_sequence,
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
        )


@dataclass(frozen=True, slots=True)
class ProducerStateEntry:
    """The epoch of a producer, its last batches in that epoch, and its transaction.

    Shapes:  batches: the oldest first. current_txn_first_offset: None while no transaction is open
             in this log. coordinator_epoch: that of the last marker.
    """

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    batches: tuple[BatchMetadata, ...] = ()
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    current_txn_first_offset: int | None = None

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record, -1 without one."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """The offset of its last record, -1 without one."""
        return self.batches[-1].last_offset if self.batches else -1

    def find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        """The same batch, if it is among the last five of this epoch."""
        if batch.producer_epoch != self.epoch:
            return None
        sequences = (batch.base_sequence, batch.last_sequence)
        for seen in self.batches:
            if (seen.base_sequence, seen.last_sequence) == sequences:
                return seen
        return None

    def with_batch(self, batch: RecordBatch) -> ProducerStateEntry:
        """The state after a data batch; a transactional one may begin a transaction."""
        before = self.batches if batch.producer_epoch == self.epoch else ()
        first_offset = self.current_txn_first_offset
        if first_offset is None and batch.is_transactional:
            first_offset = batch.base_offset
        return ProducerStateEntry(
            self.producer_id,
            batch.producer_epoch,
            (*before, BatchMetadata.of(batch))[-BATCHES_REMEMBERED:],
            self.coordinator_epoch,
            batch.max_timestamp,
            first_offset,
        )

    def with_marker(self, epoch: int, coordinator_epoch: int, timestamp: int) -> ProducerStateEntry:
        """The state after the marker that ends its transaction."""
        return ProducerStateEntry(
            self.producer_id,
            epoch,
            self.batches if epoch == self.epoch else (),
            coordinator_epoch,
            timestamp,
        )

    def in_snapshot(self) -> ProducerStateEntry:
        """The part that a snapshot keeps: of its batches the last one.

        Source:  ProducerStateManager.writeSnapshot.
        """
        return replace(self, batches=self.batches[-1:])

    def at(self, timestamp: int) -> ProducerStateEntry:
        """The same state on another clock; one of a snapshot has one batch at most."""
        batches = tuple(replace(batch, timestamp=timestamp) for batch in self.batches)
        return replace(self, batches=batches, last_timestamp=timestamp)
