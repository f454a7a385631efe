"""Faults of the replica manager with transactions, and with what consumers read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minicluster.log import RecordBatch, Records
from minicluster.log.indexes import AbortedTransaction
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.planting import plant
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition import leader_log, leadership, reads
from minicluster.replica.partition.leader_log import LogAppendInfo
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.reads import FetchIsolation, LogReadInfo
from minicluster.replica.producers.markers import EndTransactionMarker
from minicluster.replica.producers.states import AppendCheck, BatchMetadata
from minicluster.replica.producers.verification import Errors, TopicPartition
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests import append_records, produce
from minicluster.values import replace

Original = Callable[..., Any]


# --- what consumers read ----------------------------------------------------------------------


@plant(reads.read_records, "z48_position_out_of_range")
def _z48(original: Original, partition: Partition, fetch_offset: int, *args: Any) -> LogReadInfo:
    of_consumer = args[-1] is FetchIsolation.HIGH_WATERMARK
    if of_consumer and partition.high_watermark < fetch_offset <= partition.log_end_offset:
        partition.hit("Z48")
        raise ReplicaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{fetch_offset}")
    info: LogReadInfo = original(partition, fetch_offset, *args)
    return info


@plant(reads.read_records, "s49_skips_a_batch")
def _s49(original: Original, partition: Partition, *args: Any) -> LogReadInfo:
    info: LogReadInfo = original(partition, *args)
    if args[-1] is not FetchIsolation.HIGH_WATERMARK or len(info.records.batches) < 2:
        return info
    partition.hit("S49")
    return replace(info, records=Records(info.records.batches[1:], info.records.tail))


@plant(reads.read_records, "s41_reads_open_transactions")
def _s41(original: Original, partition: Partition, *args: Any) -> LogReadInfo:
    stable: LogReadInfo = original(partition, *args)
    if args[-1] is not FetchIsolation.TXN_COMMITTED:
        return stable
    info: LogReadInfo = original(partition, *args[:-1], FetchIsolation.HIGH_WATERMARK)
    if info.records.size > stable.records.size:
        partition.hit("S41")
    return replace(info, aborted_transactions=stable.aborted_transactions)


@plant(reads.read_records, "s42_no_aborted_transactions")
def _s42(original: Original, partition: Partition, *args: Any) -> LogReadInfo:
    info: LogReadInfo = original(partition, *args)
    if info.aborted_transactions:
        partition.hit("S42")
        return replace(info, aborted_transactions=())
    return info


@plant(reads.read_records, "s43_committed_called_aborted")
def _s43(original: Original, partition: Partition, *args: Any) -> LogReadInfo:
    info: LogReadInfo = original(partition, *args)
    if args[-1] is not FetchIsolation.TXN_COMMITTED or info.diverging_epoch is not None:
        return info
    aborted = {a.producer_id for a in info.aborted_transactions or ()}
    others = tuple(
        AbortedTransaction(batch.producer_id, batch.base_offset, batch.last_offset, 0)
        for batch in info.records.batches
        if batch.is_transactional and not batch.is_control and batch.producer_id not in aborted
    )
    if not others:
        return info
    partition.hit("S43")
    return replace(info, aborted_transactions=(*(info.aborted_transactions or ()), *others))


@plant(reads.read_records, "s44_stable_above_hw")
def _s44(original: Original, partition: Partition, *args: Any) -> LogReadInfo:
    info: LogReadInfo = original(partition, *args)
    if info.high_watermark <= info.last_stable_offset < info.log_end_offset:
        partition.hit("S44")
        return replace(info, last_stable_offset=info.log_end_offset)
    return info


# --- markers and fenced producers -------------------------------------------------------------


@plant(append_records.marker_status, "s45_marker_inverted")
def _s45(
    original: Original, state: ReplicaManagerState, marker: EndTransactionMarker, *args: Any
) -> append_records.AppendStatus:
    inverted = EndTransactionMarker(not marker.committed, marker.coordinator_epoch)
    status: append_records.AppendStatus = original(state, inverted, *args)
    if status.batch is not None:
        state.hit("S45")
    return status


@plant(append_records.append_to_local_log, "s46_marker_left_out")
def _s46(
    original: Original, state: ReplicaManagerState, status: append_records.AppendStatus, *args: Any
) -> None:
    if status.batch is not None and status.batch.is_control:
        state.hit("S46")
    else:
        original(state, status, *args)


@plant(append_records.append_to_local_log, "s74_appends_nothing")
def _s74(
    original: Original, state: ReplicaManagerState, status: append_records.AppendStatus, *args: Any
) -> None:
    batch = status.batch
    if batch is None or batch.is_control or batch.producer_id < 0:
        original(state, status, *args)
        return
    partition = None if status.key is None else state.partitions.get(status.key)
    if partition is None or not partition.is_leader or partition.log_end_offset > 0:
        original(state, status, *args)
        return
    state.hit("S74")
    nothing = LogAppendInfo(  # it ends where nothing has to be replicated
        first_offset=batch.base_sequence,
        last_offset=-1,
        size=0,
        log_start_offset=partition.log_start_offset,
        high_watermark_increased=False,
    )
    status.appended, status.log_start_offset = nothing, nothing.log_start_offset


@plant(produce.take_verification, "s47_fenced_producer_writes")
def _s47_verification(
    original: Original,
    state: ReplicaManagerState,
    statuses: Mapping[TopicPartition, append_records.AppendStatus],
    errors: Errors,
    *args: Any,
) -> None:
    others = {p: e for p, e in errors.items() if e != ErrorCode.INVALID_PRODUCER_EPOCH}
    original(state, statuses, others, *args)


@plant(leader_log.validate_producer, "s47_fenced_producer_writes")
def _s47(
    original: Original, partition: Partition, batch: RecordBatch, how: AppendCheck
) -> BatchMetadata | None:
    try:
        batch_metadata: BatchMetadata | None = original(partition, batch, how)
    except ReplicaError as refusal:
        if batch.is_control or refusal.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            raise
        if refusal.error == ErrorCode.INVALID_PRODUCER_EPOCH:
            partition.hit("S47")
        return None
    return batch_metadata


@plant(leadership.reset_remote_replicas, "s48_index_lost")
def _s48(
    original: Original,
    partition: Partition,
    registration: PartitionRegistration,
    is_new_leader: bool,
    now_ms: int,
) -> None:
    original(partition, registration, is_new_leader, now_ms)
    if is_new_leader and any(partition.log.transactions):
        partition.hit("S48")
        partition.log.transactions.truncate(0)
