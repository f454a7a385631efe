"""Active members and leaders: KIP-841, KIP-903, and what KIP-858 says of log directories."""

from __future__ import annotations

from minicluster.verify.histories.brokers import BrokerRecord, RegisteredDirectory, Registration
from minicluster.verify.histories.failed_directories import LeaderAfterFailure, LogAtEnd
from minicluster.verify.histories.memberships import (
    Election,
    FencedInside,
    IsrGrowth,
    LeaderTurnsInactive,
    LostDirectory,
    MemberTurnsInactive,
    NewIncarnationInside,
    StandingPartition,
    UncleanElection,
)
from minicluster.verify.model import FROM_3_3
from minicluster.verify.rules.partitions import each_replica_has_one_directory
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Broken, Findings, broken, ids, rule


@rule("A1", "Every ISR member is active",
      source="KIP-841; ReplicationControlManager.handleBrokerFenced",
      breaks="Broker 3 is fenced and stays in ISR [1, 2, 3].",
      keeps="Broker 3 is fenced and leaves the ISR in one operation; broker 1 is "
      "fenced as the last member, without a leader.")  # fmt: skip
def every_isr_member_is_active(standing: StandingPartition) -> Findings:
    """At the end of every operation each ISR member is registered, unfenced and not in controlled
    shutdown, except for the last member, which stays while there is no leader."""
    step, isr = standing.partition, standing.partition.after.isr
    is_promised = step.level >= FROM_3_3
    for _ in isr:
        yield CASE if is_promised else NOT_PROMISED
    if is_promised and not step.after.keeps_last_member:
        for member in standing.inactive:
            yield _inactive_member(member, isr)


@every_isr_member_is_active.also
def _or_leaves_the_isr(turned: MemberTurnsInactive) -> Findings:
    """A partition is looked at where it changes; here a broker changes, and the partition not."""
    step = turned.partition
    if step.level >= FROM_3_3 and not step.after.keeps_last_member:
        yield _inactive_member(turned.broker, step.after.isr)


def _inactive_member(member: int, isr: tuple[int, ...]) -> Broken:
    message = f"broker {member} is in the ISR {ids(isr)} although it is not active"
    return broken(message, broker=member)


@rule("A2", "The leader is active",
      source="KIP-841, KIP-631; PartitionChangeBuilder.electLeader",
      breaks="Broker 1 enters controlled shutdown and stays the leader, with ISR [1, 2].",
      keeps="Broker 1 enters controlled shutdown, and broker 2 leads ISR [2, 3] at "
      "the end of the operation.")  # fmt: skip
def the_leader_is_active(standing: StandingPartition) -> Findings:
    """At the end of every operation each leader is registered, unfenced and not in controlled
    shutdown, or there is no leader."""
    step = standing.partition
    if step.after.leader < 0:
        return
    if step.level < FROM_3_3:
        yield NOT_PROMISED
        return
    yield CASE
    if standing.leader_is_inactive:
        yield _inactive_leader(step.after.leader, step.after.isr)


@the_leader_is_active.also
def _or_leads_no_more(turned: LeaderTurnsInactive) -> Findings:
    """As above: the broker changes, and the partition does not."""
    step = turned.partition
    if step.level >= FROM_3_3:
        yield _inactive_leader(step.after.leader, step.after.isr)


def _inactive_leader(leader: int, isr: tuple[int, ...]) -> Broken:
    return broken(
        f"broker {leader} leads (ISR {ids(isr)}) although it is not active", broker=leader
    )


@rule("A3", "Only active replicas enter an ISR",
      source="KIP-841, KIP-903; ReplicationControlManager.ineligibleReplicasForIsr",
      breaks="Broker 3 enters ISR [1, 2, 3] one record before it is unfenced, in one operation.",
      keeps="Broker 3 enters ISR [1, 2, 3] one record after it is unfenced, in one "
      "operation.")  # fmt: skip
def only_active_replicas_enter_an_isr(growth: IsrGrowth) -> Findings:
    """A replica that a record adds to an ISR was active right before the record."""
    step = growth.partition
    is_promised = step.level >= FROM_3_3
    for _ in step.entering:
        yield CASE if is_promised else NOT_PROMISED
    # A cancelled reassignment may have to fall back on one inactive replica, without a leader.
    if is_promised and not step.after.keeps_last_member:
        for member in growth.inactive:
            yield broken(
                f"the ISR went from {ids(step.before.isr)} to {ids(step.after.isr)} while broker "
                f"{member} was not active",
                broker=member,
            )


@rule("A4", "A broker leaves ISRs before it is fenced and is unfenced before it is elected",
      source="KIP-841, KIP-631; ReplicationControlManager.handleBrokerFenced, "
      "handleBrokerUnfenced",
      breaks="Broker 3 is fenced and leaves the ISR one record later, in one operation.",
      keeps="Broker 3 leaves the ISR one record before it is fenced; broker 1, the "
      "last member, is elected one record after it is unfenced.")  # fmt: skip
def a_broker_leaves_isrs_before_it_is_fenced(record: BrokerRecord) -> Findings:
    """Every prefix of the log is safe: within an operation a broker leaves the ISRs before the
    record that fences it, and a broker is elected only after the record that unfences it."""
    # One case for each fencing, however many ISRs the broker is in.
    if record.flips_to_fenced:
        yield CASE if record.level >= FROM_3_3 else NOT_PROMISED


@a_broker_leaves_isrs_before_it_is_fenced.also
def _no_isr_has_it(fenced: FencedInside) -> Findings:
    step = fenced.partition
    if step.level >= FROM_3_3:
        message = f"broker {fenced.broker} was fenced while it was in the ISR {ids(step.after.isr)}"
        yield broken(message, broker=fenced.broker)


@a_broker_leaves_isrs_before_it_is_fenced.also
def _and_is_elected_after_it_is_unfenced(election: Election) -> Findings:
    step = election.partition
    if step.level >= FROM_3_3 and not election.is_active:
        message = f"broker {election.leader} was elected (ISR {ids(step.after.isr)}) before it was"
        yield broken(f"{message} active", broker=election.leader)


@rule("A8", "A new incarnation is in no ISR",
      source="KAFKA-18106, KIP-966; ReplicationControlManager.handleBrokerRegistered",
      breaks="Broker 3 registers a new incarnation and stays in ISR [1, 2, 3].",
      keeps="Broker 3 leaves the ISR before its new incarnation registers; broker 1 "
      "registers one as the last member of ISR [1], without a leader.")  # fmt: skip
def a_new_incarnation_is_in_no_isr(registration: Registration) -> Findings:
    """After a broker has registered as a new incarnation it is in no ISR and leads no partition,
    except for the last member, which stays while there is no leader. Kafka 3.x promises this only
    from 4.0-IV1 on, so a log whose release is not recorded is judged from there."""
    # One case for each registration, however many ISRs the broker was in.
    if registration.is_new_incarnation:
        is_promised = registration.level >= registration.leaves_from
        yield CASE if is_promised else NOT_PROMISED


@a_new_incarnation_is_in_no_isr.also
def _its_isrs_have_lost_it(inside: NewIncarnationInside) -> Findings:
    step = inside.partition
    if step.level >= inside.leaves_from:
        yield broken(
            f"broker {inside.broker} registered as a new incarnation and is in the ISR "
            f"{ids(step.after.isr)}",
            broker=inside.broker,
        )


@rule("C5", "An unclean election happens only without a clean candidate",
      source="KIP-704, KIP-106; PartitionChangeBuilder.electLeader",
      breaks="ISR [2] has no leader; broker 3 is elected uncleanly although broker 2 is active.",
      keeps="Broker 2 is elected uncleanly one record before broker 1 of ISR [1] is "
      "fenced, in one operation.")  # fmt: skip
def no_unclean_election_beside_a_clean_candidate(election: UncleanElection) -> Findings:
    """A leader from outside ISR and ELR is elected only if no member of the two is active with its
    log directory online, before and after the operation. With KIP-589 the log does not hold which
    replicas have failed, and nothing is promised."""
    step = election.partition
    # Below 3.3-IV3 controlled shutdown is not in the log, so nor is who was active.
    if step.level < FROM_3_3 or not election.failures_in_log:
        yield NOT_PROMISED
        return
    yield CASE
    for member in election.clean:
        yield broken(
            f"an unclean election although broker {member} of the ISR {ids(step.before.isr)} was "
            "active",
            broker=member,
        )


@rule("D1", "No ISR member is in an offline log directory",
      source="KIP-858, KIP-589; ReplicationControlManager.handleDirectoriesOffline, "
      "ineligibleReplicasForIsr",
      breaks="Directory A of broker 1 is recorded offline, and the replica in it stays in ISR [1, "
      "2].",
      keeps="The replica leaves the ISR as its directory fails; a leader with an "
      "old image proposes it again, which nobody promises.")  # fmt: skip
def no_isr_member_is_in_a_lost_directory(standing: StandingPartition) -> Findings:
    """When a log directory is recorded as offline, its replicas are in no ISR and lead no
    partition, except for the last member, which stays while there is no leader; a replica that is
    in no directory any more (DirectoryId.LOST) is out as well. A replica that a leader proposes
    again later is not promised: the controller does not check directories then, but where it
    creates, elects or moves it does. No running broker leads a partition whose log lies in a
    directory that failed longer ago than the timeout for it, or that it has found to be offline."""
    after = standing.partition.after
    for member, is_lost, joined_later in standing.directories:
        if joined_later:
            # A leader that applies the loss late may propose the replica once more.
            yield NOT_PROMISED
            continue
        yield CASE
        if is_lost and not after.keeps_last_member:
            yield _in_lost_directory(member, after.isr)


@no_isr_member_is_in_a_lost_directory.also
def _or_leaves_when_it_is_lost(lost: LostDirectory) -> Findings:
    yield _in_lost_directory(lost.broker, lost.partition.after.isr)


def _in_lost_directory(member: int, isr: tuple[int, ...]) -> Broken:
    message = f"broker {member} is in the ISR {ids(isr)} although its log directory is offline"
    return broken(message, broker=member)


@rule("D2", "An elected leader's log directory is online",
      source="KIP-858; ReplicationControlManager.LeaderAcceptor",
      breaks="Broker 1 is elected while the directory of its replica is offline.",
      keeps="Broker 2 is elected, and the directory of its replica is online.")  # fmt: skip
def an_elected_leaders_directory_is_online(election: Election) -> Findings:
    """The log directory in which an elected leader holds the partition is online."""
    yield CASE
    if not election.is_online:
        isr = ids(election.partition.after.isr)
        message = f"broker {election.leader} was elected (ISR {isr}) although its directory is"
        yield broken(f"{message} offline", broker=election.leader)


@each_replica_has_one_directory.also
def _each_directory_has_one_broker(directory: RegisteredDirectory) -> Findings:
    if directory.owner != directory.broker:
        yield broken(
            f"broker {directory.broker} registered a log directory of broker {directory.owner}",
            broker=directory.broker,
        )


@no_isr_member_is_in_a_lost_directory.also
def _nor_does_a_leader_write_to_one(leader: LeaderAfterFailure) -> Findings:
    """No record shows it: the broker itself leads on."""
    if leader.is_in_failed_directory:
        yield broken(
            f"broker {leader.broker} leads a partition in a directory of its own that has failed",
            broker=leader.broker,
        )


@no_isr_member_is_in_a_lost_directory.also
def _nor_is_a_leaders_log_in_one(log: LogAtEnd) -> Findings:
    """The disks show it."""
    if log.leads and not log.is_online:
        yield broken(
            f"broker {log.broker} leads a partition whose log lies in a directory that has failed",
            broker=log.broker,
        )
