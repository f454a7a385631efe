"""Compaction: of the records of a key, the last one stays.

    clean                      dirty                       active
    |--------------------------|---------------------------|----------->
    log start        cleaned_offset         first uncleanable offset

The offsets of the last records of the dirty keys decide about every record below, clean ones
included. The active segment and what is not stable stay as they are.

Leaves out: the limits of memory and of input and output, the choice of the filthiest log: each
            cleanable log is cleaned at once.
Source:     LogCleanerManager.grabFilthiestCompactedLog, cleanableOffsets, LogToClean, Cleaner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from minicluster.log.log import Segment
from minicluster.replica.cleaning.batch_filter import BatchFilter
from minicluster.replica.cleaning.segments import SegmentView, segments_of
from minicluster.replica.cleaning.transactions import CleanedTransactions
from minicluster.replica.log_config import LogConfig
from minicluster.replica.partition.partition import Partition


@dataclass(frozen=True, slots=True)
class LogToClean:
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
    found = log_to_clean(partition, now_ms)
    if found.is_cleanable(config):
        _clean(partition, found, now_ms)


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


def _clean(partition: Partition, found: LogToClean, now_ms: int) -> None:
    """Write the segments below an offset anew, small ones together.

    Source:  Cleaner.doClean, buildOffsetMap, cleanSegments; LocalLog.collectAbortedTransactions.
    """
    log, config = partition.log, partition.log_config
    aborted = log.transactions.collect(log.start_offset, found.end_offset)
    # Those that ended before the dirty part are over: its index is that of its own segments.
    dirty_from = max(log.start_offset, log.segment_base(found.first_dirty_offset))
    dirty_aborted = log.transactions.collect(dirty_from, found.end_offset)
    transactions = CleanedTransactions(aborted)
    keeps = BatchFilter(
        last_offsets=_last_offsets(found, CleanedTransactions(dirty_aborted)),
        end_offset=found.end_offset,
        producers={entry.producer_id: entry for entry in partition.replica_log.producers},
        transactions=transactions,
        delete_retention_ms=config.delete_retention_ms,
        now_ms=now_ms,
    )
    kept = [taken for s in found.segments for batch in s.batches if (taken := keeps(batch))]
    starts = {segment.base_offset: segment for segment in log.segments}
    grouped: list[Segment] = []
    size = 0
    for segment in found.segments:
        if not grouped or size + segment.size > config.segment_bytes:
            grouped.append(starts[segment.base_offset])
            size = 0
        size += segment.size
    log.replace_below(found.end_offset, kept, grouped, transactions.retained)


def _last_offsets(found: LogToClean, transactions: CleanedTransactions) -> Mapping[bytes, int]:
    """The offset of the last record of each dirty key, those of aborted transactions left out.

    Source:  Cleaner.buildOffsetMap.
    """
    first_dirty = found.first_dirty_offset
    offsets: dict[bytes, int] = {}
    for segment in found.segments:
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
