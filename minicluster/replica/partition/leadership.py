"""Leader and follower role of a partition, as the metadata assigns them.

    role      metadata                         next role, and what it changes
    any       of an older partition epoch      unchanged: a response was faster (is_stale)
    any       another leader, or none (-1)     follower; forgets what it knew of followers, fetches
                                               again in a new leader epoch only
    none,     this broker leads                leader; its followers' offsets are not known yet,
    follower                                   members of the ISR have the full lag time
    leader    this broker leads, in a new      leader; offsets of followers stay, their times begin
              leader epoch                     again
    leader    this broker leads, in the same   leader; the ISR is that of the metadata, unless a
              leader epoch                     change may be written (stays_pending)
    any       the replica is deleted, or its   none (stop_replica); results that are on their way
              directory has failed             are ignored

A leader epoch is the reign of one leader: it starts at the leader's log end, and every batch that
it appends carries it. So a position in the log is (epoch, offset), and two logs agree wherever they
hold the same epoch at the same offset (KIP-101). The partition epoch counts every change of the
partition, ISR changes too; it orders what comes by metadata and what comes by a response.

What a leader knows of its followers is worth nothing under another leader: offsets of that time may
be of records that it does not have. Its own next epoch changes nothing in its log, so offsets stay;
only the lag of the followers is counted from then on.

Source:  Partition.makeLeader, makeFollower, delete; KIP-704 (recovery of an unclean leader).
"""

from __future__ import annotations

from minicluster.metadata.image.partition import RECOVERED, PartitionRegistration
from minicluster.planting import step
from minicluster.replica.partition.high_watermark import maybe_increment_leader_hw
from minicluster.replica.partition.isr import (
    may_be_written,
    must_report_recovery,
    report_recovery,
)
from minicluster.replica.partition.partition import CommittedPartitionState, Partition, trace
from minicluster.replica.partition.replica_state import ReplicaState
from minicluster.replica.producers.markers import EndTransactionMarker, marker_batch
from minicluster.replica.producers.states import NO_COORDINATOR_EPOCH
from minicluster.rules import UncleanRecovery


def make_leader(partition: Partition, registration: PartitionRegistration, now_ms: int) -> bool:
    """Lead; the ISR of the metadata replaces any pending change.

    Shapes:  -> whether this broker did not lead before.
    Source:  Partition.makeLeader.
    """
    if is_stale(partition, registration):
        return False
    partition.on_change()
    is_new_leader = not partition.is_leader
    is_new_epoch = registration.leader_epoch > partition.leader_epoch
    change_stays_pending = stays_pending(partition, registration)
    _assign(partition, registration)
    # A replica that left the assignment is forgotten: its next fetch is rejected, and its end holds
    # back nothing. One that is new has not fetched, and holds back nothing until it joins.
    partition.remote_replicas = {
        replica: partition.remote_replicas.get(replica, ReplicaState())
        for replica in registration.replicas
        if replica != partition.broker_id
    }
    if not change_stays_pending:
        recovery_state = leader_recovery_state(partition, registration)
        isr = tuple(sorted(set(registration.isr)))
        partition.isr_state = CommittedPartitionState(isr, recovery_state)
    if is_new_epoch:
        start_offset = partition.log_end_offset
        partition.leader_epoch = registration.leader_epoch
        partition.leader_epoch_start_offset = start_offset
        # Before the first append of the epoch. A follower whose last epoch reaches beyond this
        # start must be told that it ends here, even while the new epoch has no record.
        partition.log.epochs.assign(registration.leader_epoch, start_offset)
        reset_remote_replicas(partition, registration, is_new_leader, now_ms)
    partition.leader = partition.broker_id
    trace(partition, "isr_pending" if change_stays_pending else "become_leader")
    if not change_stays_pending and must_report_recovery(partition):
        if is_new_epoch:
            abort_open_transactions(partition, now_ms)
        report_recovery(partition, now_ms)
    # Without other members in the ISR everything in the log is committed now. Otherwise it would
    # wait for the next append, and those that wait for it as well.
    if maybe_increment_leader_hw(partition, now_ms):
        partition.context.delayed.check_and_complete_all(partition.key, now_ms)
    return is_new_leader


@step
def make_follower(partition: Partition, registration: PartitionRegistration) -> bool:
    """Follow the leader that the metadata names, or nobody (leader -1).

    Shapes:  -> whether the leader epoch changed; then the fetcher must begin again.
    Source:  Partition.makeFollower.
    """
    if is_stale(partition, registration):
        return False
    partition.on_change()
    is_new_epoch = registration.leader_epoch > partition.leader_epoch
    _assign(partition, registration)
    partition.leader = registration.leader
    partition.leader_epoch = registration.leader_epoch
    partition.leader_epoch_start_offset = None
    partition.remote_replicas = {}  # another leader's log decides now
    partition.isr_state = CommittedPartitionState((), registration.leader_recovery_state)
    trace(partition, "become_follower")
    return is_new_epoch


@step
def is_stale(partition: Partition, registration: PartitionRegistration) -> bool:
    """Metadata is older than the partition, which a response has brought up to date."""
    return registration.partition_epoch < partition.partition_epoch


@step
def stays_pending(partition: Partition, registration: PartitionRegistration) -> bool:
    """Metadata of an equal partition epoch leaves a change pending that may be written.

    That metadata repeats what a response has brought already. Were it to end the change, the
    controller could commit an expansion of which this leader no longer knows, and the high
    watermark would not wait for the new member. As shipped it ends the change.
    """
    if (
        not partition.is_leader
        or registration.leader_epoch > partition.leader_epoch
        or registration.partition_epoch != partition.partition_epoch
        or partition.rules.equal_partition_epoch_ends_pending
    ):
        return False
    return may_be_written(partition, tuple(sorted(set(registration.isr))))


@step
def leader_recovery_state(partition: Partition, registration: PartitionRegistration) -> int:
    """The recovery state of a leader's ISR.

    As shipped a leader has nothing to recover and takes its partition as recovered, which its next
    AlterPartition reports. By KIP-704's text it recovers first and reports that.
    """
    if partition.rules.unclean_leader_recovers is UncleanRecovery.REPORTED:
        return registration.leader_recovery_state
    return RECOVERED


@step
def reset_remote_replicas(
    partition: Partition, registration: PartitionRegistration, is_new_leader: bool, now_ms: int
) -> None:
    """Begin a leader epoch for each follower.

    Offsets that followers fetched from another leader mean nothing in the log of a new one.
    """
    start_offset = partition.log_end_offset
    for broker, replica in partition.remote_replicas.items():
        in_isr = broker in registration.isr
        if is_new_leader:
            partition.remote_replicas[broker] = ReplicaState.of_new_leader(
                in_isr=in_isr, now_ms=now_ms
            )
        else:
            partition.remote_replicas[broker] = replica.of_next_epoch(
                leader_end_offset=start_offset,
                leader_epoch=partition.leader_epoch,
                in_isr=in_isr,
                now_ms=now_ms,
            )


def _assign(partition: Partition, registration: PartitionRegistration) -> None:
    partition.partition_epoch = registration.partition_epoch
    partition.replicas = registration.replicas
    partition.adding_replicas = registration.adding_replicas
    partition.removing_replicas = registration.removing_replicas


def stop_replica(partition: Partition, *, delete: bool) -> None:
    """Leave the partition, with or without its log; results that still come are ignored."""
    partition.on_change()
    partition.leader = None
    trace(partition, "delete" if delete else "stop")
    partition.isr_state = CommittedPartitionState(())


# --- recovery from an unclean election --------------------------------------------------------

_ABORT = EndTransactionMarker(committed=False, coordinator_epoch=NO_COORDINATOR_EPOCH)


def abort_open_transactions(partition: Partition, now_ms: int) -> None:
    """Append an abort marker for each open transaction.

    An unclean election may have lost the end of a transaction, and nobody will write it any more:
    the last stable offset would stay below it forever. By KIP-704's text the leader aborts such
    transactions itself, stays RECOVERING until it has, and takes no replica into the ISR before it
    has reported that to the controller. As shipped it does nothing.

    Source:  KIP-704, "Leader recovery".
    """
    replica_log, date_ms = partition.replica_log, partition.context.date_ms(now_ms)
    for producer in replica_log.producers.open_transactions:
        marker = marker_batch(_ABORT, producer.producer_id, producer.epoch, date_ms)
        placed = marker.with_base(replica_log.log.end_offset, partition.leader_epoch)
        replica_log.maybe_roll((placed,), partition.log_config, date_ms)
        replica_log.append_as_leader(placed, partition.log_config, date_ms)
        trace(partition, "append", offset=placed.last_offset, appended=(placed,))
