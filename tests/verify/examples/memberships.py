"""Examples of the rules in `memberships.py`."""

from __future__ import annotations

from uuid import UUID

from minicluster.metadata.image import directory_id
from minicluster.protocol import records as r
from minicluster.verify.memberships import (
    a_broker_leaves_isrs_before_it_is_fenced,
    a_new_incarnation_is_in_no_isr,
    an_elected_leaders_directory_is_online,
    every_isr_member_is_active,
    no_isr_member_is_in_a_lost_directory,
    no_unclean_election_beside_a_clean_candidate,
    only_active_replicas_enter_an_isr,
    the_leader_is_active,
)
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.examples.partitions import leaderless
from tests.verify.handwritten.log import (
    DIR_A,
    DIR_B,
    DIR_C,
    OTHER_TOPIC,
    RECOVERING,
    TOPIC,
    V3_1,
    LogBuilder,
    change,
    cluster,
    on_directories,
    partition,
)


@breaks(every_isr_member_is_active)
def a1_bad() -> LogBuilder:
    """Broker 3 is fenced and stays in ISR [1, 2, 3]."""
    return cluster().fence(3)


@breaks(every_isr_member_is_active)
def a1_stays_bad_through_changes() -> LogBuilder:
    """Broker 3 is fenced in ISR [1, 2, 3], which then becomes [1, 3]: found once in each of the two
    states."""
    return cluster().fence(3).op(change((1, 3))).fence(3)


@keeps(every_isr_member_is_active)
def a1_near() -> LogBuilder:
    """Broker 3 is fenced and leaves the ISR in one operation; broker 1 is fenced as the last
    member, without a leader."""
    log = cluster()
    log.op(log.registration(3, fenced=1), change((1, 2)))
    log.fence(2, change((1,)))
    return log.fence(1, change(leader=-1))


@breaks(the_leader_is_active)
def a2_bad() -> LogBuilder:
    """Broker 1 enters controlled shutdown and stays the leader, with ISR [1, 2]."""
    log = cluster()
    return log.op(log.registration(1, shutdown=1), change((1, 2)))


@keeps(the_leader_is_active)
def a2_near() -> LogBuilder:
    """Broker 1 enters controlled shutdown, and broker 2 leads ISR [2, 3] at the end of the
    operation."""
    log = cluster()
    return log.op(log.registration(1, shutdown=1), change((2, 3), leader=2))


@breaks(only_active_replicas_enter_an_isr)
def a3_bad() -> LogBuilder:
    """Broker 3 enters ISR [1, 2, 3] one record before it is unfenced, in one operation."""
    log = cluster().fence(3, change((1, 2)))
    return log.op(change((1, 2, 3)), log.registration(3, fenced=-1))


@keeps(only_active_replicas_enter_an_isr)
def a3_near() -> LogBuilder:
    """Broker 3 enters ISR [1, 2, 3] one record after it is unfenced, in one operation."""
    log = cluster().fence(3, change((1, 2)))
    return log.op(log.registration(3, fenced=-1), change((1, 2, 3)))


@breaks(a_broker_leaves_isrs_before_it_is_fenced)
def a4_bad() -> LogBuilder:
    """Broker 3 is fenced and leaves the ISR one record later, in one operation."""
    log = cluster()
    return log.op(log.registration(3, fenced=1), change((1, 2)))


@breaks(a_broker_leaves_isrs_before_it_is_fenced)
def a4_elected_early() -> LogBuilder:
    """Broker 3, the last ISR member, is elected one record before it is unfenced, in one
    operation."""
    log = cluster().fence(1, change((2, 3), leader=2)).fence(2, change((3,), leader=3))
    log.fence(3, change(leader=-1))
    return log.op(change(leader=3), log.registration(3, fenced=-1))


@keeps(a_broker_leaves_isrs_before_it_is_fenced)
def a4_near() -> LogBuilder:
    """Broker 3 leaves the ISR one record before it is fenced; broker 1, the last member, is elected
    one record after it is unfenced."""
    log = cluster()
    log.op(change((1, 2)), log.registration(3, fenced=1))
    log.fence(2, change((1,))).fence(1, change(leader=-1))
    return log.op(log.registration(1, fenced=-1), change(leader=1))


@breaks(a_new_incarnation_is_in_no_isr)
def a8_bad() -> LogBuilder:
    """Broker 3 registers a new incarnation and stays in ISR [1, 2, 3]."""
    return cluster().register(3, incarnation=2)


@breaks(a_new_incarnation_is_in_no_isr)
def a8_later_change() -> LogBuilder:
    """The operation that registers a new incarnation of broker 3 writes ISR [1, 3], which still has
    it."""
    return cluster().register(3, incarnation=2, before=[change((1, 3))])


@keeps(a_new_incarnation_is_in_no_isr)
def a8_near() -> LogBuilder:
    """Broker 3 leaves the ISR before its new incarnation registers; broker 1 registers one as the
    last member of ISR [1], without a leader."""
    log = cluster()
    log.register(3, incarnation=2, before=[change((1, 2))])
    log.fence(2, change((1,))).fence(1, change(leader=-1))
    return log.register(1, incarnation=2)


@breaks(no_unclean_election_beside_a_clean_candidate)
def c5_bad() -> LogBuilder:
    """ISR [2] has no leader; broker 3 is elected uncleanly although broker 2 is active."""
    return cluster().op(change((2,), leader=-1)).op(change((3,), leader=3, recovery=RECOVERING))


@exempts(the_leader_is_active, no_unclean_election_beside_a_clean_candidate)
def c5_near_before_3_3() -> LogBuilder:
    """Metadata version 3.1 has no controlled shutdown, so nobody knows who was active."""
    return leaderless(V3_1).unfence(2).op(change((2,), leader=2, recovery=RECOVERING))


@keeps(no_unclean_election_beside_a_clean_candidate)
def c5_near() -> LogBuilder:
    """Broker 2 is elected uncleanly one record before broker 1 of ISR [1] is fenced, in one
    operation."""
    log = cluster().fence(2, change((1, 3))).fence(3, change((1,))).unfence(2)
    return log.fence(1, change((2,), leader=2, recovery=RECOVERING))


@keeps(no_unclean_election_beside_a_clean_candidate)
def c5_near_directory() -> LogBuilder:
    """Broker 1, the one ISR member, is active, and the directory of its replica is offline."""
    log = LogBuilder(mv=17).brokers(1, 2)
    directories = (directory_id.LOST, directory_id.UNASSIGNED)
    log.topic(partition((1, 2), (1,), directories=directories))
    return log.op(change((2,), leader=2, recovery=RECOVERING))


@keeps(no_unclean_election_beside_a_clean_candidate)
def c5_near_failing() -> LogBuilder:
    """The directory of broker 1, the one ISR member, fails one record after the unclean election,
    in one operation."""
    log = LogBuilder(mv=17).register(1, log_dirs=(DIR_A, DIR_B)).unfence(1).brokers(2)
    log.topic(partition((1, 2), (1,), directories=(DIR_A, directory_id.UNASSIGNED)))
    failure = r.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=log.broker_epochs[1], log_dirs=(DIR_B,)
    )
    return log.op(change((2,), leader=2, recovery=RECOVERING), failure)


@keeps(no_unclean_election_beside_a_clean_candidate)
def c5_near_later() -> LogBuilder:
    """Broker 2 of ISR [2] is fenced when 3 is elected uncleanly, and unfenced by another operation
    of the same batch."""
    log = cluster().op(change((2,), leader=2)).fence(2, change((2,), leader=-1))
    elected = change((3,), leader=3, recovery=RECOVERING)
    return log.op(elected, log.registration(2, fenced=-1))


def _offline(log: LogBuilder, *changes: r.PartitionChangeRecord) -> LogBuilder:
    """Directory A of broker 1 fails."""
    lost = r.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=log.broker_epochs[1], log_dirs=(DIR_C,)
    )
    return log.op(lost, *changes)


@breaks(no_isr_member_is_in_a_lost_directory)
def d1_bad() -> LogBuilder:
    """Directory A of broker 1 is recorded offline, and the replica in it stays in ISR [1, 2]."""
    return _offline(on_directories())


@breaks(no_isr_member_is_in_a_lost_directory)
def d1_stays() -> LogBuilder:
    """Directory A of broker 1 is recorded offline; ISR [1, 2] is written once more, which makes the
    replica no newcomer."""
    log = _offline(on_directories())
    return log.op(change((1, 2)))


def _moved(directory: UUID, isr: tuple[int, ...] | None = None) -> r.PartitionChangeRecord:
    """AssignReplicasToDirs puts orders-0 of broker 1 into a directory."""
    leader = -2 if isr is None or 1 in isr else isr[0]
    return r.PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC, isr=isr, leader=leader, directories=(directory, DIR_B)
    )


@breaks(no_isr_member_is_in_a_lost_directory)
def d1_kept_in_lost() -> LogBuilder:
    """Broker 1 reports that the directory of its replica is lost, and the replica stays in ISR [1,
    2]."""
    return on_directories().op(_moved(directory_id.LOST))


@breaks(no_isr_member_is_in_a_lost_directory)
def d1_moved_into_lost() -> LogBuilder:
    """Directory A of broker 1 has failed; its replica, in sync in directory C, is moved into A."""
    log = _offline(on_directories(), change((2,), leader=2))
    log.op(_moved(DIR_C)).op(change((1, 2)))
    return log.op(_moved(DIR_A))


@breaks(no_isr_member_is_in_a_lost_directory)
def d1_created_in_lost() -> LogBuilder:
    """Directory A of broker 1 has failed, and a new partition begins with a member in it."""
    return _offline(on_directories(), change((2,), leader=2)).topic(
        partition((1, 2), directories=(DIR_A, DIR_B), topic_id=OTHER_TOPIC),
        name="other",
        topic_id=OTHER_TOPIC,
    )


@breaks(no_isr_member_is_in_a_lost_directory)
def d1_elected_in_lost() -> LogBuilder:
    """Broker 1 has lost the directory of its replica, and the controller itself elects it, with ISR
    [1]."""
    log = on_directories().op(_moved(directory_id.LOST, isr=(2,)))
    return log.op(change((1,), leader=1, recovery=1))


@keeps(no_isr_member_is_in_a_lost_directory)
def d1_joins_again() -> LogBuilder:
    """The replica leaves the ISR as its directory fails; a leader with an old image proposes it
    again, which nobody promises."""
    log = _offline(on_directories(), change((2,), leader=2))
    return log.op(change((2, 1))).op(change((1, 2)))


@breaks(no_isr_member_is_in_a_lost_directory)
def d1_lost_again() -> LogBuilder:
    """The replica joined late, which nobody promises; its directory comes back, and fails once
    more."""
    log = d1_joins_again()
    epoch = log.broker_epochs[1]
    log.register(1, epoch=epoch, fenced=False, log_dirs=(DIR_A, DIR_C))
    return _offline(log)


@keeps(no_isr_member_is_in_a_lost_directory)
def d1_near() -> LogBuilder:
    """Directory A of broker 1 fails and its replica leaves the ISR; a new topic of broker 1 is in
    directory C."""
    log = _offline(on_directories(), change((2,), leader=2))
    log.topic(
        partition((1,), directories=(DIR_C,), topic_id=OTHER_TOPIC),
        name="other",
        topic_id=OTHER_TOPIC,
    )
    return log


@keeps(no_isr_member_is_in_a_lost_directory)
def d1_lost_near() -> LogBuilder:
    """The replica leaves the ISR as its directory is lost, and only a leader with an old image
    proposes it."""
    return on_directories().op(_moved(directory_id.LOST, isr=(2,))).op(change((2, 1)))


@keeps(no_isr_member_is_in_a_lost_directory)
def d1_moved_near() -> LogBuilder:
    """The replica of broker 1 is moved out of directory A, which then fails."""
    return _offline(on_directories().op(_moved(DIR_C)))


@breaks(an_elected_leaders_directory_is_online)
def d2_bad() -> LogBuilder:
    """Broker 1 is elected while the directory of its replica is offline."""
    log = _offline(on_directories(), change((2,), leader=2))
    return log.op(change((1,), leader=1, recovery=1))


@keeps(an_elected_leaders_directory_is_online)
def d2_near() -> LogBuilder:
    """Broker 2 is elected, and the directory of its replica is online."""
    return on_directories().op(change((1, 2), leader=2))
