"""Topics and their partitions, by id and by name.

Source:  TopicsImage, TopicsDelta, ReplicationControlManager.replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from msgspec import field
from rpds import HashTrieMap

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.tables import (
    FINGERPRINT_MASK,
    Fold,
    fingerprint,
    fingerprint_of_bytes,
)
from minicluster.protocol.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from minicluster.protocol.uuids import format_uuid
from minicluster.values import Value


class TopicImage(Value):
    """One topic. Its fingerprint is that of its name, its id and all of its partitions."""

    name: str
    id: UUID
    partitions: HashTrieMap[int, PartitionRegistration]
    fingerprint: int

    @classmethod
    def new(cls, name: str, topic_id: UUID) -> TopicImage:
        """A topic without partitions."""
        return cls(name, topic_id, HashTrieMap(), fingerprint("topic", name, topic_id))

    def __len__(self) -> int:
        return len(self.partitions)

    def __bool__(self) -> bool:
        """A topic may have no partitions."""
        return True

    def items(self) -> Iterator[tuple[int, PartitionRegistration]]:
        """Partition ids and partitions, in ascending order."""
        return ((index, self.partitions[index]) for index in sorted(self.partitions))


class TopicsImage(Value):
    """Every topic. Iteration is in the order of names."""

    by_id: HashTrieMap[UUID, TopicImage] = field(default_factory=HashTrieMap)
    ids_by_name: HashTrieMap[str, UUID] = field(default_factory=HashTrieMap)
    fingerprint: int = 0

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[TopicImage]:
        return (self.by_id[self.ids_by_name[name]] for name in sorted(self.ids_by_name))

    def get(self, topic_id: UUID) -> TopicImage | None:
        """The topic of an id, or None."""
        return self.by_id.get(topic_id)

    def named(self, name: str) -> TopicImage | None:
        """The topic of a name, or None."""
        topic_id = self.ids_by_name.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def chosen(self, name: str) -> Iterator[TopicImage]:
        """The topic of a name, or none; all topics, in no order, by the empty name."""
        if not name:
            return iter(self.by_id.values())
        topic = self.named(name)
        return iter(() if topic is None else (topic,))

    def partition(self, topic_id: UUID, partition_id: int) -> PartitionRegistration | None:
        """One partition, or None."""
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition_id)

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        """Every partition, by topic name and number."""
        return ((topic, index, partition) for topic in self for index, partition in topic.items())


class PartitionStep(NamedTuple):
    """One record's change of a partition; old is None for a new one."""

    topic_id: UUID
    partition_id: int
    old: PartitionRegistration | None
    new: PartitionRegistration


Lists = dict[tuple[tuple[int, ...], ...], str]


class TopicsBuilder:
    """Topics that change: what many records do to a topic is put into its image at once."""

    __slots__ = ("_lists", "_open", "_topics")

    def __init__(self, topics: TopicsImage) -> None:
        self._topics = topics
        self._open: dict[UUID, _OpenTopic] = {}
        self._lists: Lists = {}

    def add_topic(self, record: TopicRecord) -> None:
        """Apply a TopicRecord.

        Errors:  ReplayError; nothing has changed then.
        """
        self._topics = add_topic(self._topics, record, 0)

    def add_partition(self, record: PartitionRecord) -> PartitionStep:
        """Apply a PartitionRecord, which overwrites an existing partition, epochs and all.

        Errors:  ReplayError; nothing has changed then.
        """
        topic = self._opened(record.topic_id)
        partition = PartitionRegistration.from_record(record)
        return topic.put(record.partition_id, topic.get(record.partition_id), partition)

    def change_partition(self, record: PartitionChangeRecord) -> PartitionStep:
        """Apply a PartitionChangeRecord.

        Errors:  ReplayError; nothing has changed then.
        """
        topic = self._opened(record.topic_id)
        old = topic.get(record.partition_id)
        if old is None:
            raise ReplayError(f"topic {topic.image.name} has no partition {record.partition_id}")
        return topic.put(record.partition_id, old, old.merge(record))

    def clear_elr(self, topic_id: UUID, index: int, partition: PartitionRegistration) -> None:
        """Clear the ELR of a partition."""
        self._opened(topic_id).put(index, partition, partition.without_elr())

    def build(self) -> TopicsImage:
        """The topics after all that was applied."""
        if not self._open:
            return self._topics
        total, by_id = self._topics.fingerprint, self._topics.by_id
        for topic_id, topic in self._open.items():
            if topic.partitions:
                total += topic.fingerprint - topic.image.fingerprint
                by_id = by_id.insert(topic_id, topic.build())
        return TopicsImage(by_id, self._topics.ids_by_name, total & FINGERPRINT_MASK)

    def _opened(self, topic_id: UUID) -> _OpenTopic:
        topic = self._open.get(topic_id)
        if topic is None:
            topic = self._open[topic_id] = _OpenTopic(
                _existing(self._topics, topic_id), self._lists
            )
        return topic


class _OpenTopic:
    """A topic, and its partitions that are new or another."""

    __slots__ = ("_lists", "_name", "fingerprint", "image", "partitions")

    def __init__(self, image: TopicImage, lists: Lists) -> None:
        self.image, self.fingerprint = image, image.fingerprint
        self._name, self._lists = f"{image.id.int}:", lists
        self.partitions: dict[int, PartitionRegistration] = {}

    def get(self, index: int) -> PartitionRegistration | None:
        changed = self.partitions.get(index)
        return self.image.partitions.get(index) if changed is None else changed

    def put(
        self, index: int, old: PartitionRegistration | None, new: PartitionRegistration
    ) -> PartitionStep:
        name, directories = f"{self._name}{index}:", _bytes_of(new.directories)
        self.fingerprint += self._fingerprint(name, new, directories)
        if old is not None:
            if old.directories is not new.directories:
                directories = _bytes_of(old.directories)
            self.fingerprint -= self._fingerprint(name, old, directories)
        self.partitions[index] = new
        return PartitionStep(self.image.id, index, old, new)

    def _fingerprint(self, name: str, p: PartitionRegistration, directories: bytes) -> int:
        """The hash of a row; lists that many partitions have are written once."""
        lists = (
            p.replicas,
            p.isr,
            p.removing_replicas,
            p.adding_replicas,
            p.elr,
            p.last_known_elr,
        )
        text = self._lists.get(lists)
        if text is None:
            text = self._lists[lists] = "".join(map(str, lists))
        row = f"{name}{text}{p.leader}:{p.leader_recovery_state}:{p.leader_epoch}"
        return fingerprint_of_bytes(f"{row}:{p.partition_epoch}:".encode() + directories)

    def build(self) -> TopicImage:
        image, total = self.image, self.fingerprint & FINGERPRINT_MASK
        return TopicImage(image.name, image.id, image.partitions.update(self.partitions), total)


def add_topic(topics: TopicsImage, record: TopicRecord, _: int) -> TopicsImage:
    """Apply a TopicRecord; a live topic's name or id cannot be taken again."""
    live = topics.ids_by_name.get(record.name)
    if live == record.topic_id:
        raise ReplayError(f"topic {record.name} with id {format_uuid(live)} comes a second time")
    if live is not None:
        raise ReplayError(
            f"topic {record.name} comes a second time, with id {format_uuid(record.topic_id)} "
            f"while {format_uuid(live)} lives"
        )
    if record.topic_id in topics.by_id:
        raise ReplayError(f"topic id {format_uuid(record.topic_id)} is taken")
    topic = TopicImage.new(record.name, record.topic_id)
    return TopicsImage(
        topics.by_id.insert(topic.id, topic),
        topics.ids_by_name.insert(topic.name, topic.id),
        (topics.fingerprint + topic.fingerprint) & FINGERPRINT_MASK,
    )


def add_partition(topics: TopicsImage, record: PartitionRecord, _: int) -> TopicsImage:
    """Apply a PartitionRecord."""
    builder = TopicsBuilder(topics)
    builder.add_partition(record)
    return builder.build()


def change_partition(topics: TopicsImage, record: PartitionChangeRecord, _: int) -> TopicsImage:
    """Apply a PartitionChangeRecord."""
    builder = TopicsBuilder(topics)
    builder.change_partition(record)
    return builder.build()


def remove_topic(topics: TopicsImage, record: RemoveTopicRecord, _: int) -> TopicsImage:
    """Apply a RemoveTopicRecord to the topics; its configs are the image's business."""
    topic = _existing(topics, record.topic_id)
    return TopicsImage(
        topics.by_id.remove(topic.id),
        topics.ids_by_name.remove(topic.name),
        (topics.fingerprint - topic.fingerprint) & FINGERPRINT_MASK,
    )


def clear_elr(topics: TopicsImage, record: ClearElrRecord, _: int) -> TopicsImage:
    """Apply a ClearElrRecord: each partition that has an ELR, or remembers one, loses both.

    An empty name means every topic: one record for as many partitions as there are.
    """
    if record.topic_name and record.topic_name not in topics.ids_by_name:
        raise ReplayError(f"topic {record.topic_name} does not exist")
    builder = TopicsBuilder(topics)
    for topic in topics.chosen(record.topic_name):
        for index, partition in topic.partitions.items():
            if partition.elr or partition.last_known_elr:
                builder.clear_elr(topic.id, index, partition)
    return builder.build()


FOLDS: dict[type, Fold] = {
    TopicRecord: add_topic,
    PartitionRecord: add_partition,
    PartitionChangeRecord: change_partition,
    RemoveTopicRecord: remove_topic,
    ClearElrRecord: clear_elr,
}


def _existing(topics: TopicsImage, topic_id: UUID) -> TopicImage:
    topic = topics.by_id.get(topic_id)
    if topic is None:
        raise ReplayError(f"topic id {format_uuid(topic_id)} does not exist")
    return topic


def _bytes_of(directories: tuple[UUID, ...]) -> bytes:
    return b"".join([directory.int.to_bytes(16, "big") for directory in directories])
