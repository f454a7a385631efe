"""Members of ISRs, and leaders, beside their brokers: KIP-841, KIP-903, KIP-858 of log directories.

Every prefix of a log is judged by some rules (A3, A4, D2), others hold once an operation is over
(A1, A2, A8, C1, C5, D1): fencing writes the ISR changes first, controlled shutdown writes them
last. Many partitions make the same changes beside the same brokers: those are asked about once.

subject   the partitions of a log, and the brokers: each record that changes one, the end of each
          operation
keeps     by partition the step at which it stands since its last operation, and the members that
          were found to be wrong there; by directory, where it was lost
"""

from __future__ import annotations

from uuid import UUID

from minicluster.metadata.image.directory_id import LOST, is_online, is_reserved
from minicluster.verify.histories.brokers import BrokerRecord, RegisteredDirectory, Registration
from minicluster.verify.histories.cluster import Cluster
from minicluster.verify.histories.partitions import (
    ALWAYS,
    CLEAR_ELR,
    Ids,
    PartitionHistory,
    PartitionStep,
)
from minicluster.verify.judging import Judge
from minicluster.verify.model import FROM_3_3
from minicluster.verify.rules.partitions import (
    a_new_partition_has_its_active_replicas,
    a_recovering_partition_has_one_member,
    each_replica_has_one_directory,
)
from minicluster.verify.rules.rule import (
    CASE,
    NOT_PROMISED,
    Broken,
    Findings,
    Said,
    broken,
    ids,
    rule,
)

Directories = tuple[tuple[int, bool, bool], ...]
"""A member, whether its log directory was lost before, and whether it came into the ISR after that;
of the members whose directory the log names."""


class Standing:
    """The step at which a partition stands, and the members that were found to be wrong there."""

    inactive: frozenset[int] = frozenset()
    leader_inactive = False
    reborn: frozenset[int] = frozenset()
    in_lost_directory: frozenset[int] = frozenset()

    def __init__(self, step: PartitionStep, offset: int) -> None:
        self.step, self.offset = step, offset


class Memberships:
    """Compares partitions with their brokers; the current operation is judged at its end."""

    def __init__(self, cluster: Cluster, judge: Judge) -> None:
        self._cluster = cluster
        self._judge = judge
        self._standing: dict[PartitionHistory, Standing] = {}
        self._fenced_inside: dict[PartitionHistory, set[int]] = {}
        self._lost: dict[tuple[int, UUID], int] = {}  # broker, directory -> offset
        # Of the current operation:
        self._steps: dict[PartitionHistory, tuple[PartitionStep, int]] = {}
        self._unclean: list[tuple[PartitionHistory, PartitionStep, int, Ids]] = []
        self._brokers: dict[int, int] = {}  # broker -> offset of its last record
        self._new_incarnations: list[tuple[int, int]] = []
        self._lost_now: list[tuple[int, UUID, int]] = []

    # --- each record ------------------------------------------------------------------------------

    def on_step(self, partition: PartitionHistory, step: PartitionStep) -> None:
        """Judge a change of a partition beside the brokers as they are right before it."""
        offset = partition.offset
        self._judge.take_known(step, offset, partition.name, partition.number)
        if step.elected is not None or step.entering or step.creates:
            self._beside_brokers(partition, step)
        self._steps[partition] = step, offset
        if self._fenced_inside:
            self._fenced_inside.pop(partition, None)
        if step.is_unclean:
            before = step.before
            candidates = dict.fromkeys((*before.isr, *(before.elr or ())))
            active = tuple(replica for replica in candidates if self._cluster.is_active(replica))
            self._unclean.append((partition, step, offset, active))

    def _beside_brokers(self, partition: PartitionHistory, step: PartitionStep) -> None:
        """The meaning of a record beside the brokers as they are now."""
        brokers, leader, is_in_place = dict.fromkeys(step.entering), step.elected, True
        if step.creates:
            brokers |= dict.fromkeys(step.after.replicas)
        if leader is not None:
            brokers[leader] = None
            directory, broker = step.after.directory_of(leader), self._cluster.brokers.get(leader)
            log_dirs = broker.log_dirs if broker is not None else ()
            is_in_place = directory is None or is_online(directory, log_dirs)
        active = tuple(number for number in brokers if self._cluster.is_active(number))
        what = step, active, is_in_place
        place = partition.offset, partition.name, partition.number
        self._judge.hear_known(_beside_brokers, what, *place)

    def on_fenced(self, broker: int) -> None:
        """A broker flips to fenced: it must be in no ISR, whatever follows in this operation."""
        offset = self._cluster.offset
        for partition in self._in_isr(broker):
            step = partition.last
            if step is None or not step.leaves_a_state or step.after.keeps_last_member:
                continue
            known = self._fenced_inside.setdefault(partition, set())
            if broker not in known:
                known.add(broker)
                self._hear(a_fenced_broker_is_in_no_isr(step, broker), partition, offset)

    def _in_isr(self, broker: int) -> list[PartitionHistory]:
        """The partitions that have a broker in their ISR at the current record."""
        every = {**dict.fromkeys(self._standing), **dict.fromkeys(self._steps)}
        return [
            partition
            for partition in every
            if partition.last and broker in (partition.last.after.isr or ())
        ]

    def on_new_incarnation(self, broker: int) -> None:
        """A broker has registered with another incarnation than before."""
        self._new_incarnations.append((broker, self._cluster.offset))

    def on_lost(self, broker: int, directory: UUID) -> None:
        """A broker has lost a log directory."""
        offset = self._lost[broker, directory] = self._cluster.offset
        self._lost_now.append((broker, directory, offset))

    def on_regained(self, broker: int, directory: UUID) -> None:
        """A broker has registered with a log directory."""
        self._lost.pop((broker, directory), None)

    def on_changed(self, broker: int) -> None:
        """There was a record of a broker, which has been applied."""
        self._brokers[broker] = self._cluster.offset

    # --- the end of an operation ------------------------------------------------------------------

    def end_of_operation(self) -> None:
        """Judge the current operation as a whole, and begin the next one."""
        allowed = self._cluster.allowed_in_isr()
        for partition, (step, offset) in self._steps.items():
            self._standing.pop(partition, None)
            if step.leaves_a_state:
                standing = self._standing[partition] = Standing(step, offset)
                self._stand(partition, standing, allowed)
        for broker, offset in self._new_incarnations:
            self._on_reborn(broker, offset)
        for broker, directory, offset in self._lost_now:
            self._on_lost_now(broker, directory, offset)
        for partition, step, offset, active in self._unclean:
            self._on_unclean(partition, step, offset, active)
        for broker, offset in self._brokers.items():
            if broker not in allowed:
                self._turn_inactive(broker, offset)
        self._steps, self._unclean = {}, []
        self._brokers, self._new_incarnations, self._lost_now = {}, [], []

    def _stand(
        self, partition: PartitionHistory, standing: Standing, allowed: frozenset[int]
    ) -> None:
        """Judge a partition beside the brokers."""
        step, after = standing.step, standing.step.after
        inactive: Ids = ()
        if not allowed.issuperset(after.isr):
            inactive = tuple(replica for replica in after.isr if replica not in allowed)
        standing.inactive = frozenset(inactive)
        standing.leader_inactive = after.leader >= 0 and after.leader not in allowed
        directories = self._directories(partition, standing) if after.directories else ()
        what = step, inactive, standing.leader_inactive, directories
        place = standing.offset, partition.name, partition.number
        self._judge.hear_known(_standing, what, *place)

    def _directories(self, partition: PartitionHistory, standing: Standing) -> Directories:
        """The members that were assigned a directory, and whether it is lost."""
        placed: list[tuple[int, bool, bool]] = []
        for member in standing.step.after.isr:
            directory = standing.step.after.directory_of(member)
            if directory is None or (is_reserved(directory) and directory != LOST):
                continue
            # LOST names no directory: whichever it was, its broker has lost it.
            lost_at = ALWAYS if directory == LOST else self._lost.get((member, directory))
            joined_later = lost_at is not None and partition.since[member] > lost_at
            placed.append((member, lost_at is not None, joined_later))
            if (
                lost_at is not None
                and not joined_later
                and not standing.step.after.keeps_last_member
            ):
                standing.in_lost_directory |= {member}
        return tuple(placed)

    def _turn_inactive(self, broker: int, offset: int) -> None:
        """A broker ends the operation inactive: partitions that still name it are judged."""
        for partition, standing in self._standing.items():
            after = standing.step.after
            if partition in self._steps:
                continue
            if broker in after.isr and broker not in standing.inactive:
                standing.inactive |= {broker}
                self._hear(a_member_turns_inactive(standing.step, broker), partition, offset)
            if broker == after.leader and not standing.leader_inactive:
                standing.leader_inactive = True
                self._hear(a_leader_turns_inactive(standing.step, broker), partition, offset)

    def _on_reborn(self, broker: int, offset: int) -> None:
        leaves_from = self._cluster.promises.new_incarnation_leaves_from
        for partition, standing in self._standing.items():
            after = standing.step.after
            if broker not in after.isr or after.keeps_last_member or broker in standing.reborn:
                continue
            standing.reborn |= {broker}
            said = a_new_incarnation_is_inside(standing.step, broker, leaves_from)
            self._hear(said, partition, offset)

    def _on_lost_now(self, broker: int, directory: UUID, offset: int) -> None:
        """Members of any ISR in a directory that this operation records as lost."""
        for partition, standing in self._standing.items():
            after = standing.step.after
            if broker not in after.isr or after.keeps_last_member:
                continue
            is_new = broker not in standing.in_lost_directory
            if is_new and after.directory_of(broker) == directory:
                standing.in_lost_directory |= {broker}
                self._hear(a_member_loses_its_directory(standing.step, broker), partition, offset)

    def _on_unclean(
        self, partition: PartitionHistory, step: PartitionStep, offset: int, active: Ids
    ) -> None:
        clean = []
        for member in active:
            if member not in step.after.replicas or not self._cluster.is_active(member):
                continue
            directory = step.after.directory_of(member)
            if directory is None or is_online(directory, self._cluster.brokers[member].log_dirs):
                clean.append(member)
        failures_in_log = self._cluster.promises.failures_in_log
        said = no_unclean_election_beside_a_clean_candidate(step, clean, failures_in_log)
        self._hear(said, partition, offset)

    def _hear(self, said: Said, partition: PartitionHistory, offset: int) -> None:
        self._judge.hear(said, offset, partition.name, partition.number)


def _beside_brokers(step: PartitionStep, active: Ids, is_in_place: bool) -> Said:
    """The outcomes of rules about a record and the brokers that are active right before it."""
    if step.elected is not None:
        yield from a_broker_is_unfenced_before_it_is_elected(step, active)
        yield from an_elected_leaders_directory_is_online(step, is_in_place)
    if step.judged and step.leaves_a_state and step.kind != CLEAR_ELR:
        yield from only_active_replicas_enter_an_isr(step, active)
    if step.creates:
        yield from a_new_partition_has_its_active_replicas(step, active)


def _standing(
    step: PartitionStep, inactive: Ids, leader_is_inactive: bool, directories: Directories
) -> Said:
    """The outcomes of rules about the state in which an operation leaves a partition."""
    yield from every_isr_member_is_active(step, inactive)
    yield from the_leader_is_active(step, leader_is_inactive)
    yield from a_recovering_partition_has_one_member(step.after, step.level, step.elr_on)
    yield from no_isr_member_is_in_a_lost_directory(step, directories)


@rule("A1", "Every ISR member is active",
      source="KIP-841; ReplicationControlManager.handleBrokerFenced",
      breaks="Broker 3 is fenced and stays in ISR [1, 2, 3].",
      keeps="Broker 3 is fenced and leaves the ISR in one operation; broker 1 is "
      "fenced as the last member, without a leader.")  # fmt: skip
def every_isr_member_is_active(step: PartitionStep, inactive: Ids) -> Findings:
    """At the end of every operation each ISR member is registered, unfenced and not in controlled
    shutdown, except for the last member, which stays while there is no leader."""
    isr, is_promised = step.after.isr, step.level >= FROM_3_3
    for _ in isr:
        yield CASE if is_promised else NOT_PROMISED
    if is_promised and not step.after.keeps_last_member:
        for member in inactive:
            yield _inactive_member(member, isr)


@every_isr_member_is_active.also
def a_member_turns_inactive(step: PartitionStep, broker: int) -> Findings:
    """A partition is looked at where it changes; here a broker changes, and the partition not."""
    if step.level >= FROM_3_3 and not step.after.keeps_last_member:
        yield _inactive_member(broker, step.after.isr)


def _inactive_member(member: int, isr: tuple[int, ...]) -> Broken:
    message = f"broker {member} is in the ISR {ids(isr)} although it is not active"
    return broken(message, broker=member)


@rule("A2", "The leader is active",
      source="KIP-841, KIP-631; PartitionChangeBuilder.electLeader",
      breaks="Broker 1 enters controlled shutdown and stays the leader, with ISR [1, 2].",
      keeps="Broker 1 enters controlled shutdown, and broker 2 leads ISR [2, 3] at "
      "the end of the operation.")  # fmt: skip
def the_leader_is_active(step: PartitionStep, is_inactive: bool) -> Findings:
    """At the end of every operation each leader is registered, unfenced and not in controlled
    shutdown, or there is no leader."""
    if step.after.leader < 0:
        return
    if step.level < FROM_3_3:
        yield NOT_PROMISED
        return
    yield CASE
    if is_inactive:
        yield _inactive_leader(step.after.leader, step.after.isr)


@the_leader_is_active.also
def a_leader_turns_inactive(step: PartitionStep, broker: int) -> Findings:
    """As above: the broker changes, and the partition does not."""
    if step.level >= FROM_3_3:
        yield _inactive_leader(broker, step.after.isr)


def _inactive_leader(leader: int, isr: tuple[int, ...]) -> Broken:
    return broken(
        f"broker {leader} leads (ISR {ids(isr)}) although it is not active", broker=leader
    )


@rule("A3", "Only active replicas enter an ISR",
      source="KIP-841, KIP-903; ReplicationControlManager.ineligibleReplicasForIsr",
      breaks="Broker 3 enters ISR [1, 2, 3] one record before it is unfenced, in one operation.",
      keeps="Broker 3 enters ISR [1, 2, 3] one record after it is unfenced, in one "
      "operation.")  # fmt: skip
def only_active_replicas_enter_an_isr(step: PartitionStep, active: Ids) -> Findings:
    """A replica that a record adds to an ISR was active right before the record."""
    is_promised = step.level >= FROM_3_3
    for _ in step.entering:
        yield CASE if is_promised else NOT_PROMISED
    # A cancelled reassignment may have to fall back on one inactive replica, without a leader.
    if is_promised and not step.after.keeps_last_member:
        for member in step.entering:
            if member not in active:
                yield broken(
                    f"the ISR went from {ids(step.before.isr)} to {ids(step.after.isr)} while "
                    f"broker {member} was not active",
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
def a_fenced_broker_is_in_no_isr(step: PartitionStep, broker: int) -> Findings:
    """The record that fences it comes while it is in an ISR."""
    if step.level >= FROM_3_3:
        isr = ids(step.after.isr)
        yield broken(f"broker {broker} was fenced while it was in the ISR {isr}", broker=broker)


@a_broker_leaves_isrs_before_it_is_fenced.also
def a_broker_is_unfenced_before_it_is_elected(step: PartitionStep, active: Ids) -> Findings:
    """The record that elects it comes before the one that unfences it."""
    if step.level >= FROM_3_3 and step.elected not in active:
        message = f"broker {step.elected} was elected (ISR {ids(step.after.isr)}) before it was"
        yield broken(f"{message} active", broker=step.elected)


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
def a_new_incarnation_is_inside(step: PartitionStep, broker: int, leaves_from: int) -> Findings:
    """Its operation leaves it in an ISR."""
    if step.level >= leaves_from:
        isr = ids(step.after.isr)
        message = f"broker {broker} registered as a new incarnation and is in the ISR {isr}"
        yield broken(message, broker=broker)


@rule("C5", "An unclean election happens only without a clean candidate",
      source="KIP-704, KIP-106; PartitionChangeBuilder.electLeader",
      breaks="ISR [2] has no leader; broker 3 is elected uncleanly although broker 2 is active.",
      keeps="Broker 2 is elected uncleanly one record before broker 1 of ISR [1] is "
      "fenced, in one operation.")  # fmt: skip
def no_unclean_election_beside_a_clean_candidate(
    step: PartitionStep, clean: list[int], failures_in_log: bool
) -> Findings:
    """A leader from outside ISR and ELR is elected only if no member of the two is active with its
    log directory online, before and after the operation. With KIP-589 the log does not hold which
    replicas have failed, and nothing is promised."""
    # Below 3.3-IV3 controlled shutdown is not in the log, so nor is who was active.
    if step.level < FROM_3_3 or not failures_in_log:
        yield NOT_PROMISED
        return
    yield CASE
    for member in clean:
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
def no_isr_member_is_in_a_lost_directory(step: PartitionStep, directories: Directories) -> Findings:
    """When a log directory is recorded as offline, its replicas are in no ISR and lead no
    partition, except for the last member, which stays while there is no leader; a replica that is
    in no directory any more (DirectoryId.LOST) is out as well. A replica that a leader proposes
    again later is not promised: the controller does not check directories then, but where it
    creates, elects or moves it does."""
    for member, is_lost, joined_later in directories:
        if joined_later:
            # A leader that applies the loss late may propose the replica once more.
            yield NOT_PROMISED
            continue
        yield CASE
        if is_lost and not step.after.keeps_last_member:
            yield _in_lost_directory(member, step.after.isr)


@no_isr_member_is_in_a_lost_directory.also
def a_member_loses_its_directory(step: PartitionStep, broker: int) -> Findings:
    """As above: the broker loses it, and the partition does not change."""
    yield _in_lost_directory(broker, step.after.isr)


def _in_lost_directory(member: int, isr: tuple[int, ...]) -> Broken:
    message = f"broker {member} is in the ISR {ids(isr)} although its log directory is offline"
    return broken(message, broker=member)


@rule("D2", "An elected leader's log directory is online",
      source="KIP-858; ReplicationControlManager.LeaderAcceptor",
      breaks="Broker 1 is elected while the directory of its replica is offline.",
      keeps="Broker 2 is elected, and the directory of its replica is online.")  # fmt: skip
def an_elected_leaders_directory_is_online(step: PartitionStep, is_in_place: bool) -> Findings:
    """The log directory in which an elected leader holds the partition is online."""
    yield CASE
    if not is_in_place:
        message = f"broker {step.elected} was elected (ISR {ids(step.after.isr)}) although its"
        yield broken(f"{message} directory is offline", broker=step.elected)


@each_replica_has_one_directory.also
def _each_directory_has_one_broker(directory: RegisteredDirectory) -> Findings:
    if directory.owner != directory.broker:
        yield broken(
            f"broker {directory.broker} registered a log directory of broker {directory.owner}",
            broker=directory.broker,
        )
