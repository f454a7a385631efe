"""What a partition reads from its log for followers, consumers and those who ask for offsets.

Source:  KIP-101, KIP-320, KIP-595; Partition.readRecords, fetchOffsetForTimestamp.
"""

from __future__ import annotations

from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.state import PartitionState
from minicluster.replica.partition.steps import EpochEnd, FetchResult, OffsetAndEpoch

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3  # the youngest record, by its time (KIP-734)
EARLIEST_LOCAL_TIMESTAMP = -4  # not in a tier: here everything
LATEST_TIERED_TIMESTAMP = -5  # in a tier: here nothing
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6

# The first version of ListOffsets that knows each of these (ReplicaManager.isListOffsetsTimestamp
# Unsupported); version 0 asks in another way.
FIRST_VERSIONS = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}


def read(
    partition: PartitionState,
    fetch_offset: int,
    last_fetched_epoch: int | None,
    max_bytes: int,
    limit: int,
) -> tuple[FetchResult, int]:
    """Read whole batches below a limit, unless the asker's log has parted from this one.

    Shapes:  -> what was found, and the offset at which the read began (ReplicaLog.read).
    Errors:  OFFSET_OUT_OF_RANGE.
    """
    diverging = None
    if last_fetched_epoch is not None:
        diverging = diverging_epoch(partition, fetch_offset, last_fetched_epoch)
    found = None
    if diverging is None:
        found = partition.replica_log.read(fetch_offset, max_bytes, limit)
    result = FetchResult(
        batches=() if found is None else found.batches,
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        log_end_offset=partition.log_end_offset,
        diverging_epoch=diverging,
    )
    return result, fetch_offset if found is None else found.found_offset


def diverging_epoch(
    partition: PartitionState, fetch_offset: int, last_fetched_epoch: int
) -> EpochEnd | None:
    """Where this log parted from the asker's, if it did.

    Errors:  OFFSET_OUT_OF_RANGE where nothing can be said of the epoch or the offset is gone.
    """
    epoch, end_offset = partition.end_offset_for(last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise ReplicaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {last_fetched_epoch} has no end here"
        )
    if fetch_offset < partition.log_start_offset:
        raise ReplicaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{fetch_offset} lies below the log start {partition.log_start_offset}",
        )
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return EpochEnd(epoch, end_offset)
    return None


def list_offsets(
    partition: PartitionState, timestamp: int, *, from_replica: bool
) -> OffsetAndEpoch | None:
    """The latest (-1) or earliest (-2, -4) offset, that of the youngest record (-3), or the first
    one not before a time. Nothing lies in a tier (-5, -6).

    Errors:  OFFSET_NOT_AVAILABLE.
    Source:  KIP-79, KIP-207, KIP-734; Partition.fetchOffsetForTimestamp, UnifiedLog.
    """
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        log_start = partition.log_start_offset
        earliest = partition.log.epochs.entries[:1]
        known = bool(earliest) and earliest[0][1] <= log_start
        return OffsetAndEpoch(log_start, earliest[0][0] if known else None)
    end = partition.log_end_offset if from_replica else partition.high_watermark
    start = partition.leader_epoch_start_offset
    lags = not from_replica and start is not None and start > partition.high_watermark
    if timestamp == LATEST_TIMESTAMP and not lags:
        return OffsetAndEpoch(end, partition.leader_epoch)
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return None
    if timestamp != LATEST_TIMESTAMP:
        log = partition.replica_log
        found = log.youngest() if timestamp == MAX_TIMESTAMP else log.first_at(timestamp)
        if found is not None and found[0] < end:
            return OffsetAndEpoch(found[0], found[2], found[1])
        if not lags:
            return None
    raise ReplicaError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"high watermark {partition.high_watermark} is below the epoch's start {start}",
    )
