"""The changes between two images.

A ``DeltaBuilder`` remembers what records touch while they are applied, so that a commit costs
what it changes and not what the cluster holds. ``between`` compares two whole images, for
snapshots, where what is absent has vanished.

What was touched is compared once more with the image before: a topic that was created and deleted
between two publications was never there for a publisher, and must appear neither as new nor as
deleted (KAFKA-19497). One that was deleted and created again under its name is both, with two ids.

Source:  MetadataDelta, TopicsDelta.localChanges, TopicDelta.localChanges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from rpds import HashTrieMap

from minicluster.metadata.image.cluster import BrokerRegistration, ControllerRegistration
from minicluster.metadata.image.configs import TOPIC, Resource
from minicluster.metadata.image.folded_run import FoldedRun
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from minicluster.values import Value, dataclass

K = TypeVar("K")
V = TypeVar("V")


class TopicIdPartition(NamedTuple):
    """One partition, named fully. Orders by name and number."""

    topic: str
    partition: int
    topic_id: UUID


class LocalChanges(Value, kw_only=True):
    """The changes of one broker's replicas. Every mapping is in the order of topic and partition.

    Shapes:  leaders holds elected_leaders; directories gives the broker's directory where the
             partition is new, or a directory of any replica of it is another.
    """

    deletes: tuple[TopicIdPartition, ...]
    elected_leaders: Mapping[TopicIdPartition, PartitionRegistration]
    leaders: Mapping[TopicIdPartition, PartitionRegistration]
    followers: Mapping[TopicIdPartition, PartitionRegistration]
    directories: Mapping[TopicIdPartition, UUID]

    def __bool__(self) -> bool:
        return bool(self.deletes or self.leaders or self.followers or self.directories)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDelta:
    """One topic that was made, changed or deleted.

    Shapes:  touched: the partitions that records have touched; None: any may differ.
    """

    before: TopicImage | None
    after: TopicImage | None
    touched: Iterable[int] | None = field(default=None, compare=False)
    _on_brokers: list[dict[int, list[int]]] = field(default_factory=list, compare=False)

    @property
    def topic(self) -> TopicImage:
        """The topic as it is, or as it was if it is gone."""
        topic = self.before if self.after is None else self.after
        assert topic is not None
        return topic

    def changed_on(self, broker_id: int) -> Iterable[int]:
        """The partitions that are new or differ and have a replica on the broker, or had one."""
        # Compared once for all brokers; nodes that compare at the same time keep the same.
        if not self._on_brokers:
            self._on_brokers.append(self._changed())
        return self._on_brokers[0].get(broker_id, ())

    def _changed(self) -> dict[int, list[int]]:
        on_brokers: dict[int, list[int]] = {}
        if self.after is None:
            return on_brokers
        old = {} if self.before is None else self.before.partitions
        rows = self.after.partitions
        for index in sorted(rows if self.touched is None else self.touched):
            old_partition, new = old.get(index), rows[index]
            if not _differ(old_partition, new):
                continue
            replicas: Iterable[int] = new.replicas
            if old_partition is not None and old_partition.replicas != replicas:
                replicas = {*old_partition.replicas, *replicas}
            for replica in replicas:
                on_brokers.setdefault(replica, []).append(index)
        return on_brokers


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDelta:
    """Two images and which topics, brokers, controllers and configs differ between them.

    Shapes:  the tuples are sorted and hold only what really differs; touched: of topics that only
             records of partitions have changed, those partitions.
    """

    before: MetadataImage
    after: MetadataImage
    topic_ids: tuple[UUID, ...] = ()
    broker_ids: tuple[int, ...] = ()
    controller_ids: tuple[int, ...] = ()
    config_resources: tuple[Resource, ...] = ()
    touched: Mapping[UUID, Iterable[int]] = field(default_factory=dict, compare=False, repr=False)
    _topics: list[dict[UUID, TopicDelta]] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def between(cls, before: MetadataImage, after: MetadataImage) -> MetadataDelta:
        """Compare two whole images."""
        return cls._of(
            before,
            after,
            topic_ids=_keys(before.topics.by_id, after.topics.by_id),
            broker_ids=_keys(before.cluster.brokers.rows, after.cluster.brokers.rows),
            controller_ids=_keys(before.cluster.controllers.rows, after.cluster.controllers.rows),
            resources=_keys(before.configs.table.groups, after.configs.table.groups),
        )

    @classmethod
    def _of(
        cls,
        before: MetadataImage,
        after: MetadataImage,
        *,
        topic_ids: Iterable[UUID],
        broker_ids: Iterable[int],
        controller_ids: Iterable[int],
        resources: Iterable[Resource],
        touched: Mapping[UUID, Iterable[int]] | None = None,
    ) -> MetadataDelta:
        if before is after:
            return cls(before=before, after=after)
        return cls(
            before=before,
            after=after,
            topic_ids=_differing(topic_ids, before.topics.by_id.get, after.topics.by_id.get),
            broker_ids=_differing(
                broker_ids, before.cluster.brokers.rows.get, after.cluster.brokers.rows.get
            ),
            controller_ids=_differing(
                controller_ids,
                before.cluster.controllers.rows.get,
                after.cluster.controllers.rows.get,
            ),
            config_resources=_differing(
                resources, before.configs.table.groups.get, after.configs.table.groups.get
            ),
            touched=touched or {},
        )

    def topics(self) -> dict[UUID, TopicDelta]:
        """Every topic that differs, by name: deleted ones first, so that a name can come back."""
        if not self._topics:
            self._topics.append(self._compare_topics())
        return self._topics[0]

    def _compare_topics(self) -> dict[UUID, TopicDelta]:
        before, after, touched = self.before.topics, self.after.topics, self.touched
        deltas = [
            TopicDelta(before=before.get(key), after=after.get(key), touched=touched.get(key))
            for key in self.topic_ids
        ]
        deltas.sort(key=lambda delta: (delta.after is not None, delta.topic.name))
        return {delta.topic.id: delta for delta in deltas}

    def brokers(self) -> dict[int, BrokerRegistration | None]:
        """Every broker that differs, as it is now; None where it is gone."""
        return {key: self.after.cluster.broker(key) for key in self.broker_ids}

    def controllers(self) -> dict[int, ControllerRegistration | None]:
        """Every controller that differs, as it is now; None where it is gone."""
        return {key: self.after.cluster.controllers.get(key) for key in self.controller_ids}

    def features(self) -> dict[str, int]:
        """Every feature whose finalized level differs, with its level now (0: not finalized)."""
        if self.before.features is self.after.features:
            return {}
        names = self.before.features.finalized() | self.after.features.finalized()
        return {
            name: self.after.features.level(name)
            for name in names
            if self.before.features.level(name) != self.after.features.level(name)
        }

    def configs(self) -> dict[Resource, dict[str, str | None]]:
        """Of every resource that differs, each config that differs; None where it is gone."""
        changes: dict[Resource, dict[str, str | None]] = {}
        for resource in self.config_resources:
            before = self.before.configs.of(*resource)
            after = self.after.configs.of(*resource)
            changes[resource] = {
                name: after.get(name)
                for name in sorted(before | after)
                if before.get(name) != after.get(name)
            }
        return changes

    @property
    def is_empty(self) -> bool:
        """Nothing changed at all."""
        return self.before is self.after or self.before.has_content_of(self.after)

    def local_changes(self, broker_id: int) -> LocalChanges:
        """The changes that a broker's replica manager makes for this delta.

        A partition counts as changed when its partition epoch did; the leader as elected again
        when the leader epoch did. A PartitionRecord that repeats an epoch changes nothing.

        Source:  TopicsDelta.localChanges, TopicDelta.localChanges.
        """
        deletes: list[TopicIdPartition] = []
        elected: dict[TopicIdPartition, PartitionRegistration] = {}
        leaders: dict[TopicIdPartition, PartitionRegistration] = {}
        followers: dict[TopicIdPartition, PartitionRegistration] = {}
        directories: dict[TopicIdPartition, UUID] = {}
        for delta in self.topics().values():
            topic, before, after = delta.topic, delta.before, delta.after
            indexes = topic.partitions if after is None else delta.changed_on(broker_id)
            for index in sorted(indexes):
                key = TopicIdPartition(topic.name, index, topic.id)
                old = None if before is None else before.partitions.get(index)
                if old is not None and broker_id not in old.replicas:
                    old = None
                new = None if after is None else after.partitions[index]
                if new is None or broker_id not in new.replicas:
                    if old is not None:
                        deletes.append(key)
                    continue
                leads = new.leader == broker_id
                if old is None or old.partition_epoch != new.partition_epoch:
                    (leaders if leads else followers)[key] = new
                if leads and (old is None or old.leader_epoch != new.leader_epoch):
                    elected[key] = new
                # Kafka compares ids by identity: those of a record are new for all its replicas.
                if old is None or old.directories != new.directories:
                    directories[key] = new.directory_of(broker_id)
        return LocalChanges(
            deletes=tuple(deletes),
            elected_leaders=elected,
            leaders=leaders,
            followers=followers,
            directories=directories,
        )


class DeltaBuilder:
    """Applies records to an image and remembers what they touched."""

    def __init__(self, before: MetadataImage) -> None:
        self.before = before
        self.image = before
        self._topics: dict[UUID, None] = {}
        self._partitions: dict[UUID, dict[int, None]] = {}
        self._compared: set[UUID] = set()  # topics whose every partition may differ
        self._brokers: dict[int, None] = {}
        self._controllers: dict[int, None] = {}
        self._resources: dict[Resource, None] = {}

    def take(self, run: FoldedRun) -> None:
        """Apply a run of records, which begins with this image."""
        before, self.image = self.image, run.after
        if run.touched is None:
            touch = _TOUCHES.get(type(run.message))
            if touch is not None:
                touch(self, run.message, before)
            return
        self._topics |= dict.fromkeys(record.topic_id for record in run.created)
        for topic_id, indexes in run.touched.items():
            before_run = self._partitions.get(topic_id)
            self._topics[topic_id] = None
            self._partitions[topic_id] = indexes if before_run is None else before_run | indexes

    def build(self) -> MetadataDelta:
        """The delta so far."""
        touched = {key: self._partitions[key] for key in self._partitions.keys() - self._compared}
        return MetadataDelta._of(
            self.before,
            self.image,
            topic_ids=self._topics,
            broker_ids=self._brokers,
            controller_ids=self._controllers,
            resources=self._resources,
            touched=touched,
        )

    def _touch_removed_topic(self, record: RemoveTopicRecord, before: MetadataImage) -> None:
        self._topics[record.topic_id] = None
        self._resources[(TOPIC, before.topics.by_id[record.topic_id].name)] = None

    def _touch_cleared_topics(self, record: ClearElrRecord, before: MetadataImage) -> None:
        cleared: list[UUID] = []
        if record.topic_name:
            cleared.append(before.topics.ids_by_name[record.topic_name])
        elif self.image is not before:
            rows, old = self.image.topics.by_id, before.topics.by_id
            cleared += (key for key in rows if rows[key] is not old[key])
        self._topics |= dict.fromkeys(cleared)
        self._compared.update(cleared)

    def _touch_broker(self, record: Any, _: MetadataImage) -> None:
        self._brokers[record.broker_id] = None

    def _touch_fenced_broker(self, record: Any, _: MetadataImage) -> None:
        self._brokers[record.id] = None

    def _touch_controller(self, record: RegisterControllerRecord, _: MetadataImage) -> None:
        self._controllers[record.controller_id] = None

    def _touch_config(self, record: ConfigRecord, _: MetadataImage) -> None:
        self._resources[(record.resource_type, record.resource_name)] = None


_TOUCHES: dict[type, Callable[[DeltaBuilder, Any, MetadataImage], None]] = {
    RemoveTopicRecord: DeltaBuilder._touch_removed_topic,
    ClearElrRecord: DeltaBuilder._touch_cleared_topics,
    RegisterBrokerRecord: DeltaBuilder._touch_broker,
    UnregisterBrokerRecord: DeltaBuilder._touch_broker,
    BrokerRegistrationChangeRecord: DeltaBuilder._touch_broker,
    FenceBrokerRecord: DeltaBuilder._touch_fenced_broker,
    UnfenceBrokerRecord: DeltaBuilder._touch_fenced_broker,
    RegisterControllerRecord: DeltaBuilder._touch_controller,
    ConfigRecord: DeltaBuilder._touch_config,
}
"""The keys that a record changes; for records that are missing here the sections are compared."""


def _differ(old: PartitionRegistration | None, new: PartitionRegistration) -> bool:
    if old is None or old.partition_epoch != new.partition_epoch:
        return True
    return old is not new and old != new


def _keys(before: HashTrieMap[K, V], after: HashTrieMap[K, V]) -> list[K]:
    return [*before, *(key for key in after if key not in before)]


def _differing(
    keys: Iterable[K], before: Callable[[K], V | None], after: Callable[[K], V | None]
) -> tuple[K, ...]:
    """Those keys whose values differ, sorted; topics are compared by their fingerprints."""

    def differs(key: K) -> bool:
        old, new = before(key), after(key)
        if isinstance(old, TopicImage) and isinstance(new, TopicImage):
            return old.fingerprint != new.fingerprint
        return old is not new and old != new

    return tuple(sorted(key for key in keys if differs(key)))  # type: ignore[type-var]
