"""The ISR of a leader: committed, or with one change under way (KIP-497).

    state      event                                next state                  function
    Committed  a replica that is caught up and      PendingExpandIsr            maybe_expand_isr
               eligible has fetched
    Committed  members lag for too long             PendingShrinkIsr            maybe_shrink_isr
    Committed  the leader of an unclean election    PendingRecovery             report_recovery
               has recovered (KIP-704's text)
    Pending    success of what was sent             Committed, as responded     _on_alter_partition
    Pending    an error of REVERTS                  the last Committed          likewise
    Pending    an error of WAITS_FOR_METADATA       unchanged                   likewise
    Pending    any other error                      unchanged, and sent again   likewise
    any        metadata: this broker leads          Committed, as the metadata  make_leader
    any        metadata: another broker leads       Committed, without members  make_follower

The states are classes of ``partition``. The last two functions are those of ``leadership``: with
metadata that repeats what a response has brought a change stays pending. A result of an item that
is no longer pending changes nothing.

One change is under way at a time: the next one builds on the partition epoch that this one results
in. The AlterPartition manager rejects an item at once for a partition whose previous item has no
result yet, even if that one has become obsolete.

**Invariant:** the high watermark waits for ``maximal_isr``, which holds every ISR that the
controller may have in force: an expansion counts from the moment it is proposed, because the
controller may have committed it already; a shrink counts once it is committed (B1).

What would be lost otherwise. Broker 1 leads with ISR {1, 2}, and 3 has caught up at offset 10::

    leader 1                                            controller
    proposes {1, 2, 3}                      -------->   commits {1, 2, 3}
    appends 10; 2 has it, 3 has not yet                 its response is late
    if 10 were committed by {1, 2} alone ...            1 and 2 fail: elects 3, which is in the ISR
                                                        3 lacks 10, which clients know as committed

The same with a shrink that counts too early: the leader commits by {1} while the controller still
has {1, 2}, rejects the shrink, and elects 2. For an error the question is therefore what the
controller may have in force: nothing new (revert), anything (stay pending, until metadata says), or
this change after all, since only its response was lost (send the same again: the partition epoch in
it makes a repetition harmless).

A response and the metadata bring the same news on two ways, in either order. The partition epoch
tells which is newer: older news is ignored, whichever way it comes (KAFKA-13790).

Source:  Partition.maybeExpandIsr, maybeShrinkIsr, submitAlterPartition, handleAlterPartitionUpdate,
         handleAlterPartitionError; KIP-841, KIP-903.
"""

from __future__ import annotations

from functools import partial

from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_context import (
    NO_BROKER_EPOCH,
    AlterPartitionItem,
    AlterPartitionResult,
)
from minicluster.replica.effects import AlterPartitionFailed
from minicluster.replica.partition.high_watermark import maybe_increment_leader_hw
from minicluster.replica.partition.partition import (
    CommittedPartitionState,
    Partition,
    Pending,
    PendingExpandIsr,
    PendingRecovery,
    PendingShrinkIsr,
    trace,
)
from minicluster.replica.partition.replica_state import ReplicaState
from minicluster.rules import UncleanRecovery

# The leader reverts to the last committed ISR. The replica is not eligible for now, or the item was
# never sent; the next fetch or the next shrink task proposes it again.
REVERTS = {
    ErrorCode.OPERATION_NOT_ATTEMPTED: "the previous item of this partition has no result yet",
    ErrorCode.INELIGIBLE_REPLICA: "a proposed replica is fenced, shutting down or restarted",
}
# The leader stays pending. Its view of the partition is out of date, so the controller may have
# committed any ISR; the metadata that is on its way replaces the pending one.
WAITS_FOR_METADATA = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the controller has no such partition",
    ErrorCode.UNKNOWN_TOPIC_ID: "the controller has no such topic id",
    ErrorCode.FENCED_LEADER_EPOCH: "the leader epoch is out of date",
    ErrorCode.INVALID_UPDATE_VERSION: "the partition epoch is out of date",
    ErrorCode.INVALID_REQUEST: "the controller considers the request invalid",
    ErrorCode.NEW_LEADER_ELECTED: "another broker leads the partition now",
}


def may_be_written(partition: Partition, isr: tuple[int, ...]) -> bool:
    """A change of this committed ISR may be in the log, or come there.

    It has no result yet. Or its repetition was rejected since the controller has a later partition
    epoch: that may be of the change itself, whose first response was lost.
    """
    state = partition.isr_state
    return (
        not isinstance(state, CommittedPartitionState)
        and state.sent in (partition.in_flight, partition.overtaken)
        and state.isr == isr
    )


# --- expansion --------------------------------------------------------------------------------


def maybe_expand_isr(partition: Partition, replica_id: int, now_ms: int) -> None:
    """Propose a replica that has just fetched for the ISR.

    Eligibility is looked at once more by the controller: this broker's metadata may be old. It is
    looked at here so that a leader does not propose a fenced broker with every fetch of it, to be
    rejected each time (KIP-841).

    Source:  Partition.maybeExpandIsr.
    """
    state = partition.isr_state
    if not isinstance(state, CommittedPartitionState) or replica_id in state.isr:
        return
    # KIP-704: before the leader has reported its recovery, no replica may rely on its log.
    if must_report_recovery(partition):
        report_recovery(partition, now_ms)
        return
    if is_replica_isr_eligible(partition, replica_id) and is_follower_in_sync(
        partition, partition.remote_replicas[replica_id]
    ):
        submit(partition, prepare_isr_expand(partition, state, replica_id), now_ms)


@step
def is_replica_isr_eligible(partition: Partition, replica_id: int) -> bool:
    """A replica may join the ISR, by the metadata of this broker.

    A fenced or stopping broker cannot lead, so it must not count for min.insync.replicas (KIP-841).
    A fetch of another broker epoch is of an incarnation that has lost its log since, or of one that
    the metadata does not show yet (KIP-903).

    Source:  Partition.isReplicaIsrEligible.
    """
    replica = partition.remote_replicas[replica_id]
    return partition.context.view.is_eligible(replica_id, replica.broker_epoch)


@step
def is_follower_in_sync(partition: Partition, replica: ReplicaState) -> bool:
    """A replica holds everything that is committed; its lag in time does not count.

    The high watermark of a new leader may be old. Records below the start of the leader epoch may
    have been committed by the previous leader, so the replica must have reached that start.

    Source:  Partition.isFollowerInSync.
    """
    start = partition.leader_epoch_start_offset
    end = replica.log_end_offset
    return start is not None and end >= partition.high_watermark and end >= start


@step
def prepare_isr_expand(
    partition: Partition, state: CommittedPartitionState, replica_id: int
) -> PendingExpandIsr:
    """The ISR with one more replica.

    Source:  Partition.prepareIsrExpand.
    """
    item = _item(partition, (*state.isr, replica_id), state.recovery_state)
    return PendingExpandIsr(item, state, replica_id)


# --- shrink -----------------------------------------------------------------------------------


def is_isr_at_rest(partition: Partition) -> bool:
    """The periodic task has nothing to do until this partition changes: every member of the ISR
    holds the whole log, whenever it fetched last, and no change is under way.

    Otherwise each task would look at every partition of a broker, and clusters at rest are most of
    what is simulated. ``Partition.on_change`` and ``submit`` note those that are to be looked at.
    """
    if not partition.is_leader:
        return True
    state, replicas = partition.isr_state, partition.remote_replicas
    if not isinstance(state, CommittedPartitionState) or partition.acknowledged is not None:
        return False
    if state.recovery_state == RECOVERING:
        return False
    end, leader = partition.log_end_offset, partition.broker_id
    return all(
        member == leader or (member in replicas and replicas[member].log_end_offset == end)
        for member in state.isr
    )


def run_isr_task(partition: Partition, now_ms: int) -> None:
    """Run the periodic task: repeat, report the recovery, or shrink the ISR."""
    if not partition.is_leader:
        return
    resend_acknowledged(partition, now_ms)
    if must_report_recovery(partition):
        report_recovery(partition, now_ms)
    else:
        maybe_shrink_isr(partition, now_ms)


@step
def maybe_shrink_isr(partition: Partition, now_ms: int) -> None:
    """Propose to remove all members that have not caught up in time, in one change.

    Source:  Partition.maybeShrinkIsr.
    """
    state = partition.isr_state
    if not isinstance(state, CommittedPartitionState):
        return
    out_of_sync = out_of_sync_replicas(partition, now_ms)
    if out_of_sync:
        submit(partition, prepare_isr_shrink(partition, state, out_of_sync), now_ms)


@step
def out_of_sync_replicas(partition: Partition, now_ms: int) -> tuple[int, ...]:
    """The members that lack records and have lacked them for longer than the allowed lag.

    A member that holds the whole log stays however long it is silent: if its broker is gone, the
    controller fences that, and with it the member leaves the ISR.

    Source:  Partition.getOutOfSyncReplicas, isFollowerOutOfSync.
    """
    end = partition.log_end_offset
    max_lag_ms = partition.context.config.replica_lag_time_max_ms
    return tuple(
        member
        for member in partition.isr_state.isr
        if member != partition.broker_id
        and not (
            (replica := partition.remote_replicas.get(member)) is not None
            and replica.is_caught_up(end, now_ms, max_lag_ms)
        )
    )


@step
def prepare_isr_shrink(
    partition: Partition, state: CommittedPartitionState, out_of_sync: tuple[int, ...]
) -> PendingShrinkIsr:
    """The ISR without these members.

    Source:  Partition.prepareIsrShrink.
    """
    isr = tuple(member for member in state.isr if member not in out_of_sync)
    return PendingShrinkIsr(_item(partition, isr, state.recovery_state), state, out_of_sync)


# --- recovery from an unclean election --------------------------------------------------------


@step
def must_report_recovery(partition: Partition) -> bool:
    """The leader takes no replica into the ISR before it has reported its recovery."""
    return (
        partition.rules.unclean_leader_recovers is UncleanRecovery.REPORTED
        and partition.isr_state.recovery_state == RECOVERING
    )


def report_recovery(partition: Partition, now_ms: int) -> None:
    """Propose the ISR as it is, as recovered.

    Source:  KIP-704: an AlterPartition whose ISR is the leader alone, or larger.
    """
    state = partition.isr_state
    if isinstance(state, CommittedPartitionState):
        item = _item(partition, state.isr, RECOVERED)
        submit(partition, PendingRecovery(item, state), now_ms)


# --- AlterPartition ---------------------------------------------------------------------------


def _item(
    partition: Partition, members: tuple[int, ...], recovery_state: int
) -> AlterPartitionItem:
    """The item with the broker epochs of the members' last fetches (KIP-903).

    The controller compares them with its registrations: an epoch that the metadata of this broker
    shows would pass there even if the replica has restarted since its last fetch.
    """

    def epoch_of(member: int) -> int:
        if member == partition.broker_id:
            return partition.context.view.broker_epoch
        replica = partition.remote_replicas.get(member)
        fetched_with = None if replica is None else replica.broker_epoch
        return NO_BROKER_EPOCH if fetched_with is None else fetched_with

    return AlterPartitionItem(
        topic=partition.topic,
        topic_id=partition.topic_id,
        partition=partition.partition,
        leader=partition.broker_id,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=tuple((member, epoch_of(member)) for member in sorted(members)),
        recovery_state=recovery_state,
    )


def submit(partition: Partition, pending: Pending, now_ms: int) -> None:
    """Propose a change to the controller."""
    # Before the item leaves: the controller may commit it at any time from then on, and the high
    # watermark must not pass a replica that is in the ISR by then.
    partition.isr_state = pending
    partition.context.isr_unchecked[partition] = None
    trace(partition, "isr_pending")
    _submit_item(partition, pending.sent, now_ms)


def _submit_item(partition: Partition, item: AlterPartitionItem, now_ms: int) -> None:
    if partition.in_flight is None:
        partition.in_flight = item
    on_complete = partial(_on_alter_partition, partition, item)
    partition.context.alter_partition_manager.submit(item, on_complete, now_ms)


def resend_acknowledged(partition: Partition, now_ms: int) -> None:
    """Repeat a change that the controller acknowledged and of which no metadata came (KIP-497).

    The controller may have failed before it decided, or decided against it. If it has committed the
    change after all, the partition epoch of the repetition is out of date and nothing happens.
    """
    pending = partition.acknowledged
    if pending is None or pending is not partition.isr_state or partition.in_flight is not None:
        return
    partition.acknowledged = None
    _submit_item(partition, pending.sent, now_ms)


def _on_alter_partition(
    partition: Partition, item: AlterPartitionItem, result: AlterPartitionResult, now_ms: int
) -> None:
    """Take the result of an item.

    Source:  Partition.submitAlterPartition, handleAlterPartitionUpdate.
    """
    if partition.in_flight is item:
        partition.in_flight = None
    # By equality, not by identity: a retry of the same proposal is an equal item, and the response
    # to the first of them is as good.
    pending = partition.isr_state
    # Metadata has replaced the change, or this broker has lost the partition.
    if isinstance(pending, CommittedPartitionState) or pending.sent != item:
        return
    if result.error != ErrorCode.NONE:
        _on_alter_partition_error(partition, pending, result.error, now_ms)
        return
    if result.acknowledged:
        partition.acknowledged = pending
        return
    # The metadata of a later change has overtaken this response. Its ISR is older than the one that
    # this leader has by now: with it the high watermark would wait for fewer replicas than it must.
    if (
        result.leader_epoch != partition.leader_epoch
        or result.partition_epoch < partition.partition_epoch
    ):
        partition.failed_isr_updates += 1
        return
    partition.on_change()
    # What the controller has committed, not what was proposed: they differ where the change has
    # completed a reassignment.
    isr = tuple(sorted(set(result.isr)))
    partition.isr_state = CommittedPartitionState(isr, result.recovery_state)
    partition.partition_epoch = result.partition_epoch
    if isinstance(pending, PendingExpandIsr):
        partition.isr_expands += 1
    elif isinstance(pending, PendingShrinkIsr):
        partition.isr_shrinks += 1
    trace(partition, "isr_commit")
    after_isr_commit(partition, pending, now_ms)


@step
def after_isr_commit(partition: Partition, pending: Pending, now_ms: int) -> None:
    """Raise the high watermark: a member that held it back may have left the ISR (KAFKA-13091)."""
    if maybe_increment_leader_hw(partition, now_ms):
        partition.context.delayed.check_and_complete_all(partition.key, now_ms)


def _on_alter_partition_error(
    partition: Partition, pending: Pending, error: ErrorCode, now_ms: int
) -> None:
    """Revert, wait for metadata, or retry.

    Source:  Partition.handleAlterPartitionError.
    """
    partition.failed_isr_updates += 1
    if error in REVERTS:
        partition.isr_state = pending.last_committed
        trace(partition, "isr_revert", error=error.name)
        reason = REVERTS[error]
    elif error in WAITS_FOR_METADATA:
        trace(partition, "isr_pending", error=error.name)  # until metadata comes, which may be old
        if error == ErrorCode.INVALID_UPDATE_VERSION:
            partition.overtaken = pending.sent
        reason = WAITS_FOR_METADATA[error]
    else:
        reason = "retried at once"
    partition.context.effects.append(
        AlterPartitionFailed(
            topic=partition.topic,
            partition=partition.partition,
            isr=pending.sent.members,
            error=error,
            reason=reason,
        )
    )
    if error not in REVERTS and error not in WAITS_FOR_METADATA:
        _submit_item(partition, pending.sent, now_ms)
