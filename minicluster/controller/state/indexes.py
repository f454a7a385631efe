"""The indexes that find partitions of the image without a search.

Fencing a broker must find the partitions with it in their ISR, a failed directory those that lie in
it, without a look at every partition of the cluster. An entry that outlives its partition is worse
than slow: the next event of that broker finds a topic that is gone, and ends the controller, and
every controller after it (Z52, Z53).

**Invariant:** after every record the indexes equal those computed from the image alone (E41;
tests/controller/test_indexes.py). Each record touches only its own partitions' entries.

Source:  BrokersToIsrs, BrokersToElrs and the sets of ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from minicluster.controller.errors import ControllerFault
from minicluster.java_order import string_hash, timeline_order
from minicluster.metadata.image.directory_id import is_reserved
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import NO_LEADER, PartitionRegistration
from minicluster.metadata.image.topics import PartitionStep, TopicImage
from minicluster.protocol.topics import has_collision_chars, unify_collision_chars
from minicluster.rules import Rules
from minicluster.values import replace

TopicPartition = tuple[UUID, int]
_topic_id = attrgetter("topic_id")


class PartitionSet:
    """A set of partitions grouped by topic; iteration is in the order of arrival."""

    __slots__ = ("_topics",)

    def __init__(self) -> None:
        self._topics: dict[UUID, dict[int, None]] = {}

    def __iter__(self) -> Iterator[TopicPartition]:
        for topic_id, partitions in list(self._topics.items()):
            for partition_id in list(partitions):
                yield topic_id, partition_id

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))

    def __bool__(self) -> bool:
        return bool(self._topics)

    def __contains__(self, key: TopicPartition) -> bool:
        return key[1] in self._topics.get(key[0], ())

    def topics(self) -> tuple[UUID, ...]:
        """The topics with a partition in the set, in the order of arrival."""
        return tuple(self._topics)

    def of_topic(self, topic_id: UUID) -> tuple[int, ...]:
        """One topic's partitions, in ascending order."""
        return tuple(sorted(self._topics.get(topic_id, ())))

    def add(self, topic_id: UUID, partition_id: int) -> None:
        """Put a partition in."""
        self._topics.setdefault(topic_id, {})[partition_id] = None

    def put(self, topic_id: UUID, partitions: dict[int, None]) -> None:
        """Put in partitions of a topic; of one that is not in yet, as the dictionary that stays."""
        before = self._topics.setdefault(topic_id, partitions)
        if before is not partitions:
            before |= partitions

    def discard(self, topic_id: UUID, partition_id: int) -> None:
        """Take a partition out, if it is in."""
        partitions = self._topics.get(topic_id)
        if partitions is not None:
            partitions.pop(partition_id, None)
            if not partitions:
                del self._topics[topic_id]

    def content(self) -> set[TopicPartition]:
        """The same as a set, to compare."""
        return set(self)


class ElrIndex:
    """Broker -> the partitions in whose ELR it is, with how often each is in.

    When ClearElr goes by unnoticed (``Rules.clear_elr_skips_index``), a partition comes in twice
    and a later removal leaves partition 0 behind, as Kafka's arrays have it; that is part of the
    shipped behaviour.
    """

    __slots__ = ("_brokers",)

    def __init__(self) -> None:
        self._brokers: dict[int, dict[UUID, dict[int, int]]] = {}

    def of(self, broker_id: int) -> tuple[TopicPartition, ...]:
        """The partitions of one broker, in the order of arrival."""
        topics = self._brokers.get(broker_id, {})
        return tuple(
            (topic_id, index)
            for topic_id, parts in topics.items()
            for index, times in parts.items()
            for _ in range(times)
        )

    def brokers(self) -> tuple[int, ...]:
        """The brokers that are in any ELR."""
        return tuple(self._brokers)

    def add(self, broker_id: int, topic_id: UUID, partition_id: int) -> None:
        """Append a partition to a broker's."""
        parts = self._brokers.setdefault(broker_id, {}).setdefault(topic_id, {})
        parts[partition_id] = parts.get(partition_id, 0) + 1

    def remove(self, broker_id: int, topic_id: UUID, partition_id: int) -> None:
        """Take a partition from a broker's: what remains is one fewer, always."""
        parts = self._brokers.get(broker_id, {}).get(topic_id, {})
        if partition_id not in parts:
            raise ControllerFault(f"broker {broker_id} has no ELR entry {topic_id}-{partition_id}")
        left_behind = parts.pop(partition_id) - 1
        if left_behind:
            parts[0] = parts.get(0, 0) + left_behind
        if not parts:
            self.remove_topic(broker_id, topic_id)

    def remove_topic(self, broker_id: int, topic_id: UUID) -> None:
        """Take all of a topic's partitions from a broker's."""
        topics = self._brokers.get(broker_id)
        if topics is not None:
            topics.pop(topic_id, None)
            if not topics:
                del self._brokers[broker_id]

    def clear(self) -> None:
        """Take all partitions from all brokers'."""
        self._brokers.clear()

    def content(self) -> dict[int, list[TopicPartition]]:
        """The same in ascending order, to compare."""
        return {broker: sorted(self.of(broker)) for broker in sorted(self._brokers)}


class Indexes:
    """All derived indexes of one image."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._isr: dict[int, PartitionSet] = {}
        self._leaderships: dict[int, int] = {}
        self._directories: dict[UUID, PartitionSet] = {}
        self.elr = ElrIndex()
        self._colliding_names: dict[str, dict[str, None]] = {}
        self.leaderless = PartitionSet()
        self.imbalanced = PartitionSet()
        self.reassigning = PartitionSet()

    @classmethod
    def of(cls, image: MetadataImage, rules: Rules) -> Indexes:
        """The indexes of an image, from nothing."""
        indexes = cls(rules)
        for topic in image.topics:
            indexes.add_topic(topic.name)
            indexes._add_partitions(topic.id, topic.items())
        return indexes

    def follow(self, steps: Iterable[PartitionStep]) -> None:
        """Update the entries of the partitions that records have made or changed, in order."""
        for topic_id, of_topic in groupby(steps, _topic_id):
            changes = list(of_topic)
            if all(step.old is None for step in changes):
                self._add_partitions(topic_id, ((step.partition_id, step.new) for step in changes))
                continue
            for _, index, old, new in changes:
                self.update(topic_id, index, old, new)

    def _add_partitions(
        self, topic_id: UUID, partitions: Iterable[tuple[int, PartitionRegistration]]
    ) -> None:
        """The same as an update of each from nothing, for new partitions of a topic.

        A request may make ten thousand: what many of them share is looked up once.
        """
        isr: dict[int, dict[int, None]] = {}
        directories: dict[UUID, dict[int, None]] = {}
        for index, partition in partitions:
            for broker_id in partition.isr:
                isr.setdefault(broker_id, {})[index] = None
            for directory in partition.directories:
                directories.setdefault(directory, {})[index] = None
            self._update_leader(None, partition)
            if partition.elr:
                self.update_elr(topic_id, index, (), partition.elr)
            if not partition.has_leader:
                self.leaderless.add(topic_id, index)
            if not partition.has_preferred_leader:
                self.imbalanced.add(topic_id, index)
            if partition.is_reassigning:
                self.reassigning.add(topic_id, index)
        for broker_id, indexes in isr.items():
            self._isr.setdefault(broker_id, PartitionSet()).put(topic_id, indexes)
        for directory, indexes in directories.items():
            if not is_reserved(directory):
                self._directories.setdefault(directory, PartitionSet()).put(topic_id, indexes)

    def in_isr(self, broker_id: int) -> PartitionSet:
        """The partitions that have the broker in their ISR."""
        return self._isr.get(broker_id) or PartitionSet()

    def in_directory(self, directory: UUID) -> PartitionSet:
        """The partitions with a replica in the directory."""
        return self._directories.get(directory) or PartitionSet()

    def add_topic(self, name: str) -> None:
        """Add the name of a new topic."""
        if has_collision_chars(name):
            unified = unify_collision_chars(name)
            self._colliding_names.setdefault(unified, {})[name] = None

    def colliding_name(self, name: str) -> str | None:
        """The live topic that a name collides with: of several, the first of Kafka's hash set."""
        names = self._colliding_names.get(unify_collision_chars(name))
        return None if names is None else timeline_order(names, string_hash)[0]

    def has_leaderships(self, broker_id: int) -> bool:
        """True for a broker that leads any partition."""
        return broker_id in self._leaderships

    def update(
        self,
        topic_id: UUID,
        index: int,
        old: PartitionRegistration | None,
        new: PartitionRegistration | None,
    ) -> None:
        """Update the entries of one partition; None is its state before and after its life."""
        old_isr, new_isr = (old.isr if old else ()), (new.isr if new else ())
        if old_isr != new_isr:
            for broker_id in old_isr:
                if broker_id not in new_isr:
                    self._isr[broker_id].discard(topic_id, index)
                    if not self._isr[broker_id]:
                        del self._isr[broker_id]
            for broker_id in new_isr:
                if broker_id not in old_isr:
                    self._isr.setdefault(broker_id, PartitionSet()).add(topic_id, index)
        self._update_leader(old, new)
        self.update_elr(topic_id, index, old.elr if old else (), new.elr if new else ())
        for partitions, was, becomes in (
            (self.leaderless, old and not old.has_leader, new and not new.has_leader),
            (
                self.imbalanced,
                old and not old.has_preferred_leader,
                new and not new.has_preferred_leader,
            ),
            (self.reassigning, old and old.is_reassigning, new and new.is_reassigning),
        ):
            if bool(was) != bool(becomes):
                _set(partitions, topic_id, index, bool(becomes))
        self._update_directories(
            topic_id, index, old.directories if old else (), new.directories if new else ()
        )

    def _update_leader(
        self, old: PartitionRegistration | None, new: PartitionRegistration | None
    ) -> None:
        before = NO_LEADER if old is None else old.leader
        after = NO_LEADER if new is None else new.leader
        if before == after:
            return
        if before != NO_LEADER:
            self._leaderships[before] -= 1
            if not self._leaderships[before]:
                del self._leaderships[before]
        if after != NO_LEADER:
            self._leaderships[after] = self._leaderships.get(after, 0) + 1

    def update_elr(
        self, topic_id: UUID, index: int, old: tuple[int, ...], new: tuple[int, ...]
    ) -> None:
        """Update the ELR entries of one partition."""
        if old == new:
            return
        for broker_id in old:
            if broker_id not in new:
                self.elr.remove(broker_id, topic_id, index)
        for broker_id in new:
            if broker_id not in old:
                self.elr.add(broker_id, topic_id, index)

    def _update_directories(
        self, topic_id: UUID, index: int, old: tuple[UUID, ...], new: tuple[UUID, ...]
    ) -> None:
        if old == new:
            return
        for directory in old:
            if directory not in new and directory in self._directories:
                self._directories[directory].discard(topic_id, index)
                if not self._directories[directory]:
                    del self._directories[directory]
        for directory in new:
            if directory not in old and not is_reserved(directory):
                self._directories.setdefault(directory, PartitionSet()).add(topic_id, index)

    def remove_topic(self, topic: TopicImage) -> None:
        """Remove a topic and all of its partitions."""
        topic_id = topic.id
        if has_collision_chars(topic.name):
            unified = unify_collision_chars(topic.name)
            names = self._colliding_names[unified]
            del names[topic.name]
            if not names:
                del self._colliding_names[unified]
        for index, partition in topic.items():
            left_behind = (
                partition.directories
                if self._rules.removed_topic_stays_in_directory_index and not partition.isr
                else ()
            )
            for broker_id in partition.elr:
                self.elr.remove_topic(broker_id, topic_id)
            self._update_directories(topic_id, index, partition.directories, left_behind)
            bare = replace(partition, directories=(), elr=())
            self.update(topic_id, index, bare, None)

    def differences(self, other: Indexes) -> tuple[str, ...]:
        """The differences from other indexes, a line each."""
        differences = []
        for name in ("leaderless", "imbalanced", "reassigning"):
            if getattr(self, name).content() != getattr(other, name).content():
                differences.append(f"{name}: {_shown(getattr(self, name), getattr(other, name))}")
        for label, mine, theirs in (
            ("isr of broker", self._isr, other._isr),
            ("directory", self._directories, other._directories),
        ):
            for key in sorted({*mine, *theirs}):
                a = mine.get(key) or PartitionSet()
                b = theirs.get(key) or PartitionSet()
                if a.content() != b.content():
                    differences.append(f"{label} {key}: {_shown(a, b)}")
        if self._leaderships != other._leaderships:
            differences.append(f"leaderships: {self._leaderships} instead of {other._leaderships}")
        if self.elr.content() != other.elr.content():
            differences.append(f"elr: {self.elr.content()} instead of {other.elr.content()}")
        return tuple(differences)


def _set(partitions: PartitionSet, topic_id: UUID, index: int, wanted: bool) -> None:
    if wanted:
        partitions.add(topic_id, index)
    else:
        partitions.discard(topic_id, index)


def _shown(mine: PartitionSet, theirs: PartitionSet) -> str:
    extra, missing = mine.content() - theirs.content(), theirs.content() - mine.content()
    return f"{sorted(extra)} too many, {sorted(missing)} missing"
