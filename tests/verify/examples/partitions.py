"""Examples of the rules in `partitions.py`."""

from __future__ import annotations

from minicluster.protocol import records as r
from minicluster.verify.rules.partitions import (
    a_partition_begins_with_its_active_replicas,
    a_reassignment_completes_in_sync,
    a_recovering_partition_has_one_member,
    an_election_stays_possible,
    an_unclean_election_marks_the_partition,
    each_replica_has_one_directory,
    eligible_leaders_are_outside_the_isr,
    every_change_changes_something,
    isr_and_moving_replicas_are_replicas,
    isr_does_not_expand_before_recovery,
    partitions_belong_to_live_topics,
    recovery_begins_with_a_lone_leader,
    the_leader_epoch_rises_only_when_it_must,
    the_leader_is_in_the_isr,
)
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.handwritten.log import (
    DIR_A,
    DIR_B,
    DIR_C,
    OTHER_TOPIC,
    RECOVERED,
    RECOVERING,
    TOPIC,
    V3_1,
    LogBuilder,
    change,
    cluster,
    on_directories,
    partition,
)


def leaderless(metadata_version: int = 30) -> LogBuilder:
    """orders-0 with ISR [1] and no leader: 2 and 3 left, then the last member was fenced."""
    log = cluster(mv=metadata_version)
    log.fence(2, change((1, 3)))
    log.fence(3, change((1,)))
    return log.fence(1, change(leader=-1))


@keeps(a_recovering_partition_has_one_member)
def recovering() -> LogBuilder:
    """Broker 2, elected uncleanly, is alone in the ISR of orders-0, which is RECOVERING."""
    log = leaderless().unfence(2)
    return log.op(change((2,), leader=2, recovery=RECOVERING))


@breaks(a_recovering_partition_has_one_member, isr_does_not_expand_before_recovery)
def c1_bad() -> LogBuilder:
    """orders-0 is RECOVERING under leader 2, and its ISR becomes [2, 3]."""
    return recovering().unfence(3).op(change((2, 3)))


@keeps(a_recovering_partition_has_one_member, isr_does_not_expand_before_recovery)
def c1_near() -> LogBuilder:
    """orders-0 is RECOVERING; the record that makes its ISR [2, 3] makes it RECOVERED."""
    return recovering().unfence(3).op(change((2, 3), recovery=RECOVERED))


@exempts(
    a_recovering_partition_has_one_member,
    isr_does_not_expand_before_recovery,
    recovery_begins_with_a_lone_leader,
    an_unclean_election_marks_the_partition,
    a_partition_begins_with_its_active_replicas,
)
def c1_near_before_3_2() -> LogBuilder:
    """Metadata version 3.1 promises nothing of recovery, nor of how a partition begins."""
    log = leaderless(V3_1).unfence(2).op(change((2,), leader=2, recovery=RECOVERING))
    return log.unfence(3).op(change((2, 3)))


@breaks(recovery_begins_with_a_lone_leader)
def c3_bad() -> LogBuilder:
    """The ISR shrinks to [1] under the same leader, and the record makes the partition
    RECOVERING."""
    return cluster().op(change((1,), recovery=RECOVERING))


@keeps(recovery_begins_with_a_lone_leader)
def c3_near() -> LogBuilder:
    """The record that elects broker 2 uncleanly, alone in the ISR, makes the partition
    RECOVERING."""
    return recovering()


@breaks(an_unclean_election_marks_the_partition)
def c4_bad() -> LogBuilder:
    """Broker 2 is elected from outside ISR [1], and the partition stays RECOVERED."""
    return leaderless().unfence(2).op(change((2,), leader=2))


@keeps(an_unclean_election_marks_the_partition)
def c4_near() -> LogBuilder:
    """A reassignment ends with its new member as leader, which is no unclean election; a later one
    marks the partition RECOVERING."""
    log = LogBuilder().brokers(1, 2, 3).topic(partition((1, 2)))
    log.op(change(replicas=(3, 2, 1), adding=(3,), removing=(1,)))
    log.op(change((2, 3), leader=3, replicas=(3, 2), adding=(), removing=()))
    log.fence(2, change((3,)))
    log.fence(3, change(leader=-1)).unfence(2)
    return log.op(change((2,), leader=2, recovery=RECOVERING))


@breaks(the_leader_is_in_the_isr)
def e10_bad() -> LogBuilder:
    """Leader 1 leaves the ISR, which becomes [2, 3], and still leads."""
    return cluster().op(change((2, 3)))


@keeps(the_leader_is_in_the_isr)
def e10_near() -> LogBuilder:
    """Leader 1 leaves the ISR, which becomes [2, 3], and the record elects broker 2."""
    return cluster().op(change((2, 3), leader=2))


@breaks(isr_and_moving_replicas_are_replicas)
def e11_bad() -> LogBuilder:
    """The replicas are [1, 2], and the ISR becomes [1, 2, 3]."""
    return LogBuilder().brokers(1, 2, 3).topic(partition((1, 2))).op(change((1, 2, 3)))


@breaks(isr_and_moving_replicas_are_replicas)
def e11_both() -> LogBuilder:
    """Replica 3 is both adding and removing."""
    return cluster().op(change(replicas=(1, 2, 3), adding=(3,), removing=(3,)))


@breaks(isr_and_moving_replicas_are_replicas)
def e11_elsewhere() -> LogBuilder:
    """The replicas are [1, 2], and 3 is an adding replica."""
    return LogBuilder().brokers(1, 2, 3).topic(partition((1, 2))).op(change(adding=(3,)))


@breaks(isr_and_moving_replicas_are_replicas)
def e11_twice() -> LogBuilder:
    """The ISR becomes [1, 2, 2]."""
    return cluster().op(change((1, 2, 2)))


@keeps(isr_and_moving_replicas_are_replicas)
def e11_near() -> LogBuilder:
    """A reassignment adds replica 3 and removes 2, and completes with replicas and ISR [1, 3]."""
    log = LogBuilder().brokers(1, 2, 3).topic(partition((1, 2)))
    log.op(change(replicas=(1, 3, 2), adding=(3,), removing=(2,)))
    return log.op(change((1, 3), replicas=(1, 3), adding=(), removing=(), leader=1))


@breaks(an_election_stays_possible)
def e12_bad() -> LogBuilder:
    """Eligible leader replicas are off, and the ISR becomes empty."""
    return cluster().op(change((), leader=-1))


@breaks(an_election_stays_possible)
def e12_elr_bad() -> LogBuilder:
    """Eligible leader replicas are on; ISR, ELR and last known leaders become empty."""
    return cluster(elr=True).fence(1).op(change((), leader=-1, elr=(), last_elr=()))


@breaks(an_election_stays_possible)
def e12_cleared() -> LogBuilder:
    """ClearElr removes the last candidates of a partition with an empty ISR, as Kafka itself writes
    it."""
    log = cluster(elr=True)
    log.op(change((), leader=-1, elr=(1,), last_elr=(1,)))
    return log.op(r.ClearElrRecord(topic_name="orders"))


@keeps(an_election_stays_possible)
def e12_near() -> LogBuilder:
    """Eligible leader replicas are on; the ISR becomes empty, and the ELR is [1, 2]."""
    log = cluster(elr=True)
    log.op(change((1, 2), elr=(3,)))
    log.op(r.ClearElrRecord(topic_name=""))
    return log.op(change((), leader=-1, elr=(1, 2), last_elr=(1,)))


@breaks(eligible_leaders_are_outside_the_isr)
def e13_bad() -> LogBuilder:
    """The ISR is [1, 2], and the ELR becomes [2, 3]."""
    return cluster(elr=True).op(change((1, 2), elr=(2, 3)))


@breaks(eligible_leaders_are_outside_the_isr)
def e13_replicas() -> LogBuilder:
    """The replicas are [1, 2], and the ELR becomes [3]."""
    log = LogBuilder(elr=True).brokers(1, 2, 3).topic(partition((1, 2)))
    return log.op(change((1,), elr=(3,)))


def _with_min_isr(count: int) -> LogBuilder:
    log = cluster(elr=True)
    config = r.ConfigRecord(
        resource_type=4, resource_name="", name="min.insync.replicas", value=str(count)
    )
    return log.op(config)


@breaks(eligible_leaders_are_outside_the_isr)
def e13_min_isr() -> LogBuilder:
    """min.insync.replicas is 2, the ISR [1, 2], and the ELR becomes [3]."""
    return _with_min_isr(2).op(change((1, 2), elr=(3,)))


@keeps(eligible_leaders_are_outside_the_isr)
def e13_near() -> LogBuilder:
    """min.insync.replicas is 3, the ISR [1, 2], and the ELR becomes [3]."""
    return _with_min_isr(3).op(change((1, 2), elr=(3,)))


@breaks(every_change_changes_something)
def e14_bad() -> LogBuilder:
    """The ISR is [1, 2, 3], and a PartitionChange sets it to [1, 2, 3]."""
    return cluster().op(change((1, 2, 3)))


@breaks(every_change_changes_something)
def e14_empty() -> LogBuilder:
    """A PartitionChange sets no field at all."""
    return cluster().op(change())


@keeps(every_change_changes_something)
def e14_near() -> LogBuilder:
    """A PartitionChange sets ISR [1] and no leader, both as they are: naming the leader raises the
    leader epoch."""
    return leaderless().op(change((1,), leader=-1))


@breaks(the_leader_epoch_rises_only_when_it_must)
def e16_bad() -> LogBuilder:
    """The ISR shrinks to [1, 2], and the record names leader 1 again."""
    return cluster().op(change((1, 2), leader=1))


@breaks(the_leader_epoch_rises_only_when_it_must)
def e16_expansion() -> LogBuilder:
    """The ISR grows from [1, 2] to [1, 2, 3], and the record names leader 1 again."""
    return cluster(mv=11).op(change((1, 2), leader=1)).op(change((1, 2, 3), leader=1))


@breaks(the_leader_epoch_rises_only_when_it_must)
def e16_removal() -> LogBuilder:
    """Replica 3 is removed, and the record names no leader."""
    return cluster().op(change((1, 2), replicas=(1, 2)))


@breaks(the_leader_epoch_rises_only_when_it_must)
def e16_old_shrink() -> LogBuilder:
    """Below 3.6-IV0 the ISR shrinks to [1, 2], and the record names no leader."""
    return cluster(mv=11).op(change((1, 2)))


@keeps(the_leader_epoch_rises_only_when_it_must)
def e16_near() -> LogBuilder:
    """A shrink below 3.6-IV0 and the removal of a replica name the leader again; an expansion, and
    a shrink from 3.6-IV0 on, do not."""
    log = cluster(mv=11).op(change((1, 2), leader=1)).op(change((1, 2, 3)))
    log.op(r.FeatureLevelRecord(name="metadata.version", feature_level=12))
    log.op(change((1, 2)))
    return log.op(change(replicas=(1, 2), leader=1))


@breaks(a_partition_begins_with_its_active_replicas)
def e17_bad() -> LogBuilder:
    """Broker 3 is fenced, and a new partition has ISR [1, 2, 3]."""
    return LogBuilder().brokers(1, 2).register(3).topic(partition((1, 2, 3), (1, 2, 3)))


@breaks(a_partition_begins_with_its_active_replicas)
def e17_order() -> LogBuilder:
    """A new partition has ISR [1, 2] and leader 2."""
    return LogBuilder().brokers(1, 2).topic(partition((1, 2), leader=2))


@breaks(a_partition_begins_with_its_active_replicas)
def e17_epoch() -> LogBuilder:
    """A new partition has leader epoch 1."""
    return LogBuilder().brokers(1, 2).topic(partition((1, 2), leader_epoch=1))


@breaks(a_partition_begins_with_its_active_replicas)
def e17_left_out() -> LogBuilder:
    """Brokers 1 and 2 are active, and a new partition on both has ISR [1]."""
    return LogBuilder().brokers(1, 2).topic(partition((1, 2), (1,)))


@keeps(a_partition_begins_with_its_active_replicas)
def e17_near() -> LogBuilder:
    """Broker 3 is fenced; a new partition with replicas [3, 2, 1] has ISR [2, 1] and leader 2."""
    return LogBuilder().brokers(1, 2).register(3).topic(partition((3, 2, 1), (2, 1)))


def _reassigning() -> LogBuilder:
    log = LogBuilder().brokers(1, 2, 3).topic(partition((1, 2)))
    return log.op(change(replicas=(3, 2, 1), adding=(3,), removing=(1,)))


@breaks(a_reassignment_completes_in_sync)
def e28_bad() -> LogBuilder:
    """A reassignment from [1, 2] to [3, 2] completes with ISR [2], which lacks the adding replica
    3."""
    return _reassigning().op(change((2,), replicas=(3, 2), adding=(), removing=(), leader=2))


@keeps(a_reassignment_completes_in_sync)
def e28_near() -> LogBuilder:
    """A reassignment to [3, 2] completes with the adding replica 3 in the ISR; the next one is
    cancelled."""
    log = _reassigning().op(change((2, 3), replicas=(3, 2), adding=(), removing=(), leader=3))
    log.op(change(replicas=(1, 3, 2), adding=(1,)))
    return log.op(change(replicas=(3, 2), adding=(), removing=(), leader=3))


@breaks(partitions_belong_to_live_topics)
def e26_bad() -> LogBuilder:
    """orders is deleted, and a PartitionChange of orders-0 follows."""
    return cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)).op(change((1, 2)))


@breaks(partitions_belong_to_live_topics)
def e26_unknown() -> LogBuilder:
    """A PartitionRecord names a topic that was never created."""
    return cluster().op(partition(topic_id=OTHER_TOPIC))


@breaks(partitions_belong_to_live_topics)
def e26_unknown_partition() -> LogBuilder:
    """A PartitionChange names orders-7, which was never created."""
    return cluster().op(change((1, 2), part=7))


@breaks(partitions_belong_to_live_topics)
def e26_removed_twice() -> LogBuilder:
    """orders is deleted twice."""
    deletion = r.RemoveTopicRecord(topic_id=TOPIC)
    return cluster().op(deletion).op(deletion)


@keeps(partitions_belong_to_live_topics)
def e26_near() -> LogBuilder:
    """orders-0 is changed, and then orders is deleted."""
    return cluster().op(change((1, 2))).op(r.RemoveTopicRecord(topic_id=TOPIC))


@breaks(each_replica_has_one_directory)
def d5_bad() -> LogBuilder:
    """orders-0 has two replicas and one directory."""
    return on_directories(directories=(DIR_A,))


@breaks(each_replica_has_one_directory)
def d5_two_owners() -> LogBuilder:
    """Broker 3 registers a log directory of broker 2."""
    return on_directories().register(3, log_dirs=(DIR_B,))


@keeps(each_replica_has_one_directory)
def d5_near() -> LogBuilder:
    """Broker 2 unregisters, and 3 registers its directory; broker 1 registers its own again as a
    new incarnation."""
    log = on_directories()
    log.op(change((1,)), r.UnregisterBrokerRecord(broker_id=2, broker_epoch=log.broker_epochs[2]))
    log.register(3, log_dirs=(DIR_B,))
    return log.register(1, incarnation=2, log_dirs=(DIR_A, DIR_C), before=[change(leader=-1)])
