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

_KEPT_BITS = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFilter:
    """The batches that a compaction leaves.

    Shapes:  last_offsets: by key, those of the dirty records below end_offset; last_of_producers:
             by producer id.
    """

    last_offsets: Mapping[bytes, int]
    end_offset: int
    last_of_producers: Mapping[int, int]
    delete_retention_ms: int
    now_ms: int

    def __call__(self, batch: RecordBatch) -> RecordBatch | None:
        """The batch in place of this one, None for none.

        A batch that loses all of its records stays, empty, where its producer's last sequence
        number or the end of the cleaned part would go with it.
        """
        kept = tuple(record for record in batch.records if self._stays(batch, record))
        if not kept:
            is_last = self.last_of_producers.get(batch.producer_id) == batch.last_offset
            return _empty(batch) if is_last or batch.next_offset == self.end_offset else None
        horizon_ms = batch.delete_horizon_ms
        if horizon_ms is None and any(r.value is None for r in kept) and not batch.is_control:
            horizon_ms = self.now_ms + self.delete_retention_ms
        if len(kept) == batch.count and horizon_ms == batch.delete_horizon_ms:
            return batch
        return _with_records(batch, kept, horizon_ms)

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
