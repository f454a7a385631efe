"""Partitions in the committed log: leader, ISR, replicas, epochs, recovery, eligible leaders."""

from __future__ import annotations

from minicluster.verify.histories.partitions import (
    CHANGE,
    CLEAR_ELR,
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    REMOVE_TOPIC,
    Ids,
    PartitionState,
    PartitionStep,
)
from minicluster.verify.model import FROM_3_2, FROM_3_3, FROM_3_6
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Findings, broken, ids, rule


def _outside(members: tuple[int, ...], replicas: tuple[int, ...]) -> bool:
    return any(member not in replicas for member in members)


# --- recovery after an unclean election (KIP-704) -------------------------------------------------


@rule("C1", "A RECOVERING partition has one ISR member",
      source="KIP-704; PartitionChangeBuilder.electLeader",
      breaks="orders-0 is RECOVERING under leader 2, and its ISR becomes [2, 3].",
      keeps="Broker 2, elected uncleanly, is alone in the ISR of orders-0, which is "
      "RECOVERING.")  # fmt: skip
def a_recovering_partition_has_one_member(
    after: PartitionState, level: int, elr_on: bool
) -> Findings:
    """A RECOVERING partition has at most one ISR member, and none only with ELR and without a
    leader."""
    if after.recovery != RECOVERING:
        return
    if level < FROM_3_2:
        yield NOT_PROMISED
        return
    yield CASE
    may_be_empty = elr_on and after.leader == NO_LEADER
    if len(after.isr) > 1 or (not after.isr and not may_be_empty):
        yield broken(f"the partition is RECOVERING with ISR {ids(after.isr)}")


@rule("C2", "The ISR does not expand before the leader has recovered",
      source="KIP-704; ReplicationControlManager.validateAlterPartitionData",
      breaks="orders-0 is RECOVERING under leader 2, and its ISR becomes [2, 3].",
      keeps="orders-0 is RECOVERING; the record that makes its ISR [2, 3] makes it "
      "RECOVERED.")  # fmt: skip
def isr_does_not_expand_before_recovery(step: PartitionStep) -> Findings:
    """While a partition is RECOVERING its ISR does not grow, unless the same record makes it
    RECOVERED."""
    before, after = step.before, step.after
    if not step.is_change or before.recovery != RECOVERING:
        return
    if step.level < FROM_3_2:
        yield NOT_PROMISED
        return
    yield CASE
    # An empty ISR may regain its one member.
    if len(after.isr) > max(1, len(before.isr)) and after.recovery != RECOVERED:
        grown = f"from {ids(before.isr)} to {ids(after.isr)}"
        yield broken(f"the ISR grew {grown} while the partition is still RECOVERING")


@rule("C3", "Recovery begins with the election of a lone leader",
      source="KIP-704; PartitionChangeBuilder.electLeader",
      breaks="The ISR shrinks to [1] under the same leader, and the record makes the partition "
      "RECOVERING.",
      keeps="The record that elects broker 2 uncleanly, alone in the ISR, makes the "
      "partition RECOVERING.")  # fmt: skip
def recovery_begins_with_a_lone_leader(step: PartitionStep) -> Findings:
    """RECOVERED becomes RECOVERING only by a record that elects a leader and leaves it alone in the
    ISR."""
    if not step.is_change or step.sets.recovery != RECOVERING:
        return
    if step.before.recovery != RECOVERED:
        return
    if step.level < FROM_3_2:
        yield NOT_PROMISED
        return
    yield CASE
    leader = NO_LEADER if step.sets.leader is None else step.sets.leader
    if leader < 0 or step.after.isr != (leader,):
        yield broken(
            f"recovery begins with leader {leader} and ISR {ids(step.after.isr)}, not with a newly "
            "elected leader alone",
            broker=leader,
        )


@rule("C4", "An unclean election marks the partition RECOVERING",
      source="KIP-704; PartitionChangeBuilder.electLeader",
      breaks="Broker 2 is elected from outside ISR [1], and the partition stays RECOVERED.",
      keeps="A reassignment ends with its new member as leader, which is no unclean "
      "election; a later one marks the partition RECOVERING.")  # fmt: skip
def an_unclean_election_marks_the_partition(step: PartitionStep) -> Findings:
    """A leader elected from outside ISR and ELR is alone in the ISR, and the partition is
    RECOVERING."""
    if not step.is_unclean:
        return
    if step.level < FROM_3_2:
        yield NOT_PROMISED
        return
    yield CASE
    after = step.after
    if after.recovery != RECOVERING or after.isr != (after.leader,):
        yield broken(
            f"broker {after.leader} was elected from outside the ISR {ids(step.before.isr)}, and "
            f"the ISR is {ids(after.isr)} with recovery state {after.recovery}",
            broker=after.leader,
        )


# --- structure ------------------------------------------------------------------------------------


@rule(
    "E10",
    "The leader is in the ISR",
    source="KIP-497; PartitionRegistration",
    breaks="Leader 1 leaves the ISR, which becomes [2, 3], and still leads.",
    keeps="Leader 1 leaves the ISR, which becomes [2, 3], and the record elects broker 2.",
)
def the_leader_is_in_the_isr(step: PartitionStep) -> Findings:
    """The leader is a member of the ISR, or there is no leader."""
    if not step.leaves_a_state:
        return
    yield CASE
    leader, isr = step.after.leader, step.after.isr
    if leader != NO_LEADER and leader not in isr:
        yield broken(f"leader {leader} is not in the ISR {ids(isr)}", broker=leader)


@rule("E11", "ISR, adding and removing replicas are subsets of the replicas",
      source="KIP-455; PartitionRegistration, PartitionReassignmentReplicas",
      breaks="The replicas are [1, 2], and the ISR becomes [1, 2, 3].",
      keeps="A reassignment adds replica 3 and removes 2, and completes with "
      "replicas and ISR [1, 3].")  # fmt: skip
def isr_and_moving_replicas_are_replicas(step: PartitionStep) -> Findings:
    """ISR, adding and removing replicas are subsets of the replicas, the ISR has no member twice,
    and no replica is both adding and removing."""
    if not step.leaves_a_state:
        return
    yield CASE
    after = step.after
    isr, replicas, adding, removing = after.isr, after.replicas, after.adding, after.removing
    if _outside(isr, replicas) or len(set(isr)) != len(isr):
        yield broken(
            f"the ISR {ids(isr)} is no subset of the replicas {ids(replicas)}, or has a member "
            "twice"
        )
    if _outside((*adding, *removing), replicas):
        moving = ids((*adding, *removing))
        yield broken(f"adding and removing replicas {moving} are not all replicas {ids(replicas)}")
    if both := [member for member in dict.fromkeys(adding) if member in removing]:
        yield broken(
            f"replicas {ids(both)} are both adding and removing (a bug of Kafka 3.3-4.3: a "
            "reassignment that replaces another)"
        )


@rule(
    "E12",
    "An election stays possible",
    source="KIP-966; PartitionChangeBuilder.build",
    breaks="Eligible leader replicas are off, and the ISR becomes empty.",
    keeps="Eligible leader replicas are on; the ISR becomes empty, and the ELR is [1, 2].",
)
def an_election_stays_possible(step: PartitionStep) -> Findings:
    """Without ELR the ISR is never empty; with ELR an empty ISR leaves an eligible leader replica
    or a last known leader."""
    if not step.leaves_a_state:
        return
    yield CASE
    after = step.after
    if not after.isr and step.sets.isr is not None and not step.elr_on:
        yield broken("the ISR became empty although eligible leader replicas are off")
    if not step.elr_on or after.isr or after.elr or after.last_elr:
        return
    if step.kind == CLEAR_ELR:
        yield broken(
            "a ClearElrRecord removed the last candidates of a partition with an empty ISR (a bug "
            "of Kafka 4.0-4.3)"
        )
    else:
        yield broken("ISR, eligible leader replicas and last known leaders are all empty")


@rule("E13", "Eligible leader replicas are replicas outside the ISR",
      source="KIP-966; PartitionChangeBuilder.maybePopulateTargetElr",
      breaks="The ISR is [1, 2], and the ELR becomes [2, 3].",
      keeps="min.insync.replicas is 3, the ISR [1, 2], and the ELR becomes [3].")  # fmt: skip
def eligible_leaders_are_outside_the_isr(step: PartitionStep) -> Findings:
    """ELR and ISR are disjoint, ELR and last known leaders are replicas, and the ELR is empty while
    the ISR has min.insync.replicas members."""
    if not step.elr_on or not step.leaves_a_state:
        return
    isr, elr, last_elr = step.after.isr, step.after.elr, step.after.last_elr
    if elr or last_elr:
        yield CASE
        if any(member in isr for member in elr):
            yield broken(f"eligible leader replicas {ids(elr)} and ISR {ids(isr)} overlap")
        if _outside((*elr, *last_elr), step.after.replicas):
            yield broken(
                f"eligible or last known leaders {ids((*elr, *last_elr))} are not all replicas "
                f"{ids(step.after.replicas)} (Kafka 4.0-4.3 leaves them so when a reassignment "
                "completes)"
            )
    if not step.is_change or step.sets.isr is None or step.min_isr is None:
        return
    if len(isr) >= step.min_isr and elr:
        yield broken(
            f"eligible leader replicas {ids(elr)} remain although the ISR {ids(isr)} has reached "
            f"min.insync.replicas {step.min_isr}"
        )


@rule("E14", "Every PartitionChangeRecord changes something",
      source="PartitionChangeBuilder.changeRecordIsNoOp",
      breaks="The ISR is [1, 2, 3], and a PartitionChange sets it to [1, 2, 3].",
      keeps="A PartitionChange sets ISR [1] and no leader, both as they are: naming "
      "the leader raises the leader epoch.")  # fmt: skip
def every_change_changes_something(step: PartitionStep) -> Findings:
    """Without ELR a PartitionChangeRecord changes a field or names the leader again."""
    if not step.is_change or step.elr_on:
        return
    yield CASE
    if step.sets.leader is not None:  # naming the same leader again raises the leader epoch
        return
    if all(
        new is None or new == old for new, old in zip(step.sets, step.before.fields, strict=True)
    ):
        yield broken(f"the record changes nothing (ISR {ids(step.after.isr)})")


@rule("E16", "The leader epoch is bumped exactly when it must be",
      source="KAFKA-15021; PartitionChangeBuilder.triggerLeaderEpochBump…IfNeeded",
      breaks="The ISR shrinks to [1, 2], and the record names leader 1 again.",
      keeps="A shrink below 3.6-IV0 and the removal of a replica name the leader "
      "again; an expansion, and a shrink from 3.6-IV0 on, do not.")  # fmt: skip
def the_leader_epoch_rises_only_when_it_must(step: PartitionStep) -> Findings:
    """Expanding the ISR keeps the leader epoch, removing a replica bumps it, and shrinking the ISR
    bumps it only below 3.6-IV0."""
    if not step.is_change:
        return
    sets, before, after = step.sets, step.before, step.after
    # From 3.6-IV0 on the partition epoch alone fences the leader's old ISR (KAFKA-15021).
    shrink_needs_bump = step.level < FROM_3_6 and step.isr_shrinks
    if sets.isr is not None or sets.replicas is not None or step.names_leader_again:
        yield CASE
        needed = step.removes_replicas or shrink_needs_bump
        if step.names_leader_again and sets.leader >= 0 and not needed:
            yield broken(
                f"the record names leader {sets.leader} again (ISR {ids(before.isr)} to "
                f"{ids(after.isr)}), which bumps the leader epoch without a reason",
                broker=sets.leader,
            )
    if sets.leader is not None:
        return
    if step.removes_replicas:
        yield broken(
            f"the replicas changed from {ids(before.replicas)} to {ids(after.replicas)} without a "
            "leader epoch bump"
        )
    if shrink_needs_bump:
        yield broken(
            f"the ISR shrank from {ids(before.isr)} to {ids(after.isr)} without a leader epoch "
            "bump, which is needed below 3.6-IV0"
        )


@rule("E17", "A partition begins with its active replicas",
      source="KAFKA-13083; ReplicationControlManager.createTopic",
      breaks="Broker 3 is fenced, and a new partition has ISR [1, 2, 3].",
      keeps="Broker 3 is fenced; a new partition with replicas [3, 2, 1] has ISR "
      "[2, 1] and leader 2.")  # fmt: skip
def a_partition_begins_with_its_active_replicas(step: PartitionStep) -> Findings:
    """A new partition has leader epoch 0 and partition epoch 0, its ISR is the active part of its
    replicas, and the first ISR member leads."""
    if not step.creates:
        return
    if step.level < FROM_3_3:
        yield NOT_PROMISED
        return
    yield CASE
    leader, isr = step.after.leader, step.after.isr
    if step.leader_epoch != 0 or step.partition_epoch != 0 or not isr or leader != isr[0]:
        yield broken(
            f"a new partition begins with leader {leader} and ISR {ids(isr)}: its epochs are not "
            "0, or the leader is not the first ISR member",
            broker=leader,
        )


@a_partition_begins_with_its_active_replicas.also
def a_new_partition_has_its_active_replicas(step: PartitionStep, active: Ids) -> Findings:
    """Its ISR, beside the brokers."""
    if step.level < FROM_3_3:
        return
    for replica in step.after.replicas:
        if (replica in active) != (replica in step.after.isr):
            yield broken(
                f"the ISR {ids(step.after.isr)} of a new partition is not the active part of its "
                f"replicas: broker {replica} is wrong",
                broker=replica,
            )


@rule("E28", "A reassignment completes when its new replicas are in sync",
      source="KIP-455, KAFKA-15665; "
      "PartitionReassignmentReplicas.maybeCompleteReassignment",
      breaks="A reassignment from [1, 2] to [3, 2] completes with ISR [2], which lacks the adding "
      "replica 3.",
      keeps="A reassignment to [3, 2] completes with the adding replica 3 in the "
      "ISR; the next one is cancelled.")  # fmt: skip
def a_reassignment_completes_in_sync(step: PartitionStep) -> Findings:
    """When a reassignment completes, every adding replica that stays is in the ISR, before the
    completing record or after it."""
    if not step.is_change or not step.ends_reassignment:
        return
    yield CASE
    before, after = step.before, step.after
    # Those of a cancelled reassignment do not stay.
    joining = [replica for replica in dict.fromkeys(before.adding) if replica in after.replicas]
    if _outside(tuple(joining), (*before.isr, *after.isr)):
        yield broken(
            f"the reassignment completed although its adding replicas {ids(joining)} are not all "
            f"in the ISR {ids(after.isr)}"
        )


@rule("E26", "Partitions belong to live topics",
      source="ReplicationControlManager.replay(PartitionRecord)",
      breaks="orders is deleted, and a PartitionChange of orders-0 follows.",
      keeps="orders-0 is changed, and then orders is deleted.")  # fmt: skip
def partitions_belong_to_live_topics(step: PartitionStep) -> Findings:
    """No record creates or changes a partition of an unknown or deleted topic."""
    if not step.judged or step.kind not in (CHANGE, REMOVE_TOPIC):
        return
    yield CASE
    if not step.before.alive:
        yield broken("a record changes a partition that does not exist")


@rule("D5", "Each replica has one directory, each directory one broker",
      source="KIP-858; PartitionRegistration, ClusterControlManager.registerBroker",
      breaks="orders-0 has two replicas and one directory.",
      keeps="Broker 2 unregisters, and 3 registers its directory; broker 1 "
      "registers its own again as a new incarnation.")  # fmt: skip
def each_replica_has_one_directory(step: PartitionStep) -> Findings:
    """A partition has one directory per replica, and no directory belongs to two brokers."""
    if not step.leaves_a_state or not step.after.directories:
        return
    yield CASE
    replicas, directories = step.after.replicas, step.after.directories
    if len(directories) != len(replicas):
        yield broken(f"the replicas {ids(replicas)} have {len(directories)} directories")
