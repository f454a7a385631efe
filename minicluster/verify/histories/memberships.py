"""Members of ISRs, and leaders, beside the states of their brokers.

Every prefix of a log is judged by some rules (A3, A4, D2), others hold once an operation is over
(A1, A2, A8, C5, D1): fencing writes the ISR changes first, controlled shutdown writes them last.

========================  ========================================================================
takes                     each ``PartitionStep`` with its partition; brokers that are fenced, that
                          are new incarnations, that lose directories; the end of an operation
keeps, by partition       the step that it stands at since its last operation, and the members that
                          were found to be wrong there; by directory, where it was lost
yields                    ``IsrGrowth``, ``Placement``, ``Election``, ``FencedInside``;
                          ``StandingPartition``, ``MemberTurnsInactive``, ``LeaderTurnsInactive``,
                          ``NewIncarnationInside``, ``UncleanElection``, ``LostDirectory``
========================  ========================================================================

Bounded by the partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from minicluster.metadata.image.directory_id import LOST, is_online, is_reserved
from minicluster.values import dataclass
from minicluster.verify.histories.cluster import Cluster
from minicluster.verify.histories.partitions import (
    ALWAYS,
    CLEAR_ELR,
    Ids,
    Partition,
    PartitionStep,
)
from minicluster.verify.judging import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrGrowth:
    """Replicas enter an ISR; inactive: those of them that are not active right before."""

    partition: PartitionStep
    inactive: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A partition is created; active: those of its replicas whose brokers are."""

    partition: PartitionStep
    active: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """A record elects a leader; is_active and is_online: its broker, its log directory."""

    partition: PartitionStep
    leader: int
    is_active: bool
    is_online: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedInside:
    """A broker is fenced while it is in the ISR."""

    partition: PartitionStep
    broker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingPartition:
    """The state in which an operation leaves a partition.

    Shapes:  inactive: members of its ISR that may not be in one; leader_is_inactive: likewise.
             directories: member, whether its log directory was lost before, and whether it came
             into the ISR after that; of members whose directory the log names.
    """

    partition: PartitionStep
    inactive: Ids
    leader_is_inactive: bool
    directories: tuple[tuple[int, bool, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTurnsInactive:
    """An operation leaves a broker inactive that is in the ISR since an earlier one."""

    partition: PartitionStep
    broker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderTurnsInactive:
    """An operation leaves a broker inactive that leads since an earlier one."""

    partition: PartitionStep


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIncarnationInside:
    """A new incarnation has registered, and its operation leaves the broker in the ISR."""

    partition: PartitionStep
    broker: int
    leaves_from: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElection:
    """An unclean election; clean: members of ISR and ELR that could have led, before and after."""

    partition: PartitionStep
    clean: Ids
    failures_in_log: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDirectory:
    """An operation records that the log directory of a member of the ISR is lost."""

    partition: PartitionStep
    broker: int


class _Standing:
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
        self._standing: dict[Partition, _Standing] = {}
        self._fenced_inside: dict[Partition, set[int]] = {}
        self._lost: dict[tuple[int, UUID], int] = {}  # broker, directory -> offset
        # Of the current operation:
        self._steps: dict[Partition, tuple[PartitionStep, int]] = {}
        self._unclean: list[tuple[Partition, PartitionStep, int, Ids]] = []
        self._brokers: dict[int, int] = {}  # broker -> offset of its last record
        self._new_incarnations: list[tuple[int, int]] = []
        self._lost_now: list[tuple[int, UUID, int]] = []

    # --- each record ------------------------------------------------------------------------------

    def on_step(self, partition: Partition, step: PartitionStep) -> None:
        """Judge a change of a partition beside the brokers as they are right before it."""
        offset = partition.offset
        self._take_known(partition, offset, step, *self._beside_brokers(step))
        self._steps[partition] = step, offset
        if self._fenced_inside:
            self._fenced_inside.pop(partition, None)
        if step.is_unclean:
            before = step.before
            candidates = dict.fromkeys((*before.isr, *(before.elr or ())))
            active = tuple(replica for replica in candidates if self._cluster.is_active(replica))
            self._unclean.append((partition, step, offset, active))

    def _beside_brokers(self, step: PartitionStep) -> Iterator[object]:
        """What a step means beside the brokers as they are now."""
        leader = step.elected
        if leader is not None:
            directory, broker = step.after.directory_of(leader), self._cluster.brokers.get(leader)
            yield Election(
                partition=step,
                leader=leader,
                is_active=self._cluster.is_active(leader),
                is_online=directory is None
                or is_online(directory, broker.log_dirs if broker is not None else ()),
            )
        if step.judged and step.leaves_a_state and step.kind != CLEAR_ELR and step.entering:
            inactive = tuple(
                replica for replica in step.entering if not self._cluster.is_active(replica)
            )
            yield IsrGrowth(partition=step, inactive=inactive)
        if step.creates:
            active = tuple(
                replica for replica in step.after.replicas if self._cluster.is_active(replica)
            )
            yield Placement(partition=step, active=active)

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
                self._take(FencedInside(partition=step, broker=broker), partition, offset)

    def _in_isr(self, broker: int) -> list[Partition]:
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
                standing = self._standing[partition] = _Standing(step, offset)
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

    def _stand(self, partition: Partition, standing: _Standing, allowed: frozenset[int]) -> None:
        """Judge a partition beside the brokers."""
        step, after = standing.step, standing.step.after
        inactive: Ids = ()
        if not allowed.issuperset(after.isr):
            inactive = tuple(replica for replica in after.isr if replica not in allowed)
        standing.inactive = frozenset(inactive)
        standing.leader_inactive = after.leader >= 0 and after.leader not in allowed
        directories: tuple[tuple[int, bool, bool], ...] = ()
        if after.directories:
            directories = self._directories(partition, standing)
        state = StandingPartition(
            partition=step,
            inactive=inactive,
            leader_is_inactive=standing.leader_inactive,
            directories=directories,
        )
        self._take_known(partition, standing.offset, state)

    def _directories(
        self, partition: Partition, standing: _Standing
    ) -> tuple[tuple[int, bool, bool], ...]:
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
                turned = MemberTurnsInactive(partition=standing.step, broker=broker)
                self._take(turned, partition, offset)
            if broker == after.leader and not standing.leader_inactive:
                standing.leader_inactive = True
                self._take(LeaderTurnsInactive(partition=standing.step), partition, offset)

    def _on_reborn(self, broker: int, offset: int) -> None:
        leaves_from = self._cluster.promises.new_incarnation_leaves_from
        for partition, standing in self._standing.items():
            after = standing.step.after
            if broker not in after.isr or after.keeps_last_member or broker in standing.reborn:
                continue
            standing.reborn |= {broker}
            step = NewIncarnationInside(
                partition=standing.step, broker=broker, leaves_from=leaves_from
            )
            self._take(step, partition, offset)

    def _on_lost_now(self, broker: int, directory: UUID, offset: int) -> None:
        """Members of any ISR in a directory that this operation records as lost."""
        for partition, standing in self._standing.items():
            after = standing.step.after
            if broker not in after.isr or after.keeps_last_member:
                continue
            is_new = broker not in standing.in_lost_directory
            if is_new and after.directory_of(broker) == directory:
                standing.in_lost_directory |= {broker}
                self._take(LostDirectory(partition=standing.step, broker=broker), partition, offset)

    def _on_unclean(
        self, partition: Partition, step: PartitionStep, offset: int, active: Ids
    ) -> None:
        clean = []
        for member in active:
            if member not in step.after.replicas or not self._cluster.is_active(member):
                continue
            directory = step.after.directory_of(member)
            if directory is None or is_online(directory, self._cluster.brokers[member].log_dirs):
                clean.append(member)
        election = UncleanElection(
            partition=step,
            clean=tuple(clean),
            failures_in_log=self._cluster.promises.failures_in_log,
        )
        self._take(election, partition, offset)

    def _take_known(self, partition: Partition, offset: int, *steps: object) -> None:
        """Take steps that many partitions make."""
        self._judge.take_known(steps, offset, partition.name, partition.number)

    def _take(self, step: object, partition: Partition, offset: int) -> None:
        self._judge.take(step, offset, partition.name, partition.number)
