"""The life of each partition: what its records set, and the state before and after each.

========================  ========================================================================
takes                     PartitionRecord, PartitionChangeRecord, ClearElrRecord, RemoveTopicRecord
keeps, by partition       one ``PartitionState``, its epochs, since when each member is in the ISR
yields                    ``PartitionStep``, for each record and partition
========================  ========================================================================

The records of a log differ in their partition and offset, and little else: a cluster that restarts
its brokers repeats the same few changes in all of its partitions. So a state is one object for all
partitions that are in it, a step one object for all records that do the same, and the rules about
steps are asked once (``Judge.take_known``): a million records take 8 s less of one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from minicluster.protocol import records as r
from minicluster.values import dataclass
from minicluster.verify.histories.cluster import Cluster, Topic

NO_LEADER = -1
RECOVERED, RECOVERING = 0, 1
ALWAYS = -1  # before every offset
PARTITION, CHANGE, CLEAR_ELR, REMOVE_TOPIC = "Partition", "Change", "ClearElr", "RemoveTopic"
_KEPT_MIN = 20_000  # steps that are remembered
_KEPT_PER_PARTITION = 4

Ids = tuple[int, ...]


def partition_key(topic_id: UUID, part: int) -> bytes:
    """A partition as its records begin: its number (4 bytes) and topic id."""
    return part.to_bytes(4, "big", signed=True) + topic_id.bytes


class Fields(NamedTuple):
    """The fields of a partition; of a record those that it sets, None for the others."""

    isr: Any = None
    leader: Any = None
    replicas: Any = None
    adding: Any = None
    removing: Any = None
    elr: Any = None
    last_elr: Any = None
    recovery: Any = None
    directories: Any = None


NOTHING = Fields()


class PartitionState:
    """A state of partitions; equal ones are one object.

    Shapes:  alive: the partition exists; None: it never did. may_keep: its ISR may be its last
             member although that is inactive; None: not known.
    """

    __slots__ = (*Fields._fields, "alive", "fields", "may_keep")

    isr: Ids
    leader: int
    replicas: Ids
    adding: Ids
    removing: Ids
    elr: Ids
    last_elr: Ids
    recovery: int
    directories: tuple[UUID, ...]

    def __init__(self, fields: Fields, alive: bool | None, may_keep: bool | None) -> None:
        (self.isr, self.leader, self.replicas, self.adding, self.removing, self.elr,
         self.last_elr, self.recovery, self.directories) = fields  # fmt: skip
        self.fields, self.alive, self.may_keep = fields, alive, may_keep

    @property
    def moves(self) -> bool:
        """A reassignment is under way."""
        return bool(self.adding or self.removing)

    @property
    def keeps_last_member(self) -> bool:
        """The ISR is the last member, which stays, active or not, while there is no leader."""
        alone = len(self.isr) == 1 and self.leader == NO_LEADER
        return alone and self.may_keep is not False

    def directory_of(self, member: int) -> UUID | None:
        """The log directory of a replica; None if the log does not record it."""
        if not self.directories or len(self.directories) != len(self.replicas):
            return None
        if member not in self.replicas:
            return None
        return self.directories[self.replicas.index(member)]


NEVER_WAS = PartitionState(NOTHING, None, None)


class Sets:
    """The fields that a record sets; equal ones are one object.

    Shapes:  leader_epoch, partition_epoch: of a new partition, else None.
    """

    __slots__ = ("fields", "kind", "leader_epoch", "partition_epoch")

    def __init__(
        self,
        kind: str,
        fields: Fields,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
    ) -> None:
        self.kind, self.fields = kind, fields
        self.leader_epoch, self.partition_epoch = leader_epoch, partition_epoch


_REMOVED = Sets(REMOVE_TOPIC, NOTHING)
_CLEARED = Sets(CLEAR_ELR, Fields(elr=(), last_elr=()))


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionStep:
    """One record's change of a partition, and what it is judged under.

    One object stands for all records that do the same, so what it is is worked out once.

    Shapes:  kind: Partition Change ClearElr RemoveTopic. sets: the fields that the record has; None
             for those that it leaves. judged: the log holds the record (else a snapshot does).
             min_isr: the effective min.insync.replicas while ELR is on; None if not configured.
             leader_epoch, partition_epoch: of a new partition's record.
    Units:   level: of metadata.version.
    """

    kind: str
    judged: bool
    level: int
    elr_on: bool
    min_isr: int | None
    sets: Fields
    before: PartitionState
    after: PartitionState
    leader_epoch: int | None
    partition_epoch: int | None

    @cached_property
    def leaves_a_state(self) -> bool:
        """The partition exists after it."""
        known = self.kind in (CHANGE, CLEAR_ELR) and bool(self.before.alive)
        return known or self.kind == PARTITION

    @cached_property
    def is_change(self) -> bool:
        """A PartitionChangeRecord of the log changes a partition that exists."""
        return self.judged and self.kind == CHANGE and bool(self.before.alive)

    @cached_property
    def creates(self) -> bool:
        """It creates the partition, and the log holds it."""
        return self.judged and self.kind == PARTITION and self.before.alive is None

    @cached_property
    def entering(self) -> Ids:
        """The replicas that enter the ISR, each once."""
        before = self.before.isr or ()
        return tuple(dict.fromkeys(m for m in self.after.isr or () if m not in before))

    @cached_property
    def chosen(self) -> Ids:
        """The members that the controller puts into the ISR, or a log directory, by itself.

        It does so for a new partition, by an election, and where a replica moves to another
        directory; the other members are there because their leader proposed them.
        """
        if not self.judged or not self.leaves_a_state:
            return ()
        if self.kind == PARTITION:
            return self.entering
        return tuple(
            member
            for member in self.after.isr
            if (member == self.sets.leader if member in self.entering else self._is_moved(member))
        )

    def _is_moved(self, member: int) -> bool:
        """The state before had the replica in another log directory."""
        before, after = self.before.directory_of(member), self.after.directory_of(member)
        return before is not None and after is not None and before != after

    @cached_property
    def isr_shrinks(self) -> bool:
        """A replica leaves the ISR."""
        return any(m not in self.after.isr for m in self.before.isr or ())

    @cached_property
    def removes_replicas(self) -> bool:
        """A replica leaves the replicas."""
        return any(m not in self.after.replicas for m in self.before.replicas or ())

    @cached_property
    def names_leader_again(self) -> bool:
        """The record names the leader that there is, which raises the leader epoch."""
        return self.sets.leader is not None and self.sets.leader == self.before.leader

    @cached_property
    def elected(self) -> int | None:
        """The leader that it elects."""
        leader = self.sets.leader
        if not self.is_change or leader is None or leader < 0 or leader == self.before.leader:
            return None
        return int(leader)

    @cached_property
    def ends_reassignment(self) -> bool:
        """A reassignment was under way, and is not any more."""
        return self.before.moves and not self.after.moves

    @cached_property
    def is_unclean(self) -> bool:
        """It elects a leader from outside ISR and ELR, not by completing a reassignment."""
        leader = self.sets.leader
        if not self.is_change or leader is None or leader < 0:
            return False
        if leader in self.before.isr or leader in (self.before.elr or ()):
            return False
        return not (self.ends_reassignment and leader in self.after.isr)


class PartitionHistory:
    """The history of one partition.

    Shapes:  last: the last step. since: ISR member -> the offset at which its leader proposed it,
             ALWAYS where the controller itself put it there; also of members that have left.
    """

    __slots__ = (
        "last", "leader_epoch", "number", "offset", "partition_epoch", "since", "state", "topic",
        "unclean_epoch",
    )  # fmt: skip

    def __init__(self, topic: Topic, number: int) -> None:
        self.topic, self.number = topic, number
        self.state = NEVER_WAS
        self.last: PartitionStep | None = None
        self.offset = -1  # of the last step
        self.since: dict[int, int] = {}
        self.leader_epoch = self.partition_epoch = -1
        self.unclean_epoch = -1  # the leader epoch of the last unclean election

    @property
    def name(self) -> str:
        """The topic's name, empty where no record has it."""
        return self.topic.name or ""


OnStep = Callable[[PartitionHistory, PartitionStep], None]


class PartitionHistories:
    """Folds the records of partitions, each into one step.

    Shapes:  on_step: gets each step once it is applied.
    """

    def __init__(
        self,
        cluster: Cluster,
        on_step: OnStep,
    ) -> None:
        # By ``partition_key``: to hash the UUID of every record takes longer than to judge most.
        self.partitions: dict[bytes, PartitionHistory] = {}
        self._cluster = cluster
        self._on_step = on_step
        self._sets: dict[tuple[Any, ...], Sets] = {}
        self._states: dict[tuple[Any, ...], PartitionState] = {}
        self._steps: dict[tuple[Any, ...], PartitionStep] = {}

    def get(self, topic_id: UUID, number: int) -> PartitionHistory | None:
        """A partition of which there was a record."""
        return self.partitions.get(partition_key(topic_id, number))

    def on_partition(self, record: r.PartitionRecord) -> None:
        """A partition is created."""
        key = partition_key(record.topic_id, record.partition_id)
        partition = self.partitions.get(key)
        if partition is None:
            partition = self._first(key, record.topic_id, record.partition_id)
        fields = Fields(
            tuple(record.isr),
            record.leader,
            tuple(record.replicas),
            tuple(record.adding_replicas),
            tuple(record.removing_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
            record.leader_recovery_state,
            tuple(record.directories),
        )
        sets = self._alike(PARTITION, fields, record.leader_epoch, record.partition_epoch)
        self._take(partition, sets)

    def on_change(self, record: r.PartitionChangeRecord) -> None:
        """A partition is changed."""
        key, number = partition_key(record.topic_id, record.partition_id), record.partition_id
        if record.replicas is not None:
            topic = self._cluster.topic(record.topic_id)
            if number in topic.parts:
                topic.parts[number] = len(record.replicas)
        partition = self.partitions.get(key)
        if partition is None:
            partition = self._first(key, record.topic_id, number)
        recovery = record.leader_recovery_state
        fields = Fields(
            _ids(record.isr),
            None if record.leader == -2 else record.leader,
            _ids(record.replicas),
            _ids(record.adding_replicas),
            _ids(record.removing_replicas),
            _ids(record.eligible_leader_replicas),
            _ids(record.last_known_elr),
            None if recovery == -1 else recovery,
            None if record.directories is None else tuple(record.directories),
        )
        self._take(partition, self._alike(CHANGE, fields, None, None))

    def on_clear_elr(self, record: r.ClearElrRecord) -> None:
        """Partitions with eligible leader replicas, or a last known one, lose them."""
        for topic in list(self._cluster.cleared_by(record)):
            for partition in self._of_topic(topic):
                if partition.state.elr or partition.state.last_elr:
                    self._take(partition, _CLEARED)

    def on_remove_topic(self, topic: Topic) -> None:
        """The partitions of a topic are gone with it."""
        for partition in list(self._of_topic(topic)):
            self._take(partition, _REMOVED)

    def _of_topic(self, topic: Topic) -> Iterator[PartitionHistory]:
        for number in topic.parts:
            partition = self.get(topic.topic_id, number)
            if partition is not None:
                yield partition

    def _first(self, key: bytes, topic_id: UUID, number: int) -> PartitionHistory:
        """A partition of which there was no record so far."""
        partition = self.partitions[key] = PartitionHistory(self._cluster.topic(topic_id), number)
        return partition

    def _alike(self, kind: str, fields: Fields, *epochs: int | None) -> Sets:
        key = (kind, fields, epochs)
        sets = self._sets.get(key)
        if sets is None:
            if len(self._sets) >= _KEPT_MIN:
                self._sets.clear()
            sets = self._sets[key] = Sets(kind, fields, *epochs)
        return sets

    def _take(self, partition: PartitionHistory, sets: Sets) -> None:
        cluster = self._cluster
        min_isr = cluster.min_isr(partition.topic) if cluster.elr_on else None
        level, elr_on, judged = cluster.level, cluster.elr_on, cluster.judged
        key = (partition.state, sets, min_isr, judged, level, elr_on)
        step = self._steps.get(key)
        if step is None:
            if len(self._steps) >= _KEPT_MIN + _KEPT_PER_PARTITION * len(self.partitions):
                self._steps.clear()
                self._states.clear()
            step = self._steps[key] = self._step(*key)
        partition.state = step.after
        offset = partition.offset = cluster.offset
        kind = sets.kind
        if kind == CHANGE:
            partition.partition_epoch += 1
            if sets.fields.leader is not None:
                partition.leader_epoch += 1
        elif kind == CLEAR_ELR:
            partition.partition_epoch += 1
        elif kind == PARTITION:
            partition.leader_epoch = sets.leader_epoch or 0
            partition.partition_epoch = sets.partition_epoch or 0
        for member in step.entering:
            partition.since[member] = offset
        for member in step.chosen:
            partition.since[member] = ALWAYS
        if step.is_unclean:
            partition.unclean_epoch = partition.leader_epoch
        partition.last = step
        self._on_step(partition, step)

    def _step(
        self,
        before: PartitionState,
        sets: Sets,
        min_isr: int | None,
        judged: bool,
        level: int,
        elr_on: bool,
    ) -> PartitionStep:
        fields = Fields(
            *(
                old if new is None else new
                for new, old in zip(sets.fields, before.fields, strict=True)
            )
        )
        may_keep = before.may_keep
        if sets.fields.isr is not None:
            completes = sets.fields.adding == () or sets.fields.removing == ()
            may_keep = not elr_on or not judged or completes
        elif sets.fields.leader == NO_LEADER and not elr_on:
            may_keep = True  # ELR was turned off after the ISR had come down to one
        alive = before.alive
        if sets.kind in (PARTITION, REMOVE_TOPIC):
            alive = sets.kind == PARTITION
        after = PartitionState(fields, alive, may_keep)
        return PartitionStep(
            kind=sets.kind,
            judged=judged,
            level=level,
            elr_on=elr_on,
            min_isr=min_isr,
            sets=sets.fields,
            before=before,
            after=self._states.setdefault((fields, alive, may_keep), after),
            leader_epoch=sets.leader_epoch,
            partition_epoch=sets.partition_epoch,
        )


def _ids(numbers: Any) -> Ids | None:
    return None if numbers is None else tuple(numbers)
