"""Changes of partitions, and the steps from one state to the next that they make.

The records of a log differ in their partition and offset, and little else: a cluster that restarts
its brokers repeats the same few changes in all of its partitions. So a change is one object for all
records that set the same fields, a state one object for all partitions that are in it, and what the
rules find in a step from one to another is worked out once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from minicluster.lazy_dataclass import dataclass
from minicluster.protocol import records as r
from minicluster.verify.online.findings import Counts
from minicluster.verify.rules.log.partitions import FIELDS

State = Mapping[str, Any]
EMPTY: State = dict.fromkeys(FIELDS)
_KEPT_MIN = 20_000  # steps that are remembered
_KEPT_PER_PARTITION = 4


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The fields that a record sets, None for those that it leaves; equal ones are one object."""

    kind: str  # Partition Change ClearElr RemoveTopic
    sets: State
    leader_epoch: int | None = None
    partition_epoch: int | None = None


REMOVED = Change("RemoveTopic", EMPTY)
CLEARED = Change("ClearElr", {**EMPTY, "elr": (), "last_elr": ()})


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """A state of partitions, as far as the next change is judged by it; equal ones are one object.

    Shapes:  alive: the partition exists, None: it never did; may_keep: its ISR may be its last
             member although that is inactive, None: not known.
    """

    fields: State
    alive: bool | None
    may_keep: bool | None


NO_RECORD_YET = Situation(EMPTY, None, None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transition:
    """A change of a situation: the fields that it sets, the state before and after."""

    kind: str
    judged: bool
    mv: int
    elr_on: bool
    min_isr: int | None
    sets: State
    before: State
    after: State
    alive_before: bool | None
    may_keep: bool
    leader_epoch: int | None
    partition_epoch: int | None

    @property
    def state(self) -> bool:
        """It leaves a state to judge."""
        known = self.kind in ("Change", "ClearElr") and bool(self.alive_before)
        return known or self.kind == "Partition"

    @property
    def change(self) -> bool:
        """It changes an existing partition, and the log holds it."""
        return self.judged and self.kind == "Change" and bool(self.alive_before)

    @property
    def created(self) -> bool:
        """It creates the partition, and the log holds it."""
        return self.judged and self.kind == "Partition" and self.alive_before is None

    @property
    def added(self) -> tuple[int, ...]:
        """The replicas that enter the ISR, each once."""
        before = self.before["isr"] or ()
        return tuple(dict.fromkeys(m for m in self.after["isr"] or () if m not in before))

    @property
    def shrank(self) -> bool:
        """A replica leaves the ISR."""
        return any(m not in self.after["isr"] for m in self.before["isr"] or ())

    @property
    def replicas_removed(self) -> bool:
        """A replica leaves the replicas."""
        return any(m not in self.after["replicas"] for m in self.before["replicas"] or ())

    @property
    def elected(self) -> int | None:
        """The leader that it elects."""
        leader = self.sets["leader"]
        if not self.change or leader is None or leader < 0 or leader == self.before["leader"]:
            return None
        return int(leader)

    @property
    def unclean(self) -> bool:
        """It elects a leader from outside ISR and ELR, not by completing a reassignment."""
        leader = self.sets["leader"]
        if not self.change or leader is None or leader < 0:
            return False
        if leader in self.before["isr"] or leader in (self.before["elr"] or ()):
            return False
        was_moving = bool(self.before["adding"] or self.before["removing"])
        moves = bool(self.after["adding"] or self.after["removing"])
        return not (was_moving and not moves and leader in self.after["isr"])

    @property
    def keep(self) -> bool:
        """The ISR is the last member, which stays while there is no leader."""
        return len(self.after["isr"]) == 1 and self.after["leader"] == -1 and self.may_keep

    def directory_of(self, member: int) -> UUID | None:
        """The log directory of a replica, None if the log does not record it."""
        directories, replicas = self.after["directories"], list(self.after["replicas"])
        if not directories or len(directories) != len(replicas) or member not in replicas:
            return None
        found: UUID = directories[replicas.index(member)]
        return found


Counted = tuple[tuple[Counts, str, int], ...]
"""Cases of rules: where they are counted, the rule, how many."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judgement:
    """The part that is the same for all steps that make the same transition.

    Shapes:  found: rule, check and columns of findings. entering, placed_on: replicas that must be
             active (A3, E17), empty where nothing is promised. elected: a leader that must be
             active (A4), in a directory that is online (D2). The rest is about the state that it
             leaves at the end of an operation, empty where it leaves none: members and leader must
             be active (A1, A2), members in directories that are not lost (D1).
    """

    transition: Transition
    following: Situation
    counted: Counted
    found: tuple[tuple[str, int, Mapping[str, Any]], ...]
    added: tuple[int, ...]
    is_unclean: bool
    entering: tuple[int, ...]
    placed_on: tuple[int, ...]
    elected: int | None
    counted_at_end: Counted
    is_state: bool
    recovers_badly: bool
    members: tuple[int, ...]
    leader: int | None
    directories: tuple[tuple[int, UUID], ...]


class Changes:
    """The changes that records make, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Change] = {}

    def of_change(self, record: r.PartitionChangeRecord) -> Change:
        """The fields that a change of a partition sets."""
        recovery = record.leader_recovery_state
        return self._one(
            "Change",
            None,
            None,
            record.isr,
            None if record.leader == -2 else record.leader,
            record.replicas,
            record.adding_replicas,
            record.removing_replicas,
            record.eligible_leader_replicas,
            record.last_known_elr,
            None if recovery == -1 else recovery,
            record.directories,
        )

    def of_partition(self, record: r.PartitionRecord) -> Change:
        """The fields of a new partition: all are set."""
        return self._one(
            "Partition",
            record.leader_epoch,
            record.partition_epoch,
            record.isr,
            record.leader,
            record.replicas,
            record.adding_replicas,
            record.removing_replicas,
            record.eligible_leader_replicas or (),
            record.last_known_elr or (),
            record.leader_recovery_state,
            record.directories,
        )

    def _one(self, *content: Any) -> Change:
        """The change of a kind, epochs, and fields in the order of ``FIELDS``."""
        change = self._known.get(content)
        if change is None:
            if len(self._known) >= _KEPT_MIN:
                self._known.clear()
            kind, leader_epoch, partition_epoch, *fields = content
            sets = dict(zip(FIELDS, fields, strict=True))
            change = self._known[content] = Change(kind, sets, leader_epoch, partition_epoch)
        return change


_Key = tuple[Situation, Change, int | None, bool, int, bool]


class Transitions:
    """The judgements of transitions, each made once.

    Shapes:  judge: makes one. As many are remembered as the number of partitions allows.
    """

    def __init__(self, judge: Callable[[Transition, Situation], Judgement]) -> None:
        self._judge = judge
        self._known: dict[_Key, Judgement] = {}
        self._situations: dict[tuple[Any, ...], Situation] = {}

    def of(
        self,
        situation: Situation,
        change: Change,
        *,
        min_isr: int | None,
        judged: bool,
        mv: int,
        elr_on: bool,
        partitions: int,
    ) -> Judgement:
        """The judgement of a change in a situation.

        Shapes:  judged: the log holds it, and no snapshot. partitions: how many there are.
        """
        key = (situation, change, min_isr, judged, mv, elr_on)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT_MIN + _KEPT_PER_PARTITION * partitions:
                self._known.clear()
                self._situations.clear()
            found = self._known[key] = self._new(*key)
        return found

    def _new(
        self,
        situation: Situation,
        change: Change,
        min_isr: int | None,
        judged: bool,
        mv: int,
        elr_on: bool,
    ) -> Judgement:
        sets, before = change.sets, situation.fields
        after = {n: before[n] if value is None else value for n, value in sets.items()}
        may_keep = situation.may_keep
        if sets["isr"] is not None:
            completes = sets["adding"] == () or sets["removing"] == ()
            may_keep = not elr_on or not judged or completes
        elif sets["leader"] == -1 and not elr_on:
            may_keep = True  # ELR was turned off after the ISR had come down to one
        alive = situation.alive
        if change.kind in ("Partition", "RemoveTopic"):
            alive = change.kind == "Partition"
        transition = Transition(
            kind=change.kind,
            judged=judged,
            mv=mv,
            elr_on=elr_on,
            min_isr=min_isr,
            sets=sets,
            before=before,
            after=after,
            alive_before=situation.alive,
            may_keep=may_keep is not False,
            leader_epoch=change.leader_epoch,
            partition_epoch=change.partition_epoch,
        )
        content = (*after.values(), alive, may_keep)
        following = self._situations.setdefault(content, Situation(after, alive, may_keep))
        return self._judge(transition, following)
