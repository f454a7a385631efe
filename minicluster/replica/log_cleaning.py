"""A log grows shorter by itself: old segments (retention) and old values of a key (compaction) go.

Leaves out: tiered storage; the limits of memory and of input and output, the choice of the
            filthiest log: each cleanable log is cleaned at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from minicluster.log import Record, RecordBatch
from minicluster.log.batch import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from minicluster.log.indexes import AbortedTransaction
from minicluster.log.log import Segment
from minicluster.log.records import packed
from minicluster.replica.config import LogConfig
from minicluster.replica.log_manager import size_on_disk
from minicluster.replica.partition.partition import Partition
from minicluster.replica.producers.markers import read_marker
from minicluster.replica.producers.states import ProducerStateEntry
from minicluster.replica.segments import SegmentView, segments_of
from minicluster.values import Value

# Retention: the oldest segments go, by size and by time.
#
# Each replica deletes from its own log, below its own high watermark. Where the log of a leader
# begins, that of its followers begins with the next fetch.
#
# Source:     UnifiedLog.deleteOldSegments, LogManager.cleanupLogs.


def delete_old_segments(partition: Partition, now_ms: int) -> None:
    """Delete what the topic's retention allows."""
    config, log = partition.log_config, partition.log
    if not config.deleted or (log.is_empty and not log.deleted and len(log.segments) == 1):
        return
    if config.retention_bytes >= 0:
        excess = partition_bytes(partition) - config.retention_bytes
        _delete_while(partition, _BySize(excess), now_ms)
    if config.retention_ms >= 0:
        oldest_ms = now_ms - config.retention_ms
        _delete_while(partition, lambda segment: segment.largest_timestamp < oldest_ms, now_ms)


def partition_bytes(partition: Partition) -> int:
    """The bytes of a partition's segments."""
    return size_on_disk(partition.log)


class _BySize:
    """True for each segment without which the log is not below its retention size."""

    def __init__(self, excess_bytes: int) -> None:
        self._excess_bytes = excess_bytes

    def __call__(self, segment: SegmentView) -> bool:
        self._excess_bytes -= segment.size
        return self._excess_bytes >= 0


def _delete_while(
    partition: Partition, is_deletable: Callable[[SegmentView], bool], now_ms: int
) -> None:
    """Delete segments from the oldest on, up to the first that has to stay.

    A segment at or above the high watermark stays, and so does an active one without records. An
    active one with records makes room for an empty one.

    Source:  UnifiedLog.deletableSegments, deleteSegments.
    """
    replica_log = partition.replica_log
    new_start: int | None = None
    for segment in segments_of(replica_log.log, with_deleted=True):
        is_empty = segment.is_active and not segment.batches
        # What is not committed may be what a follower that becomes leader lacks: the log could not
        # be truncated to it any more.
        if segment.next_offset > replica_log.high_watermark or is_empty:
            break
        if not is_deletable(segment):
            break
        if segment.is_active:
            replica_log.roll(segment.next_offset, now_ms)
        new_start = segment.next_offset
    if new_start is not None:
        replica_log.maybe_increment_log_start_offset(new_start)


# Compaction: of the records of a key, the last one stays.
#
#     clean                      dirty                       active
#     |--------------------------|---------------------------|----------->
#     log start        cleaned_offset         first uncleanable offset
#
# The offsets of the last records of the dirty keys decide about every record below, clean ones
# included. The active segment and what is not stable stay as they are.
#
# Source:     LogCleanerManager.grabFilthiestCompactedLog, cleanableOffsets, LogToClean, Cleaner;
#             MemoryRecords.filterTo, buildRetainedRecordsInto; CleanedTransactionMetadata.


_KEPT_BITS = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


class LogToClean(Value):
    """The part of a log that is dirty and may be cleaned, and how much of the log that is.

    Shapes:  segments: those below ``end_offset``, where the first one begins that stays as it is.
    """

    first_dirty_offset: int
    end_offset: int
    segments: tuple[SegmentView, ...]
    clean_bytes: int
    dirty_bytes: int
    must_be_cleaned: bool

    def is_cleanable(self, config: LogConfig) -> bool:
        """Enough of the log is dirty, or some of it for too long.

        Source:  KIP-354 (max.compaction.lag.ms).
        """
        if self.must_be_cleaned and self.dirty_bytes > 0:
            return True
        total = self.clean_bytes + self.dirty_bytes
        return total > 0 and self.dirty_bytes / total > config.min_cleanable_dirty_ratio


def compact(partition: Partition, now_ms: int) -> None:
    """Clean a log if it is dirty enough."""
    config = partition.log_config
    to_clean = log_to_clean(partition, now_ms)
    if to_clean.is_cleanable(config):
        _clean(partition, to_clean, now_ms)


def log_to_clean(partition: Partition, now_ms: int) -> LogToClean:
    """The dirty part of a log, up to the last stable offset, the active segment and the lag.

    Source:  LogCleanerManager.cleanableOffsets, maxCompactionDelay, calculateCleanableBytes.
    """
    config, log = partition.log_config, partition.log
    first_dirty = log.cleaned_offset
    if not log.start_offset <= first_dirty <= log.end_offset:
        first_dirty = log.start_offset
    segments = segments_of(log)
    active = segments[-1].base_offset
    inactive = [s for s in segments[:-1] if s.next_offset > first_dirty]
    # Not above the last stable offset: of an open transaction nobody knows yet whether its records
    # replace the older ones of their keys, or are to be dropped themselves.
    limits = [partition.last_stable_offset, active]
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        limits += [s.base_offset for s in inactive if s.largest_timestamp > youngest_ms]
    limit = max(first_dirty, min(limits))
    end = next((s.base_offset for s in segments[:-1] if s.next_offset > limit), active)
    oldest_ms = min((t for s in inactive if (t := s.first_timestamp) > 0), default=now_ms)
    return LogToClean(
        first_dirty_offset=first_dirty,
        end_offset=end,
        segments=tuple(s for s in segments if s.base_offset < end),
        clean_bytes=sum(s.size for s in segments if s.base_offset < first_dirty),
        dirty_bytes=sum(s.size for s in inactive if s.base_offset < end),
        must_be_cleaned=oldest_ms < now_ms - config.max_compaction_lag_ms,
    )


def _clean(partition: Partition, to_clean: LogToClean, now_ms: int) -> None:
    """Write the segments below an offset again, small ones together.

    Source:  Cleaner.doClean, buildOffsetMap, cleanSegments; LocalLog.collectAbortedTransactions.
    """
    log, config = partition.log, partition.log_config
    aborted = log.transactions.collect(log.start_offset, to_clean.end_offset)
    # Kafka builds the map of last offsets from the dirty segments and their own indexes. With the
    # aborted transactions of earlier segments a later transaction of the same producer would count
    # as aborted, and its records would be lost.
    dirty_from = max(log.start_offset, log.segment_base(to_clean.first_dirty_offset))
    dirty_aborted = log.transactions.collect(dirty_from, to_clean.end_offset)
    transactions = CleanedTransactions(aborted)
    keeps = BatchFilter(
        last_offsets=_last_offsets(to_clean, CleanedTransactions(dirty_aborted)),
        end_offset=to_clean.end_offset,
        producers={entry.producer_id: entry for entry in partition.replica_log.producers},
        transactions=transactions,
        delete_retention_ms=config.delete_retention_ms,
        now_ms=now_ms,
    )
    kept = [cleaned for s in to_clean.segments for batch in s.batches if (cleaned := keeps(batch))]
    starts = {segment.base_offset: segment for segment in log.segments}
    grouped: list[Segment] = []
    size = 0
    for segment in to_clean.segments:
        if not grouped or size + segment.size > config.segment_bytes:
            grouped.append(starts[segment.base_offset])
            size = 0
        size += segment.size
    log.replace_below(to_clean.end_offset, kept, grouped, transactions.retained)


def _last_offsets(to_clean: LogToClean, transactions: CleanedTransactions) -> Mapping[bytes, int]:
    """The offset of the last record of each dirty key, those of aborted transactions left out.

    Source:  Cleaner.buildOffsetMap.
    """
    first_dirty = to_clean.first_dirty_offset
    offsets: dict[bytes, int] = {}
    for segment in to_clean.segments:
        for batch in segment.batches:
            if batch.last_offset < first_dirty:
                continue
            may_go = transactions.may_go(batch)
            if may_go or batch.is_control:
                continue
            for record in batch.records:
                if record.key is not None and record.offset >= first_dirty:
                    offsets[record.key] = record.offset
    return offsets


# --- one batch: as it is, with fewer records, empty, or gone ------------------------------------


class BatchFilter(Value, kw_only=True):
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
        number or the end of the cleaned part would go with it: otherwise a broker that loads the
        log would take a duplicate of the producer's last batch for a new one.
        """
        may_go = self.transactions.may_go(batch)
        horizon_ms = batch.delete_horizon_ms
        is_due = horizon_ms is not None and horizon_ms <= self.now_ms
        goes = may_go and (is_due or not batch.is_control)
        staying = () if goes else tuple(r for r in batch.records if self._stays(batch, r))
        if not staying:
            stays = self._is_last_of_producer(batch) or batch.next_offset == self.end_offset
            return _empty(batch) if stays else None
        # A tombstone, or a marker without batches, must be there for a while after the records that
        # it ends have gone: a consumer may have read those already. The time is written into the
        # batch by the first cleaning that could drop it (KIP-534), not counted from its timestamp.
        has_tombstones = may_go if batch.is_control else any(r.value is None for r in staying)
        if horizon_ms is None and has_tombstones:
            horizon_ms = self.now_ms + self.delete_retention_ms
        if len(staying) == batch.count and horizon_ms == batch.delete_horizon_ms:
            return batch
        return _with_records(batch, staying, horizon_ms)

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
        # Without a key it can never be replaced, and would stay for ever: it is dropped.
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


# --- the transactions of the log, while a compaction reads it -----------------------------------


class CleanedTransactions:
    """One pass over the batches of a log, in the order of their offsets.

        data batch of an aborted transaction: its records go
        marker: it may go once no batch of its transaction is left, and then waits as tombstones do

    Shapes:  retained: the aborted transactions of which the pass has met a batch and the marker,
             for the index of the cleaned log.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda a: a.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._committed: set[int] = set()
        self._with_batches: set[int] = set()
        self.retained: list[AbortedTransaction] = []

    def may_go(self, batch: RecordBatch) -> bool:
        """Take the next batch: an aborted one, or a marker without any batch of its transaction."""
        while self._to_come and self._to_come[-1].first_offset <= batch.last_offset:
            aborted = self._to_come.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)
        if batch.is_control:
            return self._may_marker_go(batch)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._with_batches.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def _may_marker_go(self, batch: RecordBatch) -> bool:
        marker = read_marker(batch)
        if marker is None:
            return True
        producer_id = batch.producer_id
        if marker.committed:
            had_batches = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_batches
        aborted = self._aborted.pop(producer_id, None)
        if aborted is None or producer_id not in self._with_batches:
            return True
        self._with_batches.discard(producer_id)
        self.retained.append(aborted)
        return False
