"""Faults of the replica manager: ISR, high watermark, leadership, logs, fetching.

Each counts a hit where it makes a difference.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from typing import Any

from minicluster.log import RecordBatch
from minicluster.log.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from minicluster.metadata.image.delta import LocalChanges, TopicIdPartition
from minicluster.metadata.image.partition import RECOVERING, PartitionRegistration
from minicluster.planting import plant
from minicluster.replica import apply_delta as delta_rules
from minicluster.replica import log_directories
from minicluster.replica.fetching import fetcher as fetching
from minicluster.replica.fetching.fetcher import Fetcher
from minicluster.replica.fetching.leader_endpoint import FetchState
from minicluster.replica.log_manager import log_name
from minicluster.replica.partition import high_watermark, isr, leader_log, leadership, reads
from minicluster.replica.partition.follower_log import truncate
from minicluster.replica.partition.partition import (
    CommittedPartitionState,
    Partition,
    Pending,
    PendingExpandIsr,
    PendingShrinkIsr,
    trace,
)
from minicluster.replica.partition.reads import FetchIsolation, LogReadInfo
from minicluster.replica.partition.replica_state import ReplicaState
from minicluster.replica.producers.states import AppendCheck
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests import read_from_log
from minicluster.replica.requests.read_from_log import FetchParams
from minicluster.values import replace

Original = Callable[..., Any]


# --- ISR --------------------------------------------------------------------------------------


@plant(isr.is_replica_isr_eligible, "z02_no_local_eligibility_check")
def _z02(original: Original, partition: Partition, replica_id: int) -> bool:
    replica = partition.remote_replicas[replica_id]
    if not original(partition, replica_id) and isr.is_follower_in_sync(partition, replica):
        partition.hit("Z02")
    return True


@plant(reads.update_follower_fetch_state, "z04_eligibility_read_twice")
def _z04(original: Original, partition: Partition, replica_id: int, *fetch: int) -> None:
    """The ISR check looks at the state before the fetch, and the proposal at that after it."""
    before = partition.remote_replicas[replica_id]
    original(partition, replica_id, *fetch)
    now_ms = fetch[-1]
    after, state = partition.remote_replicas[replica_id], partition.isr_state
    if (
        isinstance(state, CommittedPartitionState)
        and replica_id not in state.isr
        and before.broker_epoch not in (None, after.broker_epoch)
        and isr.is_follower_in_sync(partition, before)
        and isr.is_replica_isr_eligible(partition, replica_id)
    ):
        partition.hit("Z04")
        isr.submit(partition, isr.prepare_isr_expand(partition, state, replica_id), now_ms)


@plant(isr.must_report_recovery, "s09_expand_while_recovering")
def _s09_joins_early(original: Original, partition: Partition) -> bool:
    return False


@plant(leadership.leader_recovery_state, "s09_expand_while_recovering")
def _s09_stays_recovering(
    original: Original, partition: Partition, registration: PartitionRegistration
) -> int:
    return registration.leader_recovery_state


@plant(isr.prepare_isr_expand, "s09_expand_while_recovering")
def _s09_expands(
    original: Original, partition: Partition, state: CommittedPartitionState, replica_id: int
) -> PendingExpandIsr:
    if state.recovery_state == RECOVERING:
        partition.hit("S09")
    pending: PendingExpandIsr = original(partition, state, replica_id)
    return pending


class _ShrunkEarly(PendingShrinkIsr):
    """A shrink whose members do not hold back the high watermark any more."""

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return tuple(member for member in self.isr if member not in self.out_of_sync_replicas)


@plant(isr.prepare_isr_shrink, "s11_shrink_applied_early")
def _s11_shrinks(original: Original, *args: Any) -> PendingShrinkIsr:
    pending: PendingShrinkIsr = original(*args)
    return _ShrunkEarly(pending.sent, pending.last_committed, pending.out_of_sync_replicas)


@plant(isr.maybe_shrink_isr, "s11_shrink_applied_early")
def _s11_counts(original: Original, partition: Partition, now_ms: int) -> None:
    was_pending = partition.isr_state.is_pending
    original(partition, now_ms)
    if not was_pending and partition.isr_state.is_pending:
        partition.hit("S11")
        if high_watermark.maybe_increment_leader_hw(partition, now_ms):
            partition.context.delayed.check_and_complete_all(partition.key, now_ms)


@plant(isr.out_of_sync_replicas, "s71_idle_followers_leave")
def _s71(original: Original, partition: Partition, now_ms: int) -> tuple[int, ...]:
    """The age of the last record counts, not that of a follower's last fetch."""
    lagging: tuple[int, ...] = original(partition, now_ms)
    written_ms = max((batch.max_timestamp for batch in partition.log.batches[-1:]), default=0)
    if lagging or now_ms - written_ms <= partition.context.config.replica_lag_time_max_ms:
        return lagging
    followers = tuple(m for m in partition.isr_state.isr if m != partition.broker_id)
    if followers:
        partition.hit("S71")
    return followers


@plant(isr.is_follower_in_sync, "s66_in_sync_above_epoch_start")
def _s66(original: Original, partition: Partition, replica: ReplicaState) -> bool:
    in_sync: bool = original(partition, replica)
    if in_sync and replica.log_end_offset == partition.leader_epoch_start_offset:
        partition.hit("S66")
        return False
    return in_sync


@plant(isr.after_isr_commit, "z18_hw_waits_after_shrink")
def _z18(original: Original, partition: Partition, pending: Pending, now_ms: int) -> None:
    if isinstance(pending, PendingShrinkIsr):
        partition.hit("Z18")
    else:
        original(partition, pending, now_ms)


# --- high watermark ---------------------------------------------------------------------------


@plant(high_watermark.maybe_increment_leader_hw, "z40_hw_moves_under_min_isr")
def _z40(original: Original, partition: Partition, now_ms: int) -> bool:
    if not partition.is_under_min_isr:
        rose: bool = original(partition, now_ms)
        return rose
    old = partition.high_watermark
    end = high_watermark.lowest_log_end_offset(partition, now_ms)
    if end > old:
        partition.hit("Z40")
        partition.replica_log.maybe_increment_high_watermark(end)
        trace(partition, "hw", hw_old=old)
    return end > old


@plant(high_watermark.lowest_log_end_offset, "s12_hw_ignores_joining_replica")
def _s12(original: Original, partition: Partition, now_ms: int) -> int:
    state, replicas = partition.isr_state, partition.remote_replicas
    ends = [replicas[member].log_end_offset for member in state.isr if member in replicas]
    new = min([partition.log_end_offset, *ends])
    if new > partition.high_watermark and any(
        replicas[member].log_end_offset < new for member in state.maximal_isr if member in replicas
    ):
        partition.hit("S12")
    return new


@plant(high_watermark.lowest_log_end_offset, "s65_hw_is_last_offset")
def _s65(original: Original, partition: Partition, now_ms: int) -> int:
    end: int = original(partition, now_ms)
    if end > partition.high_watermark:
        partition.hit("S65")
        return end - 1
    return end


# --- metadata ---------------------------------------------------------------------------------


@plant(leadership.is_stale, "z15_older_partition_epoch_applied")
def _z15(original: Original, partition: Partition, registration: PartitionRegistration) -> bool:
    if original(partition, registration):
        partition.hit("Z15")
    return False


@plant(leadership.is_stale, "z17_pending_cleared_by_old_metadata")
def _z17(original: Original, partition: Partition, registration: PartitionRegistration) -> bool:
    stale: bool = original(partition, registration)
    if stale and partition.isr_state.is_pending:
        partition.hit("Z17")
        partition.isr_state = partition.isr_state.last_committed
        trace(partition, "isr_revert")
    return stale


@plant(leadership.is_stale, "s61_partition_epoch_stays")
def _s61(original: Original, partition: Partition, registration: PartitionRegistration) -> bool:
    leads_on = partition.is_leader and registration.leader_epoch == partition.leader_epoch
    if leads_on and registration.partition_epoch > partition.partition_epoch:
        partition.hit("S61")
        return True
    stale: bool = original(partition, registration)
    return stale


@plant(leadership.stays_pending, "s64_response_alone_ends_pending")
def _s64(original: Original, partition: Partition, registration: PartitionRegistration) -> bool:
    if original(partition, registration):
        return True
    leads_on = partition.is_leader and registration.leader_epoch == partition.leader_epoch
    if not leads_on or not partition.isr_state.is_pending:
        return False
    partition.hit("S64")
    return True


@plant(leadership.make_follower, "s13_stale_acks_count")
def _s13_keeps(
    original: Original, partition: Partition, registration: PartitionRegistration
) -> bool:
    """The fetch state of followers from an earlier leadership stays."""
    replicas = partition.remote_replicas
    is_new_epoch: bool = original(partition, registration)
    partition.remote_replicas = replicas
    return is_new_epoch


@plant(leadership.reset_remote_replicas, "s13_stale_acks_count")
def _s13_counts(
    original: Original,
    partition: Partition,
    registration: PartitionRegistration,
    is_new_leader: bool,
    now_ms: int,
) -> None:
    if not is_new_leader:
        original(partition, registration, is_new_leader, now_ms)
        return
    replicas = partition.remote_replicas
    if any(replica.broker_epoch is not None for replica in replicas.values()):
        partition.hit("S13")
    for broker, replica in replicas.items():
        replicas[broker] = replica.of_next_epoch(
            leader_end_offset=partition.log_end_offset,
            leader_epoch=replica.leader_epoch,
            in_isr=broker in registration.isr,
            now_ms=now_ms,
        )


@plant(delta_rules.apply_delta, "z09_metadata_stops_at_shutdown")
def _z09(
    original: Original, state: ReplicaManagerState, changes: LocalChanges, now_ms: int
) -> None:
    if state.in_controlled_shutdown:
        state.hit("Z09")
    else:
        original(state, changes, now_ms)


@plant(delta_rules.make_local_follower, "z08_demotion_ignored")
def _z08(
    original: Original,
    state: ReplicaManagerState,
    named: TopicIdPartition,
    registration: PartitionRegistration,
) -> bool:
    partition = state.partitions.get((named.topic_id, named.partition))
    if state.in_controlled_shutdown and partition is not None and partition.is_leader:
        state.hit("Z08")
        return False
    followed: bool = original(state, named, registration)
    return followed


@plant(delta_rules.make_local_leader, "s03_leader_epoch_unchanged")
@plant(delta_rules.make_local_follower, "s03_leader_epoch_unchanged")
def _s03(
    original: Original,
    state: ReplicaManagerState,
    named: TopicIdPartition,
    registration: PartitionRegistration,
    *now_ms: int,
) -> Any:
    """Every leader leads the first epoch."""
    if registration.leader_epoch != 0:
        state.hit("S03")
        registration = replace(registration, leader_epoch=0)
    return original(state, named, registration, *now_ms)


# --- logs -------------------------------------------------------------------------------------


@plant(log_directories.take_offline, "s55_failed_directory_serves")
def _s55(
    original: Original,
    state: ReplicaManagerState,
    directory: uuid.UUID,
    logs: Collection[str],
    now_ms: int,
) -> None:
    if any(partition.name in logs for partition in state.partitions.values()):
        state.hit("S55")


@plant(leader_log.validate_producer, "s34_repeats_are_appended")
def _s34(original: Original, partition: Partition, batch: RecordBatch, how: AppendCheck) -> None:
    if original(partition, batch, how) is not None:
        partition.hit("S34")


@plant(leader_log.is_committed, "s32_acks_all_at_once")
def _s32(original: Original, partition: Partition, required_offset: int) -> bool:
    if not original(partition, required_offset):
        partition.hit("S32")
    return True


@plant(leader_log.is_committed, "s62_acknowledged_with_the_next")
def _s62(original: Original, partition: Partition, required_offset: int) -> bool:
    if not original(partition, required_offset):
        return False
    if partition.high_watermark == required_offset:
        partition.hit("S62")
    return bool(partition.high_watermark > required_offset)


@plant(leader_log.is_committed, "s73_committed_times_out")
def _s73(original: Original, partition: Partition, required_offset: int) -> bool:
    if original(partition, required_offset):
        partition.hit("S73")
    return False


@plant(reads.update_follower_fetch_state, "s56_sent_counts_as_held")
def _s56(
    original: Original,
    partition: Partition,
    replica_id: int,
    epoch: int,
    start: int,
    end: int,
    *of: int,
) -> None:
    log_end = partition.log_end_offset
    if end < log_end:
        partition.hit("S56")
    original(partition, replica_id, epoch, start, log_end, *of)


@plant(reads.read_records, "s31_reads_above_hw")
def _s31(original: Original, partition: Partition, *args: Any) -> LogReadInfo:
    isolation = args[-1]
    if isolation is FetchIsolation.HIGH_WATERMARK:
        isolation = FetchIsolation.LOG_END
    info: LogReadInfo = original(partition, *args[:-1], isolation)
    if info.records.batches and info.records.batches[-1].last_offset >= partition.high_watermark:
        partition.hit("S31")
    return info


@plant(read_from_log.read_partition, "z38_fetches_are_not_fenced")
def _z38(
    original: Original, partition: Partition, params: FetchParams, data: Any, *args: Any
) -> LogReadInfo:
    epoch = read_from_log.fetch_epoch(data.current_leader_epoch)
    if epoch not in (None, partition.leader_epoch):
        partition.hit("Z38")
    unfenced = replace(data, current_leader_epoch=-1)
    info: LogReadInfo = original(partition, params, unfenced, *args)
    return info


@plant(fetching.truncate_to_epoch_end, "z36_truncates_without_epoch_request")
def _z36(
    original: Original, fetcher: Fetcher, state: FetchState, epoch: int, end_offset: int
) -> None:
    """The leader's end of an epoch that this log never had is taken for the point of divergence."""
    partition = state.partition
    own_epoch, own_end = partition.log.end_offset_for(epoch)
    is_known = UNDEFINED_OFFSET not in (end_offset, own_end) and epoch != UNDEFINED_EPOCH
    if not is_known or own_epoch == epoch:
        original(fetcher, state, epoch, end_offset)
        return
    fetching.truncate_to(state, min(end_offset, partition.log_end_offset))
    state.last_fetched_epoch = UNDEFINED_EPOCH  # before KIP-595 no leader looked at it
    fetcher.hit("Z36")


@plant(delta_rules.start_fetching, "s30_truncates_below_hw")
def _s30(original: Original, state: ReplicaManagerState, partition: Partition, leader: int) -> None:
    if partition.high_watermark > partition.log_start_offset:
        state.hit("S30")
        truncate(partition, partition.high_watermark - 1)
    original(state, partition, leader)


@plant(delta_rules.is_stray, "z44_old_log_of_new_topic")
def _z44_keeps(original: Original, state: ReplicaManagerState, name: str) -> bool:
    if original(state, name):
        state.hit("Z44")
    return False


@plant(delta_rules.is_stray, "z45_live_logs_are_strays")
def _z45(original: Original, state: ReplicaManagerState, name: str) -> bool:
    if not original(state, name):
        state.hit("Z45")
    return True


@plant(delta_rules.get_or_create_partition, "z44_old_log_of_new_topic")
def _z44_adopts(
    original: Original,
    state: ReplicaManagerState,
    named: TopicIdPartition,
    registration: PartitionRegistration,
) -> Partition | None:
    key, name = (named.topic_id, named.partition), log_name(named.topic, named.partition)
    known = state.store.partition_file(name)
    if known is not None and key not in state.partitions and known.topic_id != named.topic_id:
        state.hit("Z44")
        state.store.adopt(name, named.topic_id)
    partition: Partition | None = original(state, named, registration)
    return partition


@plant(delta_rules.get_or_create_partition, "z14_failed_log_made_anew")
def _z14(
    original: Original,
    state: ReplicaManagerState,
    named: TopicIdPartition,
    registration: PartitionRegistration,
) -> Partition | None:
    """A replica in a failed directory begins again, empty, in another."""
    key, name = (named.topic_id, named.partition), log_name(named.topic, named.partition)
    store = state.store
    known, online = store.partition_file(name), store.online_directories
    if (
        known is not None
        and key not in state.partitions
        and online
        and known.directory not in online
    ):
        state.hit("Z14")
        store.delete(name)
        store.open(name, named.topic_id, online[0])
        state.offline.pop(key, None)
    partition: Partition | None = original(state, named, registration)
    return partition
