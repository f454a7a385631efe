"""The fold of a log in Python: one object per partition, broker and topic.

The same quantities as the columns of the SQL views, under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any
from uuid import UUID

from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.configs import MIN_ISR
from minicluster.protocol.records import ConfigRecord
from minicluster.verify.rules.log.partitions import FIELDS

TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
State = dict[str, Any]
EMPTY: State = dict.fromkeys(FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One record of one partition: the fields that it sets, the state before and after."""

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
    alive_before: bool | None  # the partition existed; None: never before
    may_keep: bool
    since: Mapping[int, int]  # ISR member -> the offset at which it came in
    leader_epoch: int | None = None
    partition_epoch: int | None = None

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
    def added(self) -> list[int]:
        """The replicas that enter the ISR, each once."""
        before = self.before["isr"] or ()
        return list(dict.fromkeys(m for m in self.after["isr"] or () if m not in before))

    @property
    def shrank(self) -> bool:
        """A replica leaves the ISR."""
        return any(m not in self.after["isr"] for m in self.before["isr"] or ())

    @property
    def replicas_removed(self) -> bool:
        """A replica leaves the replicas."""
        return any(m not in self.after["replicas"] for m in self.before["replicas"] or ())

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


@dataclass(slots=True)
class PartitionHistory:
    """The fold of one partition's records."""

    state: State = field(default_factory=lambda: dict(EMPTY))
    alive: bool | None = None
    may_keep: bool | None = None
    since: dict[int, int] = field(default_factory=dict)
    step: Step | None = None
    fenced_inside: set[int] = field(default_factory=set)  # members found fenced since that step
    leader_epoch: int = -1
    was_unclean: bool = False  # an unclean election came, now or earlier


@dataclass(slots=True, kw_only=True)
class Interval:
    """A partition's state from the end of an operation to the next one that changes it."""

    step: Step
    inactive: set[int] = field(default_factory=set)  # members found inactive
    leader_inactive: bool = False
    reincarnated: set[int] = field(default_factory=set)  # members found as new incarnations
    in_lost_directory: set[int] = field(default_factory=set)  # members found there


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
    may_stay: bool = False  # in its ISRs although its new incarnation is still fenced (Kafka 3.x)

    @property
    def active(self) -> bool:
        """Registered, not fenced, not in controlled shutdown."""
        return self.registered and not self.fenced and not self.in_controlled_shutdown


@dataclass(slots=True)
class TopicHistory:
    """The fold of the records of one topic id."""

    name: str | None = None
    kind: str | None = None  # Topic, RemoveTopic
    topics: int = 0
    partitions: int = 0
    parts: dict[int, int] = field(default_factory=dict)  # partition -> number of replicas


@dataclass(slots=True)
class MinIsr:
    """min.insync.replicas by config: of a topic, else of the cluster."""

    configured: dict[str, int] = field(default_factory=dict)

    def set(self, record: ConfigRecord) -> None:
        """Apply a config record; other configs are ignored."""
        if record.name != MIN_ISR:
            return
        if record.resource_type == TOPIC_RESOURCE:
            key = "topic " + record.resource_name
        elif record.resource_type == _BROKER_RESOURCE and not record.resource_name:
            key = "cluster"
        else:
            return
        if record.value is None:
            self.configured.pop(key, None)
        elif record.value.strip().isdecimal():
            self.configured[key] = int(record.value)

    def forget(self, topic: TopicHistory) -> None:
        """Drop the config of a deleted topic."""
        self.configured.pop(f"topic {topic.name}", None)

    def of(self, topic: TopicHistory) -> int | None:
        """The effective value of a topic, at most its replicas; None if it is not configured."""
        value = self.configured.get(f"topic {topic.name}", self.configured.get("cluster"))
        replicas = topic.parts.get(0)
        return None if value is None or replicas is None else min(value, replicas)
