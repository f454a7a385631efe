"""The fold of a log in Python: one object per partition, broker and topic.

The same quantities as the columns of the SQL views, under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from uuid import UUID

from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.configs import MIN_ISR
from minicluster.protocol.records import ConfigRecord
from minicluster.verify.online.steps.transitions import (
    NO_RECORD_YET,
    Judgement,
    Situation,
    Transition,
)

TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4


@dataclass(slots=True, kw_only=True, eq=False)
class Step:
    """One record of one partition, and the state that it leaves until the next one.

    Shapes:  inactive, reincarnated, in_lost_directory, fenced_inside: members of the ISR that were
             found to be so since then.
    """

    judgement: Judgement
    transition: Transition
    offset: int
    topic: str | None
    part: int
    since: Mapping[int, int]  # ISR member -> the offset at which it came in
    inactive: frozenset[int] = frozenset()
    leader_inactive: bool = False
    reincarnated: frozenset[int] = frozenset()
    in_lost_directory: frozenset[int] = frozenset()
    fenced_inside: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class PartitionHistory:
    """The fold of one partition's records."""

    topic_id: UUID
    part: int
    topic: TopicHistory
    situation: Situation = NO_RECORD_YET
    since: Mapping[int, int] = field(default_factory=dict)
    step: Step | None = None
    leader_epoch: int = -1
    was_unclean: bool = False  # an unclean election came, now or earlier


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
