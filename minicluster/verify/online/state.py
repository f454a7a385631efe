"""What the online checker remembers: one object per partition and per broker.

The same quantities as the columns of the SQL views, under the same names, folded by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from minicluster.protocol.records import ConfigRecord
from minicluster.verify.rules.log.partitions import FIELDS

TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_MIN_ISR = "min.insync.replicas"
State = dict[str, Any]
EMPTY: State = dict.fromkeys(FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One record as one partition sees it: what it sets, the state before and after."""

    kind: str  # Partition Change ClearElr RemoveTopic
    judged: bool
    offset: int
    topic: str | None
    part: int
    mv: int
    elr_on: bool
    min_isr: int | None
    sets: State
    before: State
    after: State
    alive_before: bool | None  # whether there was such a partition; None: never
    may_keep: bool
    since: Mapping[int, int]  # ISR member -> the offset at which it came in
    leader_epoch: int | None = None
    partition_epoch: int | None = None

    @property
    def state(self) -> bool:
        """Whether it leaves a state to judge."""
        known = self.kind in ("Change", "ClearElr") and bool(self.alive_before)
        return known or self.kind == "Partition"

    @property
    def change(self) -> bool:
        """Whether it changes a known partition."""
        return self.judged and self.kind == "Change" and bool(self.alive_before)

    @property
    def added(self) -> list[int]:
        """Who enters the ISR, each once."""
        before = self.before["isr"] or ()
        return list(dict.fromkeys(m for m in self.after["isr"] or () if m not in before))

    @property
    def shrank(self) -> bool:
        """Whether somebody leaves the ISR."""
        return any(m not in self.after["isr"] for m in self.before["isr"] or ())

    @property
    def replicas_removed(self) -> bool:
        """Whether somebody leaves the replicas."""
        return any(m not in self.after["replicas"] for m in self.before["replicas"] or ())

    @property
    def unclean(self) -> bool:
        """Whether it elects a leader from outside ISR and ELR, not by ending a reassignment."""
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
        """Whether the ISR is the one last member kept while there is no leader."""
        return len(self.after["isr"]) == 1 and self.after["leader"] == -1 and self.may_keep

    def directory_of(self, member: int) -> UUID | None:
        """Where a replica lies, None if the log does not say."""
        directories, replicas = self.after["directories"], list(self.after["replicas"])
        if not directories or len(directories) != len(replicas) or member not in replicas:
            return None
        found: UUID = directories[replicas.index(member)]
        return found


@dataclass(slots=True)
class PartitionHistory:
    """The fold of one partition's records."""

    state: State = field(default_factory=lambda: dict(EMPTY))
    alive: bool | None = None
    may_keep: bool | None = None
    since: dict[int, int] = field(default_factory=dict)
    step: Step | None = None
    fenced_inside: set[int] = field(default_factory=set)  # members found fenced since that step


@dataclass(slots=True, kw_only=True)
class Piece:
    """A partition's state from the end of one operation to the next that touches it."""

    step: Step
    inactive: set[int] = field(default_factory=set)  # members already found inactive
    leader_inactive: bool = False
    newcomers: set[int] = field(default_factory=set)  # members found registered anew
    lost_directory: set[int] = field(default_factory=set)  # members found in a failed directory


@dataclass(slots=True)
class BrokerHistory:
    """The fold of one broker's records."""

    registered: bool = False
    epoch: int = -1
    highest_epoch: int | None = None
    incarnation: UUID | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()

    @property
    def active(self) -> bool:
        """Registered, not fenced, not shutting down."""
        return self.registered and not self.fenced and not self.in_controlled_shutdown


@dataclass(slots=True)
class TopicHistory:
    """The fold of what concerns one topic id."""

    name: str | None = None
    kind: str | None = None  # Topic, RemoveTopic
    topics: int = 0
    partitions: int = 0
    parts: dict[int, int] = field(default_factory=dict)  # partition -> number of replicas


@dataclass(slots=True)
class MinIsr:
    """min.insync.replicas as configs tell it: of a topic, else of the cluster."""

    told: dict[str, int] = field(default_factory=dict)

    def set(self, record: ConfigRecord) -> None:
        """Follow a config; others than this one are ignored."""
        if record.name != _MIN_ISR:
            return
        if record.resource_type == TOPIC_RESOURCE:
            key = "topic " + record.resource_name
        elif record.resource_type == _BROKER_RESOURCE and not record.resource_name:
            key = "cluster"
        else:
            return
        if record.value is None:
            self.told.pop(key, None)
        elif record.value.strip().isdecimal():
            self.told[key] = int(record.value)

    def forget(self, topic: TopicHistory) -> None:
        """The topic is gone."""
        self.told.pop(f"topic {topic.name}", None)

    def of(self, topic: TopicHistory) -> int | None:
        """What holds for a topic, never more than it has replicas; None if nobody told."""
        told = self.told.get(f"topic {topic.name}", self.told.get("cluster"))
        replicas = topic.parts.get(0)
        return None if told is None or replicas is None else min(told, replicas)
