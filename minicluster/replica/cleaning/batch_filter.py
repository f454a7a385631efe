"""The decision about one batch in a compaction: as it is, with fewer records, empty, or gone.

Source:  Cleaner.cleanInto, shouldRetainRecord, MemoryRecords.filterTo, buildRetainedRecordsInto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minicluster.log import Record, RecordBatch
from minicluster.log.batch import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from minicluster.log.records import packed
from minicluster.replica.cleaning.transactions import CleanedTransactions
from minicluster.replica.producers.entry import ProducerStateEntry

_KEPT_BITS = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFilter:
    """The batches that a compaction leaves.

    Shapes:  last_offsets: by key, those of the dirty records below end_offset. It is called once
             for each batch, in their order.
    """

    last_offsets: Mapping[bytes, int]
    end_offset: int
    producers: Mapping[int, ProducerStateEntry]
    transactions: CleanedTransactions
    delete_retention_ms: int
    now_ms: int

    def __call__(self, batch: RecordBatch) -> RecordBatch | None:
        """The batch in place of this one, None for none.

        A batch that loses all of its records stays, empty, where its producer's last sequence
        number or the end of the cleaned part would go with it.
        """
        may_go = self.transactions.may_go(batch)
        horizon_ms = batch.delete_horizon_ms
        is_due = horizon_ms is not None and horizon_ms <= self.now_ms
        goes = may_go and (is_due or not batch.is_control)
        kept = () if goes else tuple(r for r in batch.records if self._stays(batch, r))
        if not kept:
            stays = self._is_last_of_producer(batch) or batch.next_offset == self.end_offset
            return _empty(batch) if stays else None
        has_tombstones = may_go if batch.is_control else any(r.value is None for r in kept)
        if horizon_ms is None and has_tombstones:
            horizon_ms = self.now_ms + self.delete_retention_ms
        if len(kept) == batch.count and horizon_ms == batch.delete_horizon_ms:
            return batch
        return _with_records(batch, kept, horizon_ms)

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        """The batch has the last sequence number of a producer, or else its epoch.

        Source:  UnifiedLog.lastRecordsOfActiveProducers, Cleaner.cleanInto.
        """
        entry = self.producers.get(batch.producer_id)
        if entry is None:
            return False
        if entry.batches:
            return entry.last_data_offset == batch.last_offset
        return batch.is_control and batch.producer_epoch == entry.epoch

    def _stays(self, batch: RecordBatch, record: Record) -> bool:
        if batch.is_control or record.offset >= self.end_offset:
            return True
        if record.key is None or record.offset < self.last_offsets.get(record.key, -1):
            return False
        horizon_ms = batch.delete_horizon_ms
        return record.value is not None or horizon_ms is None or self.now_ms < horizon_ms


def _empty(batch: RecordBatch) -> RecordBatch:
    """Source:  DefaultRecordBatch.writeEmptyHeader."""
    return RecordBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=batch.max_timestamp,
        count=0,
        attributes=batch.attributes & _KEPT_BITS,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        records=(),
    )


def _with_records(
    batch: RecordBatch, kept: Sequence[Record], horizon_ms: int | None
) -> RecordBatch:
    """The batch with some of its records; its offsets and sequence numbers stay.

    The base timestamp becomes the time from which its tombstones may go (KIP-534).
    """
    first = kept[0].timestamp
    highest = max(record.timestamp for record in kept)
    plain = RecordBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        base_timestamp=first if horizon_ms is None else horizon_ms,
        max_timestamp=batch.max_timestamp if batch.is_log_append_time else highest,
        count=len(kept),
        attributes=batch.attributes & _KEPT_BITS
        | (0 if horizon_ms is None else DELETE_HORIZON_BIT),
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        records=tuple(kept),
    )
    return packed(plain, batch.codec)
