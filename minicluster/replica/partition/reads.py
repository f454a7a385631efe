"""Reads of a partition's log for followers and consumers, and lookups of offsets.

    reader                        served by           up to
    follower                      the leader          the log end
    consumer, read_uncommitted    the leader, or any  the high watermark
    consumer, read_committed      replica (KIP-392)   the last stable offset

What is checked first decides the error: the leader epoch of the request, the role, whether the
leader knows the follower; then the log, for divergence before the offset is looked for. Only a
fetch that passed all of it counts as the follower's progress. One of diverging logs must not: its
offset is of records that this log does not have, and the high watermark would move by them.

Source:  KIP-101, KIP-320, KIP-595; Partition.fetchRecords, updateFollowerFetchState,
         fetchOffsetForTimestamp, lastOffsetForLeaderEpoch.
"""

from __future__ import annotations

import enum

from minicluster.log import Records
from minicluster.log.indexes import AbortedTransaction
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_context import NO_BROKER_EPOCH
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.high_watermark import low_watermark, maybe_increment_leader_hw
from minicluster.replica.partition.isr import maybe_expand_isr
from minicluster.replica.partition.partition import Partition, trace
from minicluster.values import Value


class EpochEndOffset(Value):
    """The end of a leader epoch; -1 where it is not known."""

    epoch: int = -1
    end_offset: int = -1


class LogReadInfo(Value, kw_only=True):
    """The outcome of a fetch; the offsets are those before the fetch changed anything.

    Shapes:  with ``diverging_epoch`` the logs of leader and follower diverge; records are empty.
             fetch_offset: where the read began by Kafka's account (``Read.found_offset``).
             aborted_transactions: None where they were not looked up.
    """

    records: Records
    fetch_offset: int
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    diverging_epoch: EpochEndOffset | None = None
    first_incomplete: bool = False


class OffsetAndEpoch(Value):
    """The offset of a timestamp; epoch None and timestamp -1 where they are not known."""

    offset: int
    leader_epoch: int | None
    timestamp: int = -1


LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3  # the record with the highest timestamp (KIP-734)
EARLIEST_LOCAL_TIMESTAMP = -4  # without tiered storage, the log start
LATEST_TIERED_TIMESTAMP = -5  # without tiered storage, nothing
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6  # likewise


def fetch_records(
    partition: Partition,
    *,
    replica_id: int,
    broker_epoch: int = NO_BROKER_EPOCH,
    fetch_offset: int,
    log_start_offset: int,
    current_leader_epoch: int | None,
    last_fetched_epoch: int | None,
    max_bytes: int,
    min_one_batch: bool = True,
    updates_state: bool = True,
    now_ms: int,
) -> LogReadInfo:
    """Read for a follower, and update its fetch state unless that was done before the fetch waited.

    Diverging logs change nothing. Otherwise the follower may be proposed for the ISR, and the high
    watermark may rise.

    Errors:  FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER (no leader, no
             replica, or a broker epoch below that of the metadata), OFFSET_OUT_OF_RANGE.
    Source:  Partition.fetchRecords, followerReplicaOrThrow.
    """
    partition.require_epoch(current_leader_epoch, leader_only=True)
    if replica_id not in partition.remote_replicas:
        # A follower in this leader epoch may have newer metadata than this leader, in which its
        # replica has been added: it has to retry.
        raise ReplicaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER
            if current_leader_epoch is None
            else ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"broker {replica_id} is not known as a replica",
        )
    leader_end_offset = partition.log_end_offset
    info = read_records(
        partition,
        fetch_offset,
        last_fetched_epoch,
        max_bytes,
        min_one_batch,
        FetchIsolation.LOG_END,
    )
    if info.diverging_epoch is None and updates_state:
        update_follower_fetch_state(
            partition,
            replica_id,
            broker_epoch,
            log_start_offset,
            info.fetch_offset,
            leader_end_offset,
            now_ms,
        )
    return info


@step
def update_follower_fetch_state(
    partition: Partition,
    replica_id: int,
    broker_epoch: int,
    log_start_offset: int,
    log_end_offset: int,
    leader_end_offset: int,
    now_ms: int,
) -> None:
    """Note how far a follower has fetched, and draw the consequences.

    Errors:  NOT_LEADER_OR_FOLLOWER for a fetch of an earlier incarnation of the broker: the present
             one may hold less (KIP-903).
    Source:  Partition.updateFollowerFetchState, Replica.updateFetchStateOrThrow.
    """
    context = partition.context
    alive_epoch = context.view.alive_epoch(replica_id)
    if alive_epoch is not None and NO_BROKER_EPOCH < broker_epoch < alive_epoch:
        raise ReplicaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"broker {replica_id} is at epoch {alive_epoch}, not {broker_epoch}",
        )
    before = partition.remote_replicas[replica_id]
    # Only deletions of records wait for the low watermark, and each look at it asks all replicas.
    has_deletes = context.delayed.deletes.watched(partition.key) > 0
    old_low = low_watermark(partition) if has_deletes else -1
    partition.remote_replicas[replica_id] = before.fetched(
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        leader_end_offset=leader_end_offset,
        broker_epoch=broker_epoch,
        leader_epoch=partition.leader_epoch,
        now_ms=now_ms,
    )
    if log_end_offset != leader_end_offset:
        context.isr_unchecked[partition] = None
    new_low = low_watermark(partition) if has_deletes else -1
    # The ISR first: a replica that is proposed holds back the high watermark from now on. In the
    # other order the high watermark could pass a replica that the controller has in the ISR.
    maybe_expand_isr(partition, replica_id, now_ms)
    rose = before.log_end_offset != log_end_offset and maybe_increment_leader_hw(partition, now_ms)
    if rose or new_low > old_low:
        context.delayed.check_and_complete_all(partition.key, now_ms)


def consumer_fetch_records(
    partition: Partition,
    *,
    fetch_offset: int,
    any_replica: bool = False,
    current_leader_epoch: int | None = None,
    last_fetched_epoch: int | None = None,
    max_bytes: int,
    min_one_batch: bool = True,
    read_committed: bool = False,
) -> LogReadInfo:
    """Read below the high watermark, or below the last stable offset, for a consumer.

    Errors:  as fetch_records; NOT_LEADER_OR_FOLLOWER on a follower unless any replica may serve it.
    """
    partition.require_epoch(current_leader_epoch, leader_only=not any_replica)
    isolation = FetchIsolation.TXN_COMMITTED if read_committed else FetchIsolation.HIGH_WATERMARK
    return read_records(
        partition, fetch_offset, last_fetched_epoch, max_bytes, min_one_batch, isolation
    )


class FetchIsolation(enum.Enum):
    """How far a read goes.

    Source:  FetchIsolation.
    """

    LOG_END = enum.auto()
    HIGH_WATERMARK = enum.auto()
    TXN_COMMITTED = enum.auto()


@step
def read_records(
    partition: Partition,
    fetch_offset: int,
    last_fetched_epoch: int | None,
    max_bytes: int,
    min_one_batch: bool,
    isolation: FetchIsolation,
) -> LogReadInfo:
    """Read batches up to a limit, unless the fetcher's log diverges from this one.

    A read_committed consumer drops the records of the aborted transactions among them (KIP-98).

    Shapes:  the offsets are those before the read, which may move the high watermark
             (``ReplicaLog.locate_high_watermark``).
    Errors:  OFFSET_OUT_OF_RANGE.
    Source:  Partition.readRecords, LocalLog.addAbortedTransactions.
    """
    replica_log = partition.replica_log
    log, high_watermark = replica_log.log, replica_log.high_watermark
    last_stable_offset = partition.last_stable_offset
    diverging = None
    if last_fetched_epoch is not None:
        diverging = diverging_epoch(partition, fetch_offset, last_fetched_epoch)
    read, aborted = None, None
    if diverging is None:
        # Before the limit, whose look-up may move the high watermark.
        replica_log.require_not_below_start(fetch_offset)
        limit = _limit(partition, isolation)
        read = replica_log.read(fetch_offset, max_bytes, limit, min_one_batch)
        if isolation is FetchIsolation.TXN_COMMITTED and not read.first_incomplete:
            aborted = _aborted_transactions(partition, fetch_offset, read.records)
    return LogReadInfo(
        records=Records() if read is None else read.records,
        fetch_offset=fetch_offset if read is None else read.found_offset,
        high_watermark=high_watermark,
        log_start_offset=log.start_offset,
        log_end_offset=log.end_offset,
        last_stable_offset=last_stable_offset,
        aborted_transactions=aborted,
        diverging_epoch=diverging,
        first_incomplete=read is not None and read.first_incomplete,
    )


def _limit(partition: Partition, isolation: FetchIsolation) -> int:
    if isolation is FetchIsolation.LOG_END:
        return partition.log_end_offset
    old = partition.high_watermark
    limit = partition.replica_log.locate_high_watermark()
    if limit != old:
        trace(partition, "hw", hw_old=old)
    return limit if isolation is FetchIsolation.HIGH_WATERMARK else partition.last_stable_offset


def _aborted_transactions(
    partition: Partition, fetch_offset: int, records: Records
) -> tuple[AbortedTransaction, ...]:
    if fetch_offset >= partition.last_stable_offset:
        return ()
    return partition.replica_log.aborted_transactions(
        fetch_offset, records, partition.log_config.index_interval_bytes
    )


def diverging_epoch(
    partition: Partition, fetch_offset: int, last_fetched_epoch: int
) -> EpochEndOffset | None:
    """The end of the last epoch that may be common to both logs, if they diverge.

    Errors:  OFFSET_OUT_OF_RANGE where the end of the epoch is not known or the offset is deleted.
    """
    log = partition.replica_log.log
    epoch, end_offset = log.end_offset_for(last_fetched_epoch)
    # The follower has an epoch that this log has not come to: it cannot tell by epochs where the
    # logs part, and looks for a place by offsets instead.
    if epoch < 0 or end_offset < 0:
        raise ReplicaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {last_fetched_epoch} has no end here"
        )
    if fetch_offset < log.start_offset:
        raise ReplicaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{fetch_offset} lies below the log start {log.start_offset}",
        )
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return EpochEndOffset(epoch, end_offset)
    return None


# --- lookups ----------------------------------------------------------------------------------


def list_offsets(
    partition: Partition,
    *,
    timestamp: int,
    from_replica: bool = False,
    read_committed: bool = False,
    current_leader_epoch: int | None = None,
    leader_only: bool = True,
) -> OffsetAndEpoch | None:
    """The offset of a special timestamp, or the first one of a record that is not older.

    A replica gets the log end, a consumer the high watermark, with read_committed the last stable
    offset.

    Shapes:  -> None if no record is as young.
    Errors:  as fetch_records; OFFSET_NOT_AVAILABLE while the high watermark of a new leader lies
             below the start of its epoch: offsets would seem to go back (KIP-207).
    Source:  KIP-79, KIP-207, KIP-734; Partition.fetchOffsetForTimestamp, UnifiedLog.
    """
    partition.require_epoch(current_leader_epoch, leader_only=leader_only)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        log_start = partition.log_start_offset
        earliest = partition.log.epochs.entries[:1]
        known = bool(earliest) and earliest[0][1] <= log_start
        return OffsetAndEpoch(log_start, earliest[0][0] if known else None)
    if from_replica:
        end = partition.log_end_offset
    else:
        end = partition.last_stable_offset if read_committed else partition.high_watermark
    start = partition.leader_epoch_start_offset
    lags = not from_replica and start is not None and start > partition.high_watermark
    if timestamp == LATEST_TIMESTAMP and not lags:
        return OffsetAndEpoch(end, partition.leader_epoch)
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return None
    if timestamp != LATEST_TIMESTAMP:
        log = partition.replica_log
        record = log.max_timestamp() if timestamp == MAX_TIMESTAMP else log.first_at(timestamp)
        if record is not None and record[0] < end:
            return OffsetAndEpoch(record[0], record[2], record[1])
        if not lags:
            return None
    raise ReplicaError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"high watermark {partition.high_watermark} is below the epoch's start {start}",
    )


def last_offset_for_leader_epoch(
    partition: Partition,
    leader_epoch: int,
    *,
    current_leader_epoch: int | None = None,
    leader_only: bool = True,
) -> EpochEndOffset:
    """The end of a leader epoch in this log (KIP-320).

    Errors:  as require_epoch.
    """
    partition.require_epoch(current_leader_epoch, leader_only=leader_only)
    return EpochEndOffset(*partition.log.end_offset_for(leader_epoch))
