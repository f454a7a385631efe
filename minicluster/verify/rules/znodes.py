"""A cluster on ZooKeeper, as ZooKeeper's transaction log shows it; offsets are zxids."""

from __future__ import annotations

from minicluster.verify.histories.partitions import NO_LEADER
from minicluster.verify.histories.znodes import (
    AssignmentWrite,
    ControllerCreated,
    ControllerEpoch,
    Notification,
    StateChange,
    StateWrite,
    TopicWrite,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, ids, rule
from minicluster.zookeeper.log.reader import NOTIFIED_WITHIN_MS


@rule("K1", "A controller epoch has one writer",
      source="KAFKA-6082; KafkaZkClient.registerControllerAndIncrementControllerEpoch",
      evidence=Evidence.ZNODES,
      breaks="Broker 2 becomes the controller after epoch 1, with epoch 3.",
      keeps="Broker 2 creates /controller and sets /controller_epoch to 2 in one "
      "transaction.")  # fmt: skip
def a_controller_epoch_has_one_writer(controller: ControllerCreated) -> Findings:
    """/controller is created in one transaction with the next epoch."""
    yield CASE
    if not controller.with_epoch:
        broker = controller.broker
        yield broken(f"broker {broker} created /controller without an epoch", broker=broker)


@a_controller_epoch_has_one_writer.also
def _which_is_the_next(epoch: ControllerEpoch) -> Findings:
    yield CASE
    if not epoch.with_controller or epoch.epoch != epoch.before + 1:
        after = ids([epoch.before])
        yield broken(f"controller epoch {epoch.epoch} after {after}, or without /controller")


@rule("K2", "A deposed controller writes no state",
      source="KAFKA-6082; KafkaZkClient.retryRequestsUntilConnected",
      evidence=Evidence.ZNODES,
      breaks="Broker 1 writes a state with epoch 1 while broker 2 is the controller of epoch 2.",
      keeps="Below IBP 2.7-IV2 leader 1 writes its state with the epoch that it has "
      "received.")  # fmt: skip
def a_deposed_controller_writes_no_state(write: StateWrite) -> Findings:
    """A state is written by the session of the newest controller and with its epoch, or below IBP
    2.7-IV2 by the leader."""
    yield CASE
    is_newest = write.by_controller and write.controller_epoch == write.newest_epoch
    if not write.by_leader and not is_newest:
        yield broken(
            f"written in controller epoch {write.controller_epoch} by a controller that another "
            "one has followed, or by none"
        )


@rule("K3", "Leader epochs rise by one with each decision of the controller",
      source="KIP-497; LeaderAndIsr.newLeaderAndIsr", evidence=Evidence.ZNODES,
      breaks="The leader epoch of orders-0 goes from 0 to 2.",
      keeps="A write keeps leader epoch 0, and the next has 1.")  # fmt: skip
def leader_epochs_rise_by_one(change: StateChange) -> Findings:
    """A write keeps the leader epoch, or it raises it by one."""
    yield CASE
    before, epoch = change.before.leader_epoch, change.after.leader_epoch
    if epoch not in (before, before + 1):
        yield broken(f"the leader epoch goes from {ids([before])} to {epoch}")


@rule("K4", "A leader epoch has one leader",
      source="KIP-497; ReplicationUtils.updateLeaderAndIsr", evidence=Evidence.ZNODES,
      breaks="Leader 2 follows leader 1 in leader epoch 0.",
      keeps="Leader 2 follows leader 1 in leader epoch 1.")  # fmt: skip
def a_leader_epoch_has_one_leader(change: StateChange) -> Findings:
    """A write that keeps the leader epoch keeps the leader."""
    yield CASE
    before, leader = change.before.leader, change.after.leader
    if change.keeps_epoch and leader != before:
        yield broken(
            f"leader {leader} follows {ids([before])} in the same leader epoch "
            f"{change.after.leader_epoch}",
            broker=leader,
        )


@rule("K5", "ISR members are replicas, each once",
      source="KIP-497; ReplicaStateMachine.doRemoveReplicasFromIsr",
      evidence=Evidence.ZNODES,
      breaks="The replicas are [1, 2, 3], and a state has ISR [1, 2, 4].",
      keeps="A reassignment adds replica 4, and a state has ISR [1, 2, 3, 4].")  # fmt: skip
def isr_members_are_replicas(write: StateWrite) -> Findings:
    """An ISR has a member, each once, and replicas of the partition only."""
    yield CASE
    isr, replicas = write.after.isr, write.replicas
    is_set = bool(isr) and len(set(isr)) == len(isr)
    if not is_set or (replicas is not None and not set(isr) <= set(replicas)):
        yield broken(f"ISR {ids(isr)} of the replicas {ids(replicas)}")


@rule("K6", "The leader is in the ISR of its znode",
      source="KIP-704; Election", evidence=Evidence.ZNODES,
      breaks="A state has leader 1 and ISR [2, 3].",
      keeps="A state has no leader and ISR [2, 3].")  # fmt: skip
def the_leader_is_in_the_isr_of_its_znode(write: StateWrite) -> Findings:
    """The leader is a member of the ISR, or there is no leader."""
    yield CASE
    leader, isr = write.after.leader, write.after.isr
    if leader != NO_LEADER and leader not in isr:
        yield broken(f"leader {leader} is not in the ISR {ids(isr)}", broker=leader)


@rule("K7", "An unclean election needs an ISR without a live member",
      source="KIP-106; PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection",
      evidence=Evidence.ZNODES,
      breaks="Broker 2 of ISR [1, 2] is alive, and broker 3 is elected.",
      keeps="No member of ISR [1] is alive, and broker 3 is elected with ISR [3].")  # fmt: skip
def an_unclean_election_needs_a_dead_isr(change: StateChange) -> Findings:
    """A leader from outside the ISR is elected only if no member is alive as far as the controller
    has read, and is the ISR alone."""
    if not change.is_unclean:
        return
    leader, before, isr = change.after.leader, change.before.isr, change.after.isr
    alive = set(before) & set(change.write.noticed)
    if alive == {change.before.leader} and isr == (leader,):
        # One that shuts down counts as gone when another broker comes or goes, and its request
        # (ControlledShutdown) leaves nothing in ZooKeeper: KafkaController.onReplicasBecomeOffline.
        yield exempt("the last leader, the only member that is alive, may be shutting down")
        return
    yield CASE
    if alive or isr != (leader,):
        yield broken(
            f"leader {leader} from outside the ISR {ids(before)}, of which a member is alive, or "
            f"with the ISR {ids(isr)}",
            broker=leader,
        )


@rule("K8", "An unclean leader is recovering",
      source="KIP-704; LeaderAndIsr.newRecoveringLeaderAndIsr",
      evidence=Evidence.ZNODES,
      breaks="Broker 3 is elected uncleanly, and is not recovering.",
      keeps="Broker 3 stays recovering without a leader, and ends that with its "
      "first expansion.")  # fmt: skip
def an_unclean_leader_is_recovering(change: StateChange) -> Findings:
    """From IBP 3.2 on an unclean leader is recovering, until it changes its ISR."""
    before, recovery, leader = change.before.recovery, change.after.recovery, change.after.leader
    if change.is_unclean:
        yield CASE
        if change.write.recovery_supported and recovery == 0:
            yield broken(f"unclean leader {leader} is not recovering", broker=leader)
    elif before or recovery:
        yield CASE
        if recovery != before and (recovery or not change.keeps_epoch):
            yield broken(f"the recovery state became {recovery} without a request of its leader")


@rule("K9", "Topic ids do not change",
      source="KIP-516, KAFKA-14190; ControllerContext.addTopicId",
      evidence=Evidence.ZNODES,
      breaks="The topic is set with another id.",
      keeps="The topic is deleted, and another one of its name has another id.")  # fmt: skip
def topic_ids_do_not_change(topic: TopicWrite) -> Findings:
    """The id of a topic stays as long as the topic."""
    if topic.is_new:
        return
    yield CASE
    if topic.id_before is not None and topic.topic_id != topic.id_before:
        yield broken(f"{topic.topic} has another id than before")


@rule("K10", "Only leaders add members to an ISR",
      source="KIP-497; KafkaController.processAlterPartition",
      evidence=Evidence.ZNODES,
      breaks="The controller takes the ISR from [1, 2] to [1, 2, 3] in the next leader epoch.",
      keeps="The ISR goes from [1, 2] to [1, 2, 3] in one leader epoch.")  # fmt: skip
def only_leaders_add_members(change: StateChange) -> Findings:
    """The ISR gains members only in a write that keeps the leader epoch, as those for a leader do.
    An unclean election is the exception."""
    if change.is_unclean or not change.gained:
        return
    yield CASE
    if not change.keeps_epoch:
        before, after = ids(change.before.isr), ids(change.after.isr)
        yield broken(f"the controller took the ISR from {before} to {after}")


@rule("K11", "Only live replicas enter an ISR on ZooKeeper",
      source="KIP-841; KafkaController.tryProcessAlterPartition",
      evidence=Evidence.ZNODES,
      breaks="The controller has removed broker 3, which is dead, and the ISR becomes [1, 2, 3] "
      "again.",
      keeps="Broker 3 comes back, and the ISR becomes [1, 2, 3].")  # fmt: skip
def only_live_replicas_enter_an_isr(change: StateChange) -> Findings:
    """A member that joins the ISR is alive as far as the controller has read, from IBP 2.7-IV2 and
    release 3.3 on."""
    write = change.write
    if not write.members_checked or not change.keeps_epoch or not change.gained:
        return
    yield CASE
    if set(change.gained) & set(write.dead):
        isr, live = ids(change.after.isr), ids(write.live)
        yield broken(f"of the ISR {isr} some joined that are not among the live {live}")


@rule("K12", "A reassignment ends with its replicas in sync",
      source="KIP-455; KafkaController.isReassignmentComplete",
      evidence=Evidence.ZNODES,
      breaks="A reassignment adds replica 4, and ends with replicas [4, 1, 2] and ISR [1, 2, 3].",
      keeps="A reassignment that adds replica 4 is cancelled.")  # fmt: skip
def a_reassignment_ends_in_sync(assignment: AssignmentWrite) -> Findings:
    """A reassignment ends when all replicas that it adds are in the ISR."""
    added, isr = assignment.adding_before, assignment.isr
    if not added or assignment.adding or assignment.removing or isr is None:
        return
    yield CASE
    if (set(added) & set(assignment.replicas)) - set(isr):
        yield broken(f"the ISR {ids(isr)} lacks some of the added {ids(added)}")


@rule("K13", "The controller is notified of a leader's ISR",
      source="KIP-497; ZkAlterPartitionManager", evidence=Evidence.ZNODES,
      breaks="Below IBP 2.7-IV2 leader 1 writes its ISR, and notifies the controller 71 s later.",
      keeps="Below IBP 2.7-IV2 leader 1 writes its ISR, and notifies the controller "
      "69 s later.")  # fmt: skip
def the_controller_is_notified(notification: Notification) -> Findings:
    """Below IBP 2.7-IV2 the controller is notified within 70 s of every ISR that a leader has
    written."""
    yield CASE
    if notification.waited_ms > NOTIFIED_WITHIN_MS:
        yield broken(
            f"the write of zxid {notification.zxid} was not notified of in "
            f"{notification.waited_ms} ms"
        )
