"""Appends and deletions on the log of a leader.

Source:  Partition.appendRecordsToLeader, checkEnoughReplicasReachOffset, deleteRecordsOnLeader.
"""

from __future__ import annotations

from minicluster.log import RecordBatch
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.high_watermark import low_watermark, maybe_increment_leader_hw
from minicluster.replica.partition.log_validator import validate
from minicluster.replica.partition.partition import Partition, trace
from minicluster.replica.producers.states import AppendCheck, AppendOrigin, BatchMetadata
from minicluster.values import Value


class LogAppendInfo(Value, kw_only=True):
    """The place of a produced batch, or of the one in the log that it repeats.

    Shapes:  log_append_time_ms is -1 where the log keeps the producer's timestamps; of a duplicate
             it is the greatest timestamp of the batch in the log.
    """

    first_offset: int
    last_offset: int
    size: int
    log_start_offset: int
    high_watermark_increased: bool
    log_append_time_ms: int = -1


class LogDeleteRecordsResult(Value):
    """The deletion is complete once the low watermark has reached the offset."""

    requested_offset: int
    low_watermark: int


class ReplicasReached(Value):
    """The state of a produce with acks=all: replicated far enough or not, and its error."""

    reached: bool
    error: ErrorCode


HIGH_WATERMARK = -1  # as the offset of a deletion
ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
BY_CLIENT = AppendCheck()


def append_records_to_leader(
    partition: Partition,
    batch: RecordBatch,
    acks: int,
    now_ms: int,
    *,
    how: AppendCheck = BY_CLIENT,
) -> LogAppendInfo:
    """Append a producer's batch; a duplicate of an idempotent producer is acknowledged as before.

    Errors:  NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS (acks=all below the minimum), those of
             ``log_validator.validate`` and of ``ProducerStates.check``.
    Source:  Partition.appendRecordsToLeader, UnifiedLog.append.
    """
    partition.require_leader()
    # By the committed ISR: a member that is only proposed may not be in it in the end. With acks=1
    # the producer has asked for no such promise, and the record waits in the log to be committed.
    if acks == ACKS_ALL and partition.is_under_min_isr:
        raise ReplicaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{len(partition.isr_state.isr)} in sync, {partition.effective_min_isr} needed",
        )
    config, date_ms = partition.log_config, partition.context.date_ms(now_ms)
    validated = validate(batch, how.origin, config, partition.name, date_ms)
    replica_log = partition.replica_log
    placed = validated.with_base(replica_log.log.end_offset, partition.leader_epoch)
    # Before the producer's state: a repeat begins a segment as well, if there is no room for it.
    replica_log.maybe_roll((placed,), config, date_ms)
    duplicate = validate_producer(partition, placed, how)
    if duplicate is not None:
        return LogAppendInfo(
            first_offset=duplicate.first_offset,
            last_offset=duplicate.last_offset,
            size=batch.size,
            log_start_offset=partition.log_start_offset,
            high_watermark_increased=maybe_increment_leader_hw(partition, now_ms),
            log_append_time_ms=duplicate.timestamp,
        )
    replica_log.append_as_leader(placed, config, date_ms)
    trace(partition, "append", offset=placed.last_offset, appended=(placed,))
    return LogAppendInfo(
        first_offset=placed.base_offset,
        last_offset=placed.last_offset,
        size=batch.size,
        log_start_offset=partition.log_start_offset,
        # Without followers in the ISR nobody else's fetch would commit the batch.
        high_watermark_increased=maybe_increment_leader_hw(partition, now_ms),
        log_append_time_ms=date_ms if config.log_append_time else -1,
    )


@step
def validate_producer(
    partition: Partition, batch: RecordBatch, how: AppendCheck
) -> BatchMetadata | None:
    """The duplicate in the log; a new batch must continue the sequence and the transaction.

    Errors:  as ProducerStates.check.
    """
    producers = partition.replica_log.producers
    duplicate = producers.find_duplicate(batch) if how.origin is AppendOrigin.CLIENT else None
    if duplicate is None:
        producers.check(batch, how)
    return duplicate


def check_enough_replicas(partition: Partition, required_offset: int) -> ReplicasReached:
    """The state of a produce with acks=all, whose last record lies below the required offset.

    The ISR may have shrunk below the minimum since the append: the record is committed, and fewer
    replicas hold it than min.insync.replicas requires.

    Source:  Partition.checkEnoughReplicasReachOffset.
    """
    if not partition.is_leader:
        return ReplicasReached(False, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if not is_committed(partition, required_offset):
        return ReplicasReached(False, ErrorCode.NONE)
    if partition.effective_min_isr <= len(partition.isr_state.maximal_isr):
        return ReplicasReached(True, ErrorCode.NONE)
    return ReplicasReached(True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


@step
def is_committed(partition: Partition, required_offset: int) -> bool:
    """The high watermark has reached an offset."""
    return partition.high_watermark >= required_offset


def acknowledge(partition: Partition, last_offset: int) -> None:
    """Record that an acks=all produce up to this offset gets a response without error."""
    trace(partition, "ack", offset=last_offset)


def delete_records_on_leader(partition: Partition, offset: int) -> LogDeleteRecordsResult:
    """Move the log start up to an offset (-1: the high watermark).

    Errors:  NOT_LEADER_OR_FOLLOWER; POLICY_VIOLATION where records only go by compaction;
             OFFSET_OUT_OF_RANGE above the high watermark.
    """
    partition.require_leader()
    if partition.log_config.compacted and not partition.log_config.deleted:
        raise ReplicaError(ErrorCode.POLICY_VIOLATION, "the topic is compacted, not deleted")
    requested = partition.high_watermark if offset == HIGH_WATERMARK else offset
    if requested < 0:
        raise ReplicaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is not an offset")
    partition.replica_log.maybe_increment_log_start_offset(requested)
    return LogDeleteRecordsResult(requested, low_watermark(partition))
