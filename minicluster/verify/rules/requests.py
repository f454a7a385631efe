"""Requests to controllers and brokers, and metadata as brokers apply it (KIP-497, KIP-631)."""

from __future__ import annotations

from minicluster.verify.histories.applied_metadata import (
    ActionOfLeader,
    AppliedState,
    DeletedReplica,
    KeptReplica,
)
from minicluster.verify.histories.requests import (
    AcceptedMember,
    AlterPartition,
    EndedRecovery,
    FetchedPartition,
    HandledRequest,
    RequestedChange,
    RequestedElection,
    RevertedIsr,
    TopicRequest,
    Unfencing,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.memberships import no_unclean_election_beside_a_clean_candidate
from minicluster.verify.rules.rule import CASE, Findings, broken, ids, rule
from minicluster.verify.rules.topics import an_operation_is_written_as_a_whole

_FINAL_REJECTIONS = ("INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED")
_WITH_BROKER_EPOCH = (
    "AlterPartition",
    "BrokerHeartbeat",
    "AllocateProducerIds",
    "AssignReplicasToDirs",
)
_MAY_REJECT_A_STALE_EPOCH = ("STALE_BROKER_EPOCH", "NOT_CONTROLLER", "REQUEST_TIMED_OUT")


# --- AlterPartition -------------------------------------------------------------------------------


@rule("A6", "A rejected AlterPartition writes nothing",
      source="KIP-497; ReplicationControlManager.alterPartition", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="AlterPartition gets INELIGIBLE_REPLICA for its partition, and has written a "
      "PartitionChange.",
      keeps="A change that was made gets NEW_LEADER_ELECTED; INELIGIBLE_REPLICA "
      "comes without a record, and reverts a change.")  # fmt: skip
def a_rejected_alter_partition_writes_nothing(alter: AlterPartition) -> Findings:
    """A rejected AlterPartition writes no record for its partition, and its leader gives up the
    change only for errors that mean a final rejection."""
    if not alter.is_rejected:
        return
    yield CASE
    whole = alter.error not in (None, "NONE")
    if alter.committed is not None or (whole and alter.records):
        yield broken(
            f"AlterPartition {alter.request} of broker {alter.broker} was rejected and wrote a "
            "record",
            broker=alter.broker,
        )


@a_rejected_alter_partition_writes_nothing.also
def _leaders_give_up_only_what_is_rejected(reverted: RevertedIsr) -> Findings:
    yield CASE
    if reverted.error not in _FINAL_REJECTIONS:
        yield broken(
            f"leader {reverted.broker} reverted to ISR {ids(reverted.isr)} on an error that is no "
            "final rejection",
            broker=reverted.broker,
        )


@rule("A7", "An accepted ISR names current incarnations",
      source="KIP-903; ReplicationControlManager.ineligibleReplicasForIsr",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="An accepted ISR names broker 2 with broker epoch 1, which is not its own.",
      keeps="An accepted ISR names broker 2 without an epoch (-1); its next "
      "incarnation comes after the record.")  # fmt: skip
def an_accepted_isr_names_current_incarnations(member: AcceptedMember) -> Findings:
    """Each member of an accepted ISR carries no broker epoch (-1) or the epoch that was registered
    right before the record."""
    yield CASE
    if member.broker_epoch not in (-1, member.registered_epoch):
        yield broken(
            f"broker {member.broker} was accepted into an ISR with broker epoch "
            f"{member.broker_epoch}, which is not the registered one",
            broker=member.broker,
        )


@rule("B4", "An accepted AlterPartition matches the current leader and epochs",
      source="KIP-497; ReplicationControlManager.validateAlterPartitionData",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="orders-0 is at partition epoch 0, and an AlterPartition with 1 is accepted.",
      keeps="A shrink with partition epoch 0 is accepted, and then an expansion "
      "with 1.")  # fmt: skip
def an_accepted_alter_partition_is_current(alter: AlterPartition) -> Findings:
    """The request comes from the current leader and carries the leader epoch, partition epoch and
    broker epoch that were current right before its record."""
    written = alter.committed
    if written is None or not alter.is_accepted or alter.error != "NONE":
        return
    yield CASE
    is_stale_broker = (
        alter.broker_epoch is not None
        and alter.registered_epoch is not None
        and alter.broker_epoch >= 0
        and alter.broker_epoch != alter.registered_epoch
    )
    if (
        alter.partition_epoch != written.old_partition_epoch
        or alter.leader_epoch != written.old_leader_epoch
        or alter.broker != written.before.leader
        or is_stale_broker
    ):
        yield broken(
            f"AlterPartition {alter.request} of broker {alter.broker} was accepted although its "
            "leader, leader epoch, partition epoch or broker epoch was not the current one",
            broker=alter.broker,
        )


@rule("B9", "AlterPartition elects no leader",
      source="KIP-497, KIP-455; ReplicationControlManager.alterPartition",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="An accepted AlterPartition writes ISR [2, 3] and leader 2.",
      keeps="A shrink is accepted, a snapshot takes its record from the log, and "
      "then an expansion.")  # fmt: skip
def alter_partition_elects_no_leader(change: RequestedChange) -> Findings:
    """The record of an accepted AlterPartition names another leader only if it completes a
    reassignment."""
    yield CASE
    step = change.partition
    if step.after.leader != step.before.leader and not step.ends_reassignment:
        yield broken(
            f"an AlterPartition made broker {step.after.leader} the leader (ISR "
            f"{ids(step.after.isr)}) without completing a reassignment",
            broker=step.after.leader,
        )


# --- other requests to the controller -------------------------------------------------------------


@no_unclean_election_beside_a_clean_candidate.also
def _a_preferred_election_is_clean(election: RequestedElection) -> Findings:
    step = election.partition
    if election.is_preferred:
        yield broken(
            f"the preferred election of request {election.request} elected broker "
            f"{step.after.leader} from outside the ISR {ids(step.before.isr)}",
            broker=step.after.leader,
        )


@rule("C6", "Only the leader's AlterPartition ends a recovery",
      source="KIP-704; ReplicationControlManager.alterPartition", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="A heartbeat of leader 2 writes the record that makes orders-0 RECOVERED.",
      keeps="The AlterPartition of leader 2 makes orders-0 RECOVERED.")  # fmt: skip
def only_the_leader_ends_a_recovery(recovery: EndedRecovery) -> Findings:
    """RECOVERING becomes RECOVERED only by an AlterPartition of the leader."""
    yield CASE
    # Where the controller died or resigned before it responded, no row says which request wrote
    # the record.
    if recovery.api is None:
        is_its_own = recovery.leader_waits
    else:
        is_its_own = recovery.api == "AlterPartition" and recovery.sender == recovery.leader
    if not is_its_own:
        yield broken(
            f"the recovery of leader {recovery.leader} ended without an AlterPartition of its own",
            broker=recovery.leader,
        )


@rule("D3", "A stale broker epoch is rejected",
      source="KIP-589, KIP-380; ClusterControlManager.checkBrokerEpoch", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="Broker 1 has epoch 5, and its heartbeat with epoch 1 gets NONE.",
      keeps="Broker 1 has epoch 5; a heartbeat with 1 gets STALE_BROKER_EPOCH, and "
      "one with 5 NONE.")  # fmt: skip
def a_stale_broker_epoch_is_rejected(request: HandledRequest) -> Findings:
    """A request whose broker epoch is not the registered one gets STALE_BROKER_EPOCH and writes
    nothing."""
    if request.api not in _WITH_BROKER_EPOCH or not request.answered:
        return
    epoch, registered = request.broker_epoch, request.registered_epoch
    if epoch is None or registered is None or epoch < 0 or epoch == registered:
        return
    yield CASE
    is_rejected = request.error is None or request.error in _MAY_REJECT_A_STALE_EPOCH
    if request.written is not None or not is_rejected:
        yield broken(
            f"request {request.request} of broker {request.sender} carried a stale broker epoch "
            "and was not rejected for it",
            broker=request.sender,
        )


@rule("E24", "A broker is unfenced only when it has caught up",
      source="KIP-631; BrokerHeartbeatManager.calculateNextBrokerState", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="Broker 1 registered at offset 2, and a heartbeat with metadata offset 1 unfences it.",
      keeps="Broker 1 registered at offset 2, and a heartbeat with metadata offset "
      "2 unfences it.")  # fmt: skip
def a_broker_is_unfenced_when_it_has_caught_up(unfencing: Unfencing) -> Findings:
    """A broker is unfenced by its own BrokerHeartbeat, whose metadata offset is at its registration
    or later."""
    yield CASE
    reached, registered = unfencing.caught_up_to, unfencing.registered_at
    is_behind = reached is not None and registered is not None and reached < registered
    is_its_own = unfencing.api == "BrokerHeartbeat" and unfencing.sender == unfencing.broker
    if is_behind or not is_its_own:
        yield broken(
            f"broker {unfencing.broker} was unfenced at metadata offset {reached}, before its "
            "registration, or not by its own BrokerHeartbeat",
            broker=unfencing.broker,
        )


@an_operation_is_written_as_a_whole.also
def _and_so_is_a_request(request: TopicRequest) -> Findings:
    if request.operations > 1:
        yield broken(
            f"request {request.request} of node {request.sender} wrote its records in more than "
            "one operation",
            broker=request.sender,
        )


@rule("E40", "Responses leave after the commit",
      source="KIP-631, KIP-595; QuorumController.ControllerWriteEvent", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="CreateTopics gets NONE while its record is not below the high watermark.",
      keeps="CreateTopics gets NOT_CONTROLLER before its record is committed, and "
      "NONE after it.")  # fmt: skip
def responses_leave_after_the_commit(request: HandledRequest) -> Findings:
    """A successful response is sent only after the records that the request wrote are committed."""
    if not request.answered or request.error != "NONE":
        return
    if request.written is None or request.high_watermark is None:
        return
    yield CASE
    if request.written >= request.high_watermark:
        yield broken(
            f"the response to request {request.request} was sent before its last record was "
            "committed",
            broker=request.sender,
        )


# --- metadata as brokers apply it -----------------------------------------------------------------


@rule("B5", "Each partition change adds one to the partition epoch",
      source="KIP-497; PartitionRegistration.merge", at_end=True, evidence=Evidence.TRACE,
      tables=("partition_event", "rpc"),
      breaks="The log has partition epoch 0, and leader 1 applies 1.",
      keeps="The response to an AlterPartition has the partition epoch 1 of its "
      "record; leader 1 has applied 0.")  # fmt: skip
def partition_epochs_are_those_of_the_log(applied: AppliedState) -> Findings:
    """The partition epoch that a broker applies, and that a leader receives in a response, is the
    epoch of a committed record, one above the epoch before."""
    yield CASE
    if applied.committed is None:
        yield broken(
            f"broker {applied.broker} applied a partition epoch that no record has",
            broker=applied.broker,
        )


@partition_epochs_are_those_of_the_log.also
def _and_so_are_those_in_responses(alter: AlterPartition) -> Findings:
    if alter.committed is None or alter.partition_error != 0:
        return
    if alter.new_partition_epoch not in (None, alter.committed.old_partition_epoch + 1):
        yield broken(
            f"the response to AlterPartition {alter.request} of broker {alter.broker} has another "
            "partition epoch than its record",
            broker=alter.broker,
        )


@rule("E15", "Each record that names a leader adds one to the leader epoch",
      source="KIP-497, KIP-631; PartitionRegistration.merge", at_end=True, evidence=Evidence.TRACE,
      tables=("partition_event", "rpc"),
      breaks="The log has leader epoch 1 at partition epoch 1, and broker 1 applies 0 there.",
      keeps="The log has leader epoch 1 at partition epoch 1, and broker 1 applies "
      "it.")  # fmt: skip
def leader_epochs_are_those_of_the_log(applied: AppliedState) -> Findings:
    """Brokers apply, and leaders receive, each partition state with the leader epoch that the log
    gives it: one more for each record that names a leader."""
    if applied.committed is None:
        return
    yield CASE
    if applied.leader_epoch not in (None, applied.committed.leader_epoch):
        yield broken(
            f"broker {applied.broker} applied leader epoch {applied.leader_epoch}, which is not "
            "that of the log",
            broker=applied.broker,
        )


@leader_epochs_are_those_of_the_log.also
def _and_so_are_the_leader_epochs_in_responses(alter: AlterPartition) -> Findings:
    if alter.committed is None or alter.partition_error != 0:
        return
    if alter.new_leader_epoch not in (None, alter.committed.leader_epoch):
        yield broken(
            f"the response to AlterPartition {alter.request} of broker {alter.broker} has another "
            "leader epoch than the log",
            broker=alter.broker,
        )


@rule("E36", "Brokers act as their metadata image has it",
      source="KAFKA-14296, KAFKA-13858; ReplicaManager.applyDelta", evidence=Evidence.TRACE,
      at_end=True, tables=("partition_event", "publish", "replica_log"),
      breaks="The log has leader 1, and broker 2 becomes leader.",
      keeps="Broker 1 has not published the image with leader 2, and leads by the "
      "one before.")  # fmt: skip
def brokers_act_as_their_image_has_it(applied: AppliedState) -> Findings:
    """A broker leads the partitions that its metadata makes it lead and no others, even while it
    shuts down, and its own epochs of a partition are at least those of its metadata."""
    if applied.committed is None or applied.kind == "isr_commit":
        return
    yield CASE
    shall_lead = applied.committed.after.leader == applied.broker
    if shall_lead != (applied.kind == "become_leader"):
        yield broken(
            f"broker {applied.broker} became leader or follower against the metadata",
            broker=applied.broker,
        )


@brokers_act_as_their_image_has_it.also
def _epochs_of_leaders_are_not_behind(action: ActionOfLeader) -> Findings:
    yield CASE
    image, epoch = action.image, action.leader_epoch
    if image.after.alive is not True or epoch is None:
        return
    if image.leader_epoch > epoch:
        yield broken(
            f"broker {action.broker} acts as leader of an epoch older than that of its own image",
            broker=action.broker,
        )
    if image.leader_epoch != epoch or image.after.leader != action.broker:
        return
    if action.partition_epoch is not None and image.partition_epoch > action.partition_epoch:
        yield broken(
            f"leader {action.broker} is at a partition epoch older than that of its own image",
            broker=action.broker,
        )


@rule("E37", "Brokers keep the replicas that are assigned to them, and no others",
      source="KAFKA-13127, KAFKA-14616; ReplicaManager.applyDelta, LogManager.isStrayKraftReplica",
      at_end=True, evidence=Evidence.TRACE, tables=("partition_event", "publish", "replica_log"),
      breaks="Broker 2 deletes its replica of orders-0, which its image assigns to it.",
      keeps="orders is deleted; broker 2 deletes its replica, and 3, whose image is "
      "older, has its own.")  # fmt: skip
def brokers_keep_the_replicas_assigned_to_them(deleted: DeletedReplica) -> Findings:
    """A broker deletes only replicas that its image does not assign to it, and keeps no replica
    that is not assigned."""
    yield CASE
    if deleted.is_assigned:
        yield broken(
            f"broker {deleted.broker} deleted a replica that is assigned to it",
            broker=deleted.broker,
        )


@brokers_keep_the_replicas_assigned_to_them.also
def _and_no_others(kept: KeptReplica) -> Findings:
    yield CASE
    if kept.was_told and not kept.is_assigned:
        yield broken(
            f"broker {kept.broker} kept a replica that is not assigned to it", broker=kept.broker
        )


# --- requests to brokers --------------------------------------------------------------------------


@rule("F15", "Fetches with another leader epoch are rejected",
      source="KIP-320, KAFKA-7395; Partition.localLogWithEpochOrThrow", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc", "partition_event"),
      breaks="The partition is at leader epoch 0, and a Fetch with 1 gets records.",
      keeps="The partition is at leader epoch 0; a Fetch with 1 gets an error, and "
      "one with 0 records.")  # fmt: skip
def fetches_with_another_leader_epoch_are_rejected(fetched: FetchedPartition) -> Findings:
    """A Fetch whose current leader epoch is not that of the partition where it is handled returns
    an error."""
    if fetched.error is None:
        return
    yield CASE
    if fetched.error == 0 and fetched.leader_epoch != fetched.own_epoch:
        yield broken(
            f"a Fetch of broker {fetched.sender} with another leader epoch was accepted (request "
            f"{fetched.request})",
            broker=fetched.sender,
        )
