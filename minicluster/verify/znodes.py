"""A cluster on ZooKeeper, as ZooKeeper's transaction log shows it; offsets are zxids.

subject   a znode: the controller's, the state of a partition, a topic; and a leader's write until
          its notification
keeps     nothing: a row of ``ZnodeLogReader`` has what was there before the write, who was alive by
          then, and who the controller was
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.values import Value
from minicluster.verify.histories.partitions import NO_LEADER
from minicluster.verify.histories.traced_run import History, Row, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence, Finding
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, ids, rule
from minicluster.zookeeper.log.columns import COLUMNS
from minicluster.zookeeper.log.reader import NOTIFIED_WITHIN_MS, Line, Named, ZnodeLogReader

Ids = tuple[int, ...]


class ZnodeState(Value):
    """The state znode of a partition."""

    leader: int
    leader_epoch: int
    isr: Ids
    recovery: int


class StateWrite:
    """The state znode of a partition is written; columns of ``znode_states``.

    Shapes:  before: None where the znode is new. by_leader: alone, below IBP 2.7-IV2;
             by_controller: by the session of the newest controller, which has the epoch
             newest_epoch. replicas: of the topic's znode, None where it has none. live: the brokers
             that are registered; noticed: those of them that the controller must have read, and
             that have lost no log directory; dead: members that are not registered, as it must have
             read. members_checked: its release rejects members that are not alive.
    """

    def __init__(self, row: Row) -> None:
        isr, isr_before = tuple(row["isr"]), row["p_isr"]
        self.after = ZnodeState(row["leader"], row["leader_epoch"], isr, row["rec"])
        self.before: ZnodeState | None = None
        if isr_before is not None:
            leader, epoch, recovery = row["p_leader"], row["p_leader_epoch"], row["p_rec"]
            self.before = ZnodeState(leader, epoch, tuple(isr_before), recovery)
        self.controller_epoch: int = row["controller_epoch"]
        self.newest_epoch: int = row["epoch"]
        self.by_controller: bool = row["of_controller"]
        self.by_leader: bool = row["of_leader"]
        self.replicas: Ids | None = row["replicas"]
        self.live: Ids = row["live"]
        self.noticed: Ids = row["noticed"]
        self.dead: Ids = row["dead"]
        self.recovery_supported: bool = row["recovery_supported"]
        self.members_checked: bool = row["members_checked"]

    def keeps_epoch(self, before: ZnodeState) -> bool:
        """The leader epoch stays, as in a write for the leader."""
        return self.after.leader_epoch == before.leader_epoch

    def gained(self, before: ZnodeState) -> Ids:
        """The replicas that enter the ISR."""
        return tuple(member for member in self.after.isr if member not in before.isr)

    def is_unclean(self, before: ZnodeState) -> bool:
        """It has a leader from outside the ISR."""
        return self.after.leader != NO_LEADER and self.after.leader not in before.isr


def said_of(table: str, row: Row) -> Said:
    """The outcomes of the rules about a row of the log."""
    match table, row["kind"]:
        case "znode_controllers", "Controller":
            yield from a_controller_epoch_has_one_writer(row["broker"], row["together"])
        case "znode_controllers", _:
            yield from _which_is_the_next(row["epoch"], row["p_epoch"], row["together"])
        case "znode_states", "Write":
            write = StateWrite(row)
            yield from a_deposed_controller_writes_no_state(write)
            yield from isr_members_are_replicas(write)
            yield from the_leader_is_in_the_isr_of_its_znode(write)
            if write.before is not None:
                for of_change in _OF_CHANGES:
                    yield from of_change(write, write.before)
        case "znode_topics", "Write" if not row["is_new"]:
            yield from topic_ids_do_not_change(row["topic"], row["topic_id"], row["p_topic_id"])
        case "znode_assignments", "Write" if row["p_adding"]:
            if not row["adding"] and not row["removing"] and row["isr"] is not None:
                yield from a_reassignment_ends_in_sync(row["p_adding"], row["replicas"], row["isr"])
        case "znode_notices", _:
            yield from the_controller_is_notified(row["offset"], row["until_ms"] - row["ms"])


class ZnodeLog:
    """A log of ZooKeeper, line by line as it grows, for the judge.

    Shapes:  members_checked and left_out as ``ZnodeLogReader`` has them.
    """

    def __init__(
        self,
        judge: Judge,
        protocol: InterBrokerProtocol,
        *,
        members_checked: bool = True,
        left_out: Iterable[str] = (),
    ) -> None:
        self._judge = judge
        self._reader = ZnodeLogReader(
            protocol, run=judge.run, members_checked=members_checked, left_out=left_out
        )

    def on_line(self, line: Line) -> list[Finding]:
        """Judge one line; returns what is new.

        Errors:  as ``ZnodeLogReader.take``.
        """
        return self._take(self._reader.take(line))

    def end(self, now_ms: int) -> list[Finding]:
        """The log has ended at a time; returns what is new."""
        return self._take(self._reader.end(now_ms))

    def _take(self, rows: Iterable[Named]) -> list[Finding]:
        for table, row in rows:
            _judge_row(self._judge, table, row)
        return self._judge.take_new()


def judge_znodes(run: TracedRun, judge: Judge) -> None:
    """Judge the whole log of a run on ZooKeeper."""
    for table, row in run.evidence.znodes:
        _judge_row(judge, table, row)


def _judge_row(judge: Judge, table: str, values: tuple[Any, ...]) -> None:
    row = dict(zip(COLUMNS[table], values, strict=True))
    judge.hear(said_of(table, row), row["offset"], row.get("topic", ""), row.get("part", -1))


@rule("K1", "A controller epoch has one writer",
      source="KAFKA-6082; KafkaZkClient.registerControllerAndIncrementControllerEpoch",
      evidence=Evidence.ZNODES,
      breaks="Broker 2 becomes the controller after epoch 1, with epoch 3.",
      keeps="Broker 2 creates /controller and sets /controller_epoch to 2 in one "
      "transaction.")  # fmt: skip
def a_controller_epoch_has_one_writer(broker: int, with_epoch: bool) -> Findings:
    """/controller is created in one transaction with the next epoch."""
    yield CASE
    if not with_epoch:
        yield broken(f"broker {broker} created /controller without an epoch", broker=broker)


@a_controller_epoch_has_one_writer.also
def _which_is_the_next(epoch: int, before: int, with_controller: bool) -> Findings:
    yield CASE
    if not with_controller or epoch != before + 1:
        yield broken(f"controller epoch {epoch} after {ids([before])}, or without /controller")


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
def leader_epochs_rise_by_one(write: StateWrite, before: ZnodeState) -> Findings:
    """A write keeps the leader epoch, or it raises it by one."""
    yield CASE
    epoch = write.after.leader_epoch
    if epoch not in (before.leader_epoch, before.leader_epoch + 1):
        yield broken(f"the leader epoch goes from {ids([before.leader_epoch])} to {epoch}")


@rule("K4", "A leader epoch has one leader",
      source="KIP-497; ReplicationUtils.updateLeaderAndIsr", evidence=Evidence.ZNODES,
      breaks="Leader 2 follows leader 1 in leader epoch 0.",
      keeps="Leader 2 follows leader 1 in leader epoch 1.")  # fmt: skip
def a_leader_epoch_has_one_leader(write: StateWrite, before: ZnodeState) -> Findings:
    """A write that keeps the leader epoch keeps the leader."""
    yield CASE
    leader = write.after.leader
    if write.keeps_epoch(before) and leader != before.leader:
        yield broken(
            f"leader {leader} follows {ids([before.leader])} in the same leader epoch "
            f"{before.leader_epoch}",
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
def an_unclean_election_needs_a_dead_isr(write: StateWrite, before: ZnodeState) -> Findings:
    """A leader from outside the ISR is elected only if no member is alive as far as the controller
    has read, and is the ISR alone."""
    if not write.is_unclean(before):
        return
    leader, isr = write.after.leader, write.after.isr
    alive = set(before.isr) & set(write.noticed)
    if alive == {before.leader} and isr == (leader,):
        # One that shuts down counts as gone when another broker comes or goes, and its request
        # (ControlledShutdown) leaves nothing in ZooKeeper: KafkaController.onReplicasBecomeOffline.
        yield exempt("the last leader, the only member that is alive, may be shutting down")
        return
    yield CASE
    if alive or isr != (leader,):
        yield broken(
            f"leader {leader} from outside the ISR {ids(before.isr)}, of which a member is alive, "
            f"or with the ISR {ids(isr)}",
            broker=leader,
        )


@rule("K8", "An unclean leader is recovering",
      source="KIP-704; LeaderAndIsr.newRecoveringLeaderAndIsr",
      evidence=Evidence.ZNODES,
      breaks="Broker 3 is elected uncleanly, and is not recovering.",
      keeps="Broker 3 stays recovering without a leader, and ends that with its "
      "first expansion.")  # fmt: skip
def an_unclean_leader_is_recovering(write: StateWrite, before: ZnodeState) -> Findings:
    """From IBP 3.2 on an unclean leader is recovering, until it changes its ISR."""
    recovery, leader = write.after.recovery, write.after.leader
    if write.is_unclean(before):
        yield CASE
        if write.recovery_supported and recovery == 0:
            yield broken(f"unclean leader {leader} is not recovering", broker=leader)
    elif before.recovery or recovery:
        yield CASE
        if recovery != before.recovery and (recovery or not write.keeps_epoch(before)):
            yield broken(f"the recovery state became {recovery} without a request of its leader")


@rule("K9", "Topic ids do not change",
      source="KIP-516, KAFKA-14190; ControllerContext.addTopicId",
      evidence=Evidence.ZNODES,
      breaks="The topic is set with another id.",
      keeps="The topic is deleted, and another one of its name has another id.")  # fmt: skip
def topic_ids_do_not_change(topic: str, topic_id: str | None, before: str | None) -> Findings:
    """The id of a topic stays as long as the topic."""
    yield CASE
    if before is not None and topic_id != before:
        yield broken(f"{topic} has another id than before")


@rule("K10", "Only leaders add members to an ISR",
      source="KIP-497; KafkaController.processAlterPartition",
      evidence=Evidence.ZNODES,
      breaks="The controller takes the ISR from [1, 2] to [1, 2, 3] in the next leader epoch.",
      keeps="The ISR goes from [1, 2] to [1, 2, 3] in one leader epoch.")  # fmt: skip
def only_leaders_add_members(write: StateWrite, before: ZnodeState) -> Findings:
    """The ISR gains members only in a write that keeps the leader epoch, as those for a leader do.
    An unclean election is the exception."""
    if write.is_unclean(before) or not write.gained(before):
        return
    yield CASE
    if not write.keeps_epoch(before):
        isr = ids(write.after.isr)
        yield broken(f"the controller took the ISR from {ids(before.isr)} to {isr}")


@rule("K11", "Only live replicas enter an ISR on ZooKeeper",
      source="KIP-841; KafkaController.tryProcessAlterPartition",
      evidence=Evidence.ZNODES,
      breaks="The controller has removed broker 3, which is dead, and the ISR becomes [1, 2, 3] "
      "again.",
      keeps="Broker 3 comes back, and the ISR becomes [1, 2, 3].")  # fmt: skip
def only_live_replicas_enter_an_isr(write: StateWrite, before: ZnodeState) -> Findings:
    """A member that joins the ISR is alive as far as the controller has read, from IBP 2.7-IV2 and
    release 3.3 on."""
    gained = write.gained(before)
    if not write.members_checked or not write.keeps_epoch(before) or not gained:
        return
    yield CASE
    if set(gained) & set(write.dead):
        isr, live = ids(write.after.isr), ids(write.live)
        yield broken(f"of the ISR {isr} some joined that are not among the live {live}")


@rule("K12", "A reassignment ends with its replicas in sync",
      source="KIP-455; KafkaController.isReassignmentComplete",
      evidence=Evidence.ZNODES,
      breaks="A reassignment adds replica 4, and ends with replicas [4, 1, 2] and ISR [1, 2, 3].",
      keeps="A reassignment that adds replica 4 is cancelled.")  # fmt: skip
def a_reassignment_ends_in_sync(added: Ids, replicas: Ids, isr: Ids) -> Findings:
    """A reassignment ends when all replicas that it adds are in the ISR."""
    yield CASE
    if (set(added) & set(replicas)) - set(isr):
        yield broken(f"the ISR {ids(isr)} lacks some of the added {ids(added)}")


@rule("K13", "The controller is notified of a leader's ISR",
      source="KIP-497; ZkAlterPartitionManager", evidence=Evidence.ZNODES,
      breaks="Below IBP 2.7-IV2 leader 1 writes its ISR, and notifies the controller 71 s later.",
      keeps="Below IBP 2.7-IV2 leader 1 writes its ISR, and notifies the controller "
      "69 s later.")  # fmt: skip
def the_controller_is_notified(zxid: int, waited_ms: int) -> Findings:
    """Below IBP 2.7-IV2 the controller is notified within 70 s of every ISR that a leader has
    written."""
    yield CASE
    if waited_ms > NOTIFIED_WITHIN_MS:
        yield broken(f"the write of zxid {zxid} was not notified of in {waited_ms} ms")


_OF_CHANGES = (
    leader_epochs_rise_by_one,
    a_leader_epoch_has_one_leader,
    an_unclean_election_needs_a_dead_isr,
    an_unclean_leader_is_recovering,
    only_leaders_add_members,
    only_live_replicas_enter_an_isr,
)
_RULES = (
    a_controller_epoch_has_one_writer,
    a_deposed_controller_writes_no_state,
    isr_members_are_replicas,
    the_leader_is_in_the_isr_of_its_znode,
    *_OF_CHANGES,
    topic_ids_do_not_change,
    a_reassignment_ends_in_sync,
    the_controller_is_notified,
)
HISTORY = History(yields=(), reads=(), fold=judge_znodes, rules=_RULES)
