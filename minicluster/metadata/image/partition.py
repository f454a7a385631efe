"""One partition's state, and how a change record merges into it.

Every rule of replication is about these fields:

| field | is |
|---|---|
| replicas | the assignment; the first one is the preferred leader |
| isr | those that hold all that is committed; a leader is elected from it without loss |
| elr, last_known_elr | who else may be elected when the ISR is empty (KIP-966) |
| adding, removing replicas | a reassignment that is not complete (KIP-455) |
| leader | a broker, or -1 while nobody can lead |
| leader epoch | counts leaderships: +1 with each record that names a leader, be it -1 or the same |
| partition epoch | counts records: +1 with each, so that older news can be told from newer |
| leader recovery state | RECOVERING after an unclean election, until the leader reports (KIP-704) |
| directories | where each replica lies on its broker (KIP-858) |

Source:  KIP-497, KIP-704, KIP-858, KIP-966; PartitionRegistration.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from minicluster.metadata.errors import MetadataLost, ReplayError
from minicluster.metadata.image import directory_id
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol.records import PartitionChangeRecord, PartitionRecord, VersionedRecord
from minicluster.rules import Rules
from minicluster.values import Value

NO_LEADER = -1
NO_LEADER_CHANGE = -2

RECOVERED = 0
RECOVERING = 1
NO_RECOVERY_CHANGE = -1

OnLoss = Callable[[str], None]


def raise_loss(loss: str) -> None:
    """Reject to write an image that would lose something.

    Errors:  MetadataLost.
    """
    raise MetadataLost(f"the metadata.version cannot write {loss}")


class PartitionRegistration(Value, kw_only=True):
    """The state of one partition in the metadata log. The order of every list is significant.

    Shapes:  directories runs parallel to replicas.
    Units:   epochs are counters; partition_epoch counts records, leader_epoch leaderships.
    """

    replicas: tuple[int, ...]
    directories: tuple[UUID, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int

    @classmethod
    def from_record(cls, record: PartitionRecord) -> PartitionRegistration:
        """The state that a PartitionRecord describes; replicas without directories are MIGRATING.

        Errors:  ReplayError.
        """
        replicas = tuple(record.replicas)
        return cls(
            replicas=replicas,
            directories=_directories(record.directories, replicas),
            isr=tuple(record.isr),
            removing_replicas=tuple(record.removing_replicas or ()),
            adding_replicas=tuple(record.adding_replicas or ()),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            leader=record.leader,
            leader_recovery_state=_recovery_state(record.leader_recovery_state),
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )

    def merge(self, record: PartitionChangeRecord) -> PartitionRegistration:
        """This state after a change: lists that are given replace, each record is one epoch.

        A given leader, even the same one, starts a new leader epoch.

        Errors:  ReplayError.
        Source:  PartitionRegistration.merge.
        """
        replicas = self.replicas if record.replicas is None else tuple(record.replicas)
        if record.directories is not None:
            directories = _directories(record.directories, replicas)
        elif len(self.directories) == len(replicas):
            directories = self.directories
        else:
            directories = (directory_id.MIGRATING,) * len(replicas)
        keeps_leader = record.leader == NO_LEADER_CHANGE
        keeps_state = record.leader_recovery_state == NO_RECOVERY_CHANGE
        return PartitionRegistration(
            replicas=replicas,
            directories=directories,
            isr=_given(record.isr, self.isr),
            removing_replicas=_given(record.removing_replicas, self.removing_replicas),
            adding_replicas=_given(record.adding_replicas, self.adding_replicas),
            elr=_given(record.eligible_leader_replicas, self.elr),
            last_known_elr=_given(record.last_known_elr, self.last_known_elr),
            leader=self.leader if keeps_leader else record.leader,
            leader_recovery_state=self.leader_recovery_state
            if keeps_state
            else _recovery_state(record.leader_recovery_state),
            leader_epoch=self.leader_epoch if keeps_leader else self.leader_epoch + 1,
            partition_epoch=self.partition_epoch + 1,
        )

    def without_elr(self) -> PartitionRegistration:
        """This state after a ClearElrRecord: an ordinary change, so the partition epoch goes up."""
        return PartitionRegistration(
            replicas=self.replicas,
            directories=self.directories,
            isr=self.isr,
            removing_replicas=self.removing_replicas,
            adding_replicas=self.adding_replicas,
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch + 1,
        )

    def to_record(
        self,
        topic_id: UUID,
        partition_id: int,
        metadata_version: MetadataVersion,
        elr_enabled: bool,
        rules: Rules,
        on_loss: OnLoss = raise_loss,
    ) -> VersionedRecord:
        """The PartitionRecord of this state, in the version that the metadata.version writes.

        Errors:  whatever on_loss raises when directories cannot be written.
        Source:  PartitionRegistration.toRecord.
        """
        directories: tuple[UUID, ...] = ()
        if metadata_version.directory_assignment_supported:
            directories = self.directories
        elif any(directory != directory_id.MIGRATING for directory in self.directories):
            on_loss("the directory assignment state of one or more replicas")
        writes_elr = elr_enabled and metadata_version.elr_supported(rules)
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=self.replicas,
            isr=self.isr,
            removing_replicas=self.removing_replicas,
            adding_replicas=self.adding_replicas,
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=directories,
            eligible_leader_replicas=(self.elr or None) if writes_elr else None,
            last_known_elr=(self.last_known_elr or None) if writes_elr else None,
        )
        return VersionedRecord(record, metadata_version.partition_record_version(rules))

    @property
    def without_epochs(self) -> tuple[object, ...]:
        """All that a decision about the partition depends on."""
        return (
            self.replicas,
            self.directories,
            self.isr,
            self.removing_replicas,
            self.adding_replicas,
            self.elr,
            self.last_known_elr,
            self.leader,
            self.leader_recovery_state,
        )

    @property
    def has_leader(self) -> bool:
        """A broker leads the partition."""
        return self.leader != NO_LEADER

    @property
    def preferred_leader(self) -> int:
        """The first replica, or NO_LEADER of a partition without replicas."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def has_preferred_leader(self) -> bool:
        """The first replica leads; a leaderless partition is imbalanced as well."""
        return self.leader == self.preferred_leader

    @property
    def is_reassigning(self) -> bool:
        """Replicas are being added or removed."""
        return bool(self.removing_replicas or self.adding_replicas)

    @property
    def is_recovering(self) -> bool:
        """The leader was elected uncleanly and has not reported back (KIP-704)."""
        return self.leader_recovery_state == RECOVERING

    def directory_of(self, replica: int) -> UUID:
        """The directory that a replica is assigned to.

        Errors:  ValueError when the broker is not a replica.
        """
        return self.directories[self.replicas.index(replica)]


def _given(new: tuple[int, ...] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)


def _directories(
    directories: tuple[UUID, ...] | None, replicas: tuple[int, ...]
) -> tuple[UUID, ...]:
    if not directories:
        return (directory_id.MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        count = len(directories)
        raise ReplayError(
            f"{count} directories do not go with {len(replicas)} replicas {list(replicas)}"
        )
    return tuple(directories)


def _recovery_state(value: int) -> int:
    if value not in (RECOVERED, RECOVERING):
        raise ReplayError(f"{value} is not a leader recovery state")
    return value
