"""Retention: the oldest segments go, by size and by time.

Each replica deletes from its own log, below its own high watermark. Where the log of a leader
begins, that of its followers begins with the next fetch.

Leaves out: tiered storage.
Source:     UnifiedLog.deleteOldSegments, LogManager.cleanupLogs.
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.replica.cleaning.segments import SegmentView, segments_of
from minicluster.replica.partition.partition import Partition


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
    log = partition.log
    return sum(batch.size for batch in (*log.deleted, *log.batches))


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
        if segment.next_offset > replica_log.high_watermark or is_empty:
            break
        if not is_deletable(segment):
            break
        if segment.is_active:
            replica_log.roll(segment.next_offset, now_ms)
        new_start = segment.next_offset
    if new_start is not None:
        replica_log.maybe_increment_log_start_offset(new_start)
