"""The cluster as a metadata log has it: settings, topics and brokers, at the current record.

Other histories read this one: which brokers are active, which name a topic has, which
``metadata.version`` is in effect. It holds no partitions, so it is small.

=======================================  =========================================================
takes                                    state
=======================================  =========================================================
FeatureLevelRecord                       levels of metadata.version and of ELR
RegisterControllerRecord                 releases that may have written the log
ConfigRecord                             min.insync.replicas of the cluster and of each topic
TopicRecord, RemoveTopicRecord,          by topic id: name, life, number of replicas by partition
PartitionRecord
RegisterBrokerRecord and what follows    by broker id: registration, fencing, log directories
=======================================  =========================================================

Bounded by the brokers and by the topics that ever were.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from minicluster.metadata.image.configs import MIN_ISR
from minicluster.protocol import records as r
from minicluster.verify.histories.releases import Releases
from minicluster.verify.model import WITHOUT_RECORD
from minicluster.verify.promises import Promises

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4  # ConfigResource.Type


@dataclass(slots=True)
class Broker:
    """A broker as its records have it.

    Shapes:  may_stay: it has registered and is fenced, and its release leaves it in the ISRs until
             it is unfenced: a new incarnation (Kafka 3.x below 4.0-IV1), or the same one
             (before ``brokers.KEEPS_EPOCH``).
    """

    registered: bool = False
    epoch: int = -1
    highest_epoch: int | None = None
    incarnation: UUID | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    rack: str | None = None
    may_stay: bool = False

    @property
    def active(self) -> bool:
        """Registered, not fenced, not in controlled shutdown."""
        return self.registered and not self.fenced and not self.in_controlled_shutdown

    @property
    def may_be_in_isr(self) -> bool:
        """Active, or a new incarnation that its release leaves in its ISRs."""
        return self.active or self.may_stay


@dataclass(slots=True)
class Topic:
    """A topic id as its records have it.

    Shapes:  is_live: a TopicRecord came, and no RemoveTopicRecord since. parts: the number of
             replicas of each partition that exists.
    """

    topic_id: UUID
    name: str | None = None
    is_live: bool = False
    topic_records: int = 0
    partition_records: int = 0
    parts: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Cluster:
    """The fold of the committed log, but for its partitions.

    Shapes:  judged: False while the records of a snapshot are read. mv: None until the log has a
             FeatureLevelRecord. names: topic name -> the topic that has it, or had it last.
    Units:   offset of the current record.
    """

    promises: Promises
    offset: int = 0
    judged: bool = True
    mv: int | None = None
    elr_on: bool = False
    topics: dict[UUID, Topic] = field(default_factory=dict)
    names: dict[str, Topic] = field(default_factory=dict)
    brokers: dict[int, Broker] = field(default_factory=dict)
    min_isr_of: dict[str, int] = field(default_factory=dict)  # "cluster", "topic <name>"
    releases: Releases = field(init=False)
    _allowed: frozenset[int] | None = None

    def __post_init__(self) -> None:
        self.releases = Releases(self.promises.release)

    @property
    def level(self) -> int:
        """The metadata.version in effect."""
        return WITHOUT_RECORD if self.mv is None else self.mv

    def topic(self, topic_id: UUID) -> Topic:
        """The topic of an id, with or without records so far."""
        topic = self.topics.get(topic_id)
        if topic is None:
            topic = self.topics[topic_id] = Topic(topic_id)
        return topic

    def live(self, name: str) -> Topic | None:
        """The topic that has a name now."""
        topic = self.names.get(name)
        return topic if topic is not None and topic.is_live else None

    def broker(self, broker_id: int) -> Broker:
        """A broker, with or without records so far."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            broker = self.brokers[broker_id] = Broker()
        return broker

    def is_active(self, broker_id: int) -> bool:
        """The broker is registered, not fenced and not in controlled shutdown."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.active

    def allowed_in_isr(self) -> frozenset[int]:
        """The brokers that may be in an ISR now."""
        if self._allowed is None:
            self._allowed = frozenset(
                broker_id for broker_id, broker in self.brokers.items() if broker.may_be_in_isr
            )
        return self._allowed

    def brokers_changed(self) -> None:
        """A record of a broker was applied."""
        self._allowed = None

    def min_isr(self, topic: Topic) -> int | None:
        """The effective min.insync.replicas, at most the replicas; None: not configured."""
        value = self.min_isr_of.get(f"topic {topic.name}", self.min_isr_of.get("cluster"))
        replicas = topic.parts.get(0)
        return None if value is None or replicas is None else min(value, replicas)

    def on_feature_level(self, record: r.FeatureLevelRecord) -> None:
        """Apply the level of a feature."""
        if record.name == "metadata.version":
            self.mv = record.feature_level
            self.releases.take(self.offset, record)
        elif record.name == "eligible.leader.replicas.version":
            self.elr_on = record.feature_level > 0

    def on_config(self, record: r.ConfigRecord) -> None:
        """Apply min.insync.replicas; other configs do not matter to any rule."""
        if record.name != MIN_ISR:
            return
        if record.resource_type == TOPIC_RESOURCE:
            key = f"topic {record.resource_name}"
        elif record.resource_type == BROKER_RESOURCE and not record.resource_name:
            key = "cluster"
        else:
            return
        if record.value is None:
            self.min_isr_of.pop(key, None)
        elif record.value.strip().isdecimal():
            self.min_isr_of[key] = int(record.value)

    def cleared_by(self, record: r.ClearElrRecord) -> Iterator[Topic]:
        """The topics whose eligible leader replicas a record clears: the named one, or all."""
        if not record.topic_name:
            yield from (topic for topic in self.topics.values() if topic.parts)
        elif (topic := self.live(record.topic_name)) is not None:
            yield topic
