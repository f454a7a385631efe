"""The one way in which a partition changes: from its targets to one PartitionChangeRecord.

An operation says what it wants (``Targets``): an ISR without a fenced broker, other replicas,
another recovery state. What else follows from that is decided here, for all operations alike.

**Order.** Another order gives other records:

| step | because |
|---|---|
| complete a reassignment that the ISR allows | the replicas that go must not be elected next |
| aim at an ELR | a member of it can be elected when the ISR is empty |
| elect a leader, if the present one cannot stay | from the ISR and replicas as they will be |
| restate the leader if a replica goes | so that its epoch rises, see below |
| write the ELR, then the ISR | an election of an ELR member has changed both |
| restate the leader if the ISR shrinks | only below metadata.version 3.6-IV0 |
| remember the last leader | known only after the election |
| write replicas, directories, recovery state | what the leader proposed wins over the election |

**Two epochs.** Every record raises the partition epoch, which fences what was proposed from an
older state. A record that names a leader raises the leader epoch too, even where it names the same
one: that stops all followers until they have read the metadata. So an ISR change does not name one.

**ELR** (KIP-966). Below min.insync.replicas nothing is committed, so a replica that leaves the ISR
then has everything that is committed, and keeps it: it is *eligible*. Hence the ISR may become
empty, and an eligible replica that comes back is elected without loss. A broker that restarts
uncleanly may have lost its tail, and is not eligible any more. When the ISR is back at the minimum,
records are committed again that the eligible ones lack, and the ELR is emptied. Where ISR and ELR
are both empty, the last leader has most of what there is: it is elected, uncleanly. Without ELR the
last member of an ISR stays in it, fenced or not, or nobody could be elected cleanly again.

Source:  KIP-455, KIP-704, KIP-841, KIP-858, KIP-966; PartitionChangeBuilder.build.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from msgspec import field

from minicluster.controller.leader_election import Candidates, Election, elect_leader
from minicluster.controller.reassignment import (
    Reassignment,
    complete_reassignment,
    contains_all,
)
from minicluster.controller.state.cluster_state import Gates
from minicluster.java_order import java_set_order
from minicluster.metadata.image.partition import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionRegistration,
)
from minicluster.protocol.records import PartitionChangeRecord, VersionedRecord
from minicluster.values import Value

Replicas = tuple[int, ...]


class Targets(Value, kw_only=True):
    """The target of a partition; None leaves a field as it is.

    Shapes:  directories are those that brokers have assigned; others keep theirs.
    """

    isr: Replicas | None = None
    replicas: Replicas | None = None
    removing: Replicas | None = None
    adding: Replicas | None = None
    recovery_state: int | None = None
    unclean_shutdown: Replicas = ()
    directories: Mapping[int, UUID] = field(default_factory=dict)


def change_partition(
    topic_id: UUID,
    partition_id: int,
    partition: PartitionRegistration,
    targets: Targets,
    *,
    gates: Gates,
    acceptable: Callable[[int], bool],
    default_dir: Callable[[int], UUID],
    min_isr: int,
    election: Election = Election.ONLINE,
) -> VersionedRecord | None:
    """The record that moves a partition to its targets, or None when nothing would change.

    Shapes:  acceptable: a replica could lead now. default_dir: the directory of a new replica.
    Errors:  whatever acceptable raises.
    Source:  PartitionChangeBuilder.
    """
    builder = PartitionChangeBuilder(partition, targets, gates, acceptable, min_isr, election)
    changes = builder.build(targets.directories, default_dir)
    return change_record(topic_id, partition_id, changes, gates)


def change_record(
    topic_id: UUID, partition_id: int, changes: Mapping[str, object], gates: Gates
) -> VersionedRecord | None:
    """The record of some changed fields, or None where there are none."""
    if not changes:
        return None
    record = PartitionChangeRecord(topic_id=topic_id, partition_id=partition_id, **changes)  # type: ignore[arg-type]
    version = gates.metadata_version.partition_change_record_version(gates.rules)
    return VersionedRecord(record, version)


class PartitionChangeBuilder:
    """The steps share their targets and the record so far."""

    __slots__ = (
        "acceptable",
        "adding",
        "changes",
        "election",
        "elr",
        "gates",
        "isr",
        "min_isr",
        "old",
        "recovery",
        "removing",
        "replicas",
        "unclean_shutdown",
    )

    def __init__(
        self,
        old: PartitionRegistration,
        targets: Targets,
        gates: Gates,
        acceptable: Callable[[int], bool],
        min_isr: int,
        election: Election,
    ) -> None:
        self.old, self.gates, self.acceptable = old, gates, acceptable
        self.min_isr, self.election = min_isr, election
        self.isr = old.isr if targets.isr is None else targets.isr
        self.replicas = old.replicas if targets.replicas is None else targets.replicas
        self.removing = old.removing_replicas if targets.removing is None else targets.removing
        self.adding = old.adding_replicas if targets.adding is None else targets.adding
        recovery = targets.recovery_state
        self.recovery = old.leader_recovery_state if recovery is None else recovery
        self.unclean_shutdown = targets.unclean_shutdown
        self.elr = old.elr
        self.changes: dict[str, object] = {}

    def build(
        self, directories: Mapping[int, UUID], default_dir: Callable[[int], UUID]
    ) -> Mapping[str, object]:
        """The fields that change."""
        self._complete_reassignment()
        self._aim_at_elr()
        self._write_leader()
        self._restate_leader_for_lost_replica()
        self._write_elr()
        self._write_isr()
        self._restate_leader_for_smaller_isr()
        self._remember_last_leader()
        self._write_assignment(directories, default_dir)
        return self.changes

    def _complete_reassignment(self) -> None:
        completed = complete_reassignment(
            Reassignment(replicas=self.replicas, adding=self.adding, removing=self.removing),
            self.isr,
            needs_all_replicas=self.gates.rules.reassignment_needs_all_replicas,
        )
        if completed is not None:
            self.isr, self.replicas = completed.isr, completed.replicas
            self.adding = self.removing = ()

    def _aim_at_elr(self) -> None:
        """Below the minimum, who leaves the ISR stays eligible unless it lost its log."""
        if not self.gates.elr_enabled:
            return
        if len(self.isr) >= self.min_isr:
            self.elr = ()
            return
        # Kafka's set does not ascend from broker 16 on, and the record has its order.
        candidates = java_set_order(self.old.elr, self.old.isr)
        lost = {*self.isr, *self.unclean_shutdown}
        if not self.gates.rules.removed_replica_stays_in_elr:
            lost.update(r for r in candidates if r not in self.replicas)
        self.elr = tuple(r for r in candidates if r not in lost)

    def elect_leader(self) -> tuple[int, bool]:
        """The next leader, and True when its election is unclean."""
        candidates = Candidates(
            leader=self.old.leader,
            replicas=self.replicas,
            isr=self.isr,
            elr=self.elr,
            last_known=self.old.last_known_elr,
            acceptable=self.acceptable,
        )
        return elect_leader(candidates, self.election, self.gates)

    def _write_leader(self) -> None:
        leader, unclean = self.elect_leader()
        if leader == self.old.leader:
            return
        if leader in self.elr:
            # A leader is always in its ISR.
            self.isr = (leader,)
            self.elr = tuple(r for r in self.elr if r != leader)
        self.changes["leader"] = leader
        if unclean:
            # The other members may have records that the new leader lacks, and are not in sync with
            # it before they have cut them off.
            self.changes["isr"] = (leader,)
            supported = self.gates.metadata_version.leader_recovery_supported
            if supported and self.old.leader_recovery_state != RECOVERING:
                self.changes["leader_recovery_state"] = RECOVERING

    def _restate_leader_for_lost_replica(self) -> None:
        """A record that names the leader raises its epoch, even if the leader stays.

        Under the old epoch a replica that has been removed could fetch on, and its leader would
        take it for a follower.
        """
        if "leader" not in self.changes and not contains_all(self.replicas, self.old.replicas):
            self.changes["leader"] = self.old.leader

    def _write_elr(self) -> None:
        if (
            "isr" in self.changes
            or not self.gates.elr_enabled
            or (not self.gates.rules.elr_outlives_min_isr and len(self.isr) >= self.min_isr)
        ):
            self.elr = ()
        if self.elr != self.old.elr:
            self.changes["eligible_leader_replicas"] = self.elr

    def _write_isr(self) -> None:
        leaves = self.gates.elr_enabled or self.gates.rules.allow_empty_isr_without_elr
        # The last member stays: without ELR nobody could be elected cleanly again, although its log
        # has every committed record.
        may_be_written = bool(self.isr) or leaves
        if "isr" not in self.changes and may_be_written and self.isr != self.old.isr:
            self.changes["isr"] = self.isr

    def _restate_leader_for_smaller_isr(self) -> None:
        """Below 3.6-IV0 a smaller ISR gets another leader epoch as well.

        From then on the partition epoch alone fences the leader's old ISR (KAFKA-15021).
        """
        if (
            self.gates.metadata_version.isr_shrink_bumps_leader_epoch
            and "leader" not in self.changes
            and "isr" in self.changes
            and not contains_all(self.isr, self.old.isr)
        ):
            self.changes["leader"] = self.old.leader

    def _remember_last_leader(self) -> None:
        """The list holds at most the leader that was lost first."""
        if not self.gates.elr_enabled:
            return
        rules, old = self.gates.rules, self.old
        leader = self.changes.get("leader", NO_LEADER_CHANGE)
        assert isinstance(leader, int)
        loses, finds = leader == NO_LEADER and not old.last_known_elr, leader >= 0
        if rules.last_known_leader_goes_with_isr:
            loses = self.changes.get("isr") == () and old.last_known_elr != (old.leader,)
            finds = finds or NO_LEADER not in (old.leader, leader)
        if loses:
            if old.leader != NO_LEADER or rules.last_known_leader_may_be_none:
                self.changes["last_known_elr"] = (old.leader,)
        elif finds and old.last_known_elr:
            self.changes["last_known_elr"] = ()
        if not rules.removed_replica_stays_in_elr:
            # A replica that a reassignment has removed cannot be elected. As shipped it stays in
            # the list, and every later change of the partition fails over it (Z56).
            last_known = self.changes.get("last_known_elr", old.last_known_elr)
            if isinstance(last_known, tuple) and any(
                r >= 0 and r not in self.replicas for r in last_known
            ):
                self.changes["last_known_elr"] = ()
        if not rules.kept_member_is_forgotten and not self.changes.get("isr", old.isr):
            last_known = self.changes.get("last_known_elr", old.last_known_elr)
            lost = [r for r in (*old.isr, *old.elr) if r in self.replicas]
            if not last_known and not self.elr and lost:
                self.changes["last_known_elr"] = tuple(lost[:1])

    def _write_assignment(
        self, assigned: Mapping[int, UUID], default_dir: Callable[[int], UUID]
    ) -> None:
        """Write what differs of replicas, directories, adding, removing and recovery state."""
        old = self.old
        if self.replicas:
            if self.gates.metadata_version.directory_assignment_supported:
                directory_of = dict(zip(old.replicas, old.directories, strict=True))
                directory_of |= assigned
                directories = tuple(
                    directory_of[r] if r in directory_of else default_dir(r) for r in self.replicas
                )
                if directories != old.directories:
                    self.changes["directories"] = directories
            if self.replicas != old.replicas:
                self.changes["replicas"] = self.replicas
        if self.removing != old.removing_replicas:
            self.changes["removing_replicas"] = self.removing
        if self.adding != old.adding_replicas:
            self.changes["adding_replicas"] = self.adding
        if self.recovery != old.leader_recovery_state:
            self.changes["leader_recovery_state"] = self.recovery
