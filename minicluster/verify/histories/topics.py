"""The life of each topic: ids, names, the partitions that it begins with, configs.

========================  ========================================================================
takes                     TopicRecord, RemoveTopicRecord, PartitionRecord, ConfigRecord; the end of
                          an operation
keeps                     ``Cluster.topics``, ``Cluster.names``; of the current operation what it
                          creates and configures
yields                    ``NewTopic``, ``TopicOperation``, ``NewPartition``, ``NamedTopic``,
                          ``TopicConfig``
========================  ========================================================================
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import records as r
from minicluster.values import Value
from minicluster.verify.histories.cluster import TOPIC_RESOURCE, Cluster, Topic
from minicluster.verify.judging import Judge


class NewTopic(Value, kw_only=True):
    """A TopicRecord, and what the log had of its id and name before it."""

    name: str
    id_was_used: bool
    has_partitions: bool
    name_is_taken: bool


class TopicOperation(Value, kw_only=True):
    """A topic is created; partitions: that the same operation creates."""

    name: str
    partitions: int


class NewPartition(Value, kw_only=True):
    """A PartitionRecord; expected: the number of partitions that the topic had."""

    number: int
    expected: int


class NamedTopic(Value, kw_only=True):
    """A record creates a partition of a topic, or removes the topic."""

    exists: bool


class TopicConfig(Value, kw_only=True):
    """A config is set for a topic; exists: now, or once the operation is over.

    Kafka 3.3 writes the configs of a new topic before the topic.
    """

    name: str
    exists: bool


class TopicHistories:
    """Folds the records of topics."""

    def __init__(self, cluster: Cluster, judge: Judge) -> None:
        self._cluster = cluster
        self._judge = judge
        self._new: list[tuple[UUID, str, int]] = []  # id, name, offset
        self._partitions: dict[UUID, int] = {}  # created by the current operation
        self._configs: list[tuple[str, bool, int]] = []  # topic name, exists, offset

    def on_topic(self, record: r.TopicRecord) -> None:
        """A topic is created."""
        cluster = self._cluster
        topic, holder = cluster.topic(record.topic_id), cluster.names.get(record.name)
        if cluster.judged:
            step = NewTopic(
                name=record.name,
                id_was_used=topic.topic_records > 0,
                has_partitions=topic.partition_records > 0,
                name_is_taken=holder is not None and holder.is_live,
            )
            self._take(step, cluster.offset, record.name)
            self._new.append((record.topic_id, record.name, cluster.offset))
        topic.name, topic.is_live = record.name, True
        topic.topic_records += 1
        cluster.names[record.name] = topic

    def on_partition(self, record: r.PartitionRecord) -> None:
        """A partition is created."""
        topic, number = self._cluster.topic(record.topic_id), record.partition_id
        self._name(topic, number)
        self._partitions[record.topic_id] = self._partitions.get(record.topic_id, 0) + 1
        if self._cluster.judged:
            step = NewPartition(number=number, expected=topic.partition_records)
            self._take(step, self._cluster.offset, topic.name or "", number)
        topic.partition_records += 1
        topic.parts[number] = len(record.replicas)

    def on_remove_topic(self, topic: Topic) -> None:
        """A topic is deleted; its partitions have been taken before."""
        topic.parts = {}
        topic.is_live = False
        if topic.name is not None and self._cluster.names.get(topic.name) is topic:
            self._cluster.min_isr_of.pop(f"topic {topic.name}", None)

    def names(self, topic_id: UUID) -> Topic:
        """The topic that a removal names."""
        topic = self._cluster.topic(topic_id)
        self._name(topic, -1)
        return topic

    def on_config(self, record: r.ConfigRecord) -> None:
        """A config is set."""
        of_topic = record.resource_type == TOPIC_RESOURCE and record.value is not None
        if self._cluster.judged and of_topic:
            name = record.resource_name
            is_live = self._cluster.live(name) is not None
            self._configs.append((name, is_live, self._cluster.offset))

    def end_of_operation(self) -> None:
        """Judge what an operation has created and configured."""
        for topic_id, name, offset in self._new:
            step = TopicOperation(name=name, partitions=self._partitions.get(topic_id, 0))
            self._take(step, offset, name)
        created = {name for _, name, _ in self._new}
        for name, is_live, offset in self._configs:
            self._take(TopicConfig(name=name, exists=is_live or name in created), offset, name)
        self._new, self._partitions, self._configs = [], {}, []

    def _name(self, topic: Topic, number: int) -> None:
        if self._cluster.judged:
            step = NamedTopic(exists=topic.is_live)
            self._take(step, self._cluster.offset, topic.name or "", number)

    def _take(self, step: object, offset: int, topic: str, partition: int = -1) -> None:
        self._judge.take(step, offset, topic, partition)
