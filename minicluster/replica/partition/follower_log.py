"""Appends and truncations on the log of a follower.

Source:  ReplicaFetcherThread.processPartitionData, Partition.truncateTo, truncateFullyAndStartAt.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.log import RecordBatch
from minicluster.replica.partition.partition import Partition, trace
from minicluster.values import Value


class FollowerAppendInfo(Value, kw_only=True):
    """The changes that a fetch response made; last_offset is -1 if no batch was appended."""

    last_offset: int
    high_watermark_changed: bool
    log_start_offset_changed: bool


def append_records_to_follower(
    partition: Partition,
    batches: Sequence[RecordBatch],
    *,
    partition_leader_epoch: int,
    leader_high_watermark: int,
    leader_log_start_offset: int,
    now_ms: int,
) -> FollowerAppendInfo:
    """Take the batches, the high watermark and the log start of a fetch response.

    Batches of a higher epoch than that of the fetch are left out: the leadership has changed since.
    The high watermark follows the leader's down as well as up, since a new leader's is older than
    that of the previous one.

    Errors:  OffsetsOutOfOrder, UnexpectedAppendOffset, before anything is appended;
             OFFSET_OUT_OF_RANGE (a log start above the high watermark), after it.
    Source:  ReplicaFetcherThread.processPartitionData.
    """
    replica_log = partition.replica_log
    last_offset = replica_log.append_as_follower(
        batches, partition_leader_epoch, partition.log_config, partition.context.date_ms(now_ms)
    )
    if last_offset >= 0:
        trace(partition, "append", offset=last_offset, appended=batches)
    old = partition.high_watermark
    moved = replica_log.set_high_watermark(leader_high_watermark)
    started = replica_log.maybe_increment_log_start_offset(leader_log_start_offset)
    if partition.high_watermark != old:
        trace(partition, "hw", hw_old=old)
    return FollowerAppendInfo(
        last_offset=last_offset, high_watermark_changed=moved, log_start_offset_changed=started
    )


def truncate(partition: Partition, offset: int) -> None:
    """Truncate the log to an offset, where it diverges from the leader's."""
    old = partition.high_watermark
    if partition.replica_log.truncate(offset):
        trace(partition, "truncate", offset=offset, hw_old=old)


def truncate_fully(partition: Partition, offset: int) -> None:
    """Drop everything and begin at an offset, because the leader's log begins above this log's end.

    Shapes:  the trace has it as a truncation only if the log reached beyond the offset.
    """
    old, old_end = partition.high_watermark, partition.log_end_offset
    partition.replica_log.truncate_fully(offset)
    if old_end > offset:
        trace(partition, "truncate", offset=offset, hw_old=old)
    else:
        trace(partition, "append", hw_old=old)
