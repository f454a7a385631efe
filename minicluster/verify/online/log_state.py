"""The state that the online rules share: the fold of the log, and the operation in hand."""

from __future__ import annotations

from dataclasses import field
from uuid import UUID

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.online.findings import Findings
from minicluster.verify.online.history import (
    BrokerHistory,
    MinIsr,
    PartitionHistory,
    Step,
    TopicHistory,
)
from minicluster.verify.online.share import Share
from minicluster.verify.online.steps.transitions import Changes, Transitions
from minicluster.verify.rules.model import WITHOUT_RECORD

PartitionKey = tuple[UUID, int]


@dataclass(slots=True)
class OperationInHand:
    """The events of the operation that is being read, judged at its end."""

    # The last step of each partition.
    steps: dict[PartitionHistory, Step] = field(default_factory=dict)
    # Unclean elections, each with the members of ISR and ELR that were active then.
    unclean: list[tuple[Step, tuple[int, ...]]] = field(default_factory=list)
    brokers: dict[int, int] = field(default_factory=dict)  # broker -> offset of its last record
    new_topics: list[tuple[UUID, str, int]] = field(default_factory=list)  # id, name, offset
    new_partitions: dict[UUID, int] = field(default_factory=dict)  # topic id -> how many
    new_incarnations: list[tuple[int, int]] = field(default_factory=list)  # broker, offset
    lost_directories: list[tuple[int, UUID, int]] = field(default_factory=list)
    orphan_configs: list[tuple[str, int]] = field(default_factory=list)  # topic name, offset


@dataclass(slots=True)
class LogState:
    """The fold of the committed log up to the record in hand.

    Units:  clean_from: the offset at which a registration in hand may begin; judged is False for
            the records of a snapshot.
    """

    findings: Findings
    transitions: Transitions
    share: Share | None = None  # of the partitions that are judged; None: all
    judged: bool = True
    clean_from: int = 0
    mv: int | None = None  # none: the log has no FeatureLevelRecord yet
    elr: bool = False
    min_isr: MinIsr = field(default_factory=MinIsr)
    topics: dict[UUID, TopicHistory] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # topic name -> kind of its last record
    live: dict[str, UUID] = field(default_factory=dict)  # topic name -> id
    partitions: dict[PartitionKey, PartitionHistory] = field(default_factory=dict)
    brokers: dict[int, BrokerHistory] = field(default_factory=dict)
    # The state of each partition at the end of the last operation that changed it.
    intervals: dict[PartitionHistory, Step] = field(default_factory=dict)
    lost: dict[tuple[int, UUID], int] = field(default_factory=dict)  # directory -> offset
    owners: dict[UUID, int] = field(default_factory=dict)  # directory -> broker
    operation: OperationInHand = field(default_factory=OperationInHand)
    allowed: frozenset[int] | None = None  # in an ISR; None since a broker has changed
    changes: Changes = field(default_factory=Changes)

    @property
    def level(self) -> int:
        """The metadata.version in effect."""
        return WITHOUT_RECORD if self.mv is None else self.mv

    def owns(self, topic_id: UUID, part: int) -> bool:
        """The partition is judged here."""
        return self.share is None or self.share.owns(topic_id, part)

    def topic(self, topic_id: UUID) -> TopicHistory:
        """The topic of an id, with or without records so far."""
        found = self.topics.get(topic_id)
        if found is None:
            found = self.topics[topic_id] = TopicHistory()
        return found

    def partition(self, topic_id: UUID, part: int) -> PartitionHistory:
        """A partition, with or without records so far."""
        found = self.partitions.get((topic_id, part))
        if found is None:
            found = PartitionHistory(topic_id, part, self.topic(topic_id))
            self.partitions[topic_id, part] = found
        return found

    def is_active(self, broker: int) -> bool:
        """The broker is registered, not fenced and not in controlled shutdown."""
        known = self.brokers.get(broker)
        return known is not None and known.active

    def allowed_in_isr(self) -> frozenset[int]:
        """The brokers that may be in an ISR now."""
        if self.allowed is None:
            self.allowed = frozenset(filter(self.may_be_in_isr, self.brokers))
        return self.allowed

    def may_be_in_isr(self, broker: int) -> bool:
        """The broker is active, or a new incarnation that its release leaves in its ISRs."""
        known = self.brokers.get(broker)
        return known is not None and (known.active or known.may_stay)
