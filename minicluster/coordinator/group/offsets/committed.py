"""Committed offsets, and those of transactions that no marker has ended yet.

    OffsetCommit ---------------------------------------> committed
    TxnOffsetCommit --> pending, by producer id
                           commit marker ---------------> committed, unless there is a later one
                           abort marker ----------------> forgotten

The marker is a control batch in the same partition of ``__consumer_offsets``, so a coordinator that
loads it gets the same committed and pending offsets from its records and markers.

"Later" is the offset of the record: an OffsetCommit between a TxnOffsetCommit and its marker is not
overwritten, by which the group would continue from an older position.

A pending offset can still become the committed one. Hence, while it is pending:

* an OffsetFetch that requires stable offsets gets UNSTABLE_OFFSET_COMMIT (KIP-447), or a consumer
  that takes a partition over would process the records of that transaction again;
* neither the offset nor its group expires;
* a deletion (a tombstone) removes it as well as the committed one.

What a look-up costs is what its group has: offsets are kept by group, topic and partition, in
tables as Kafka's, whose order shows in tombstones and responses.

Source:  OffsetMetadataManager, OffsetAndMetadata.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.java_order import long_hash, string_hash
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.coordinator_records.groups import OffsetCommitKey, OffsetCommitValue
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import Value

OffsetKey = tuple[str, str, int]
"""Group, topic and partition."""
V = TypeVar("V")
ByPartition = TimelineDict[int, V]
ByTopic = TimelineDict[str, ByPartition[V]]

_WITH_EXPIRY = 1
_WITH_TOPIC_ID = 4


class OffsetAndMetadata(Value, kw_only=True):
    """One committed offset.

    Units:   *_ms milliseconds since the epoch; expires_ms is None where the broker's retention
             decides; record_offset is that of the record in ``__consumer_offsets``.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int | None = None
    topic_id: uuid.UUID = ZERO_UUID
    record_offset: int = -1


class _Table(Generic[V]):
    """Values by group, topic and partition; what gets empty is dropped.

    Source:  OffsetMetadataManager.Offsets, OpenTransactions.
    """

    __slots__ = ("_timeline", "groups")

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.groups: TimelineDict[str, ByTopic[V]] = timeline.new_dict()

    def get(self, key: OffsetKey) -> V | None:
        """The newest value of a partition."""
        topics = self.groups.get(key[0])
        partitions = None if topics is None else topics.get(key[1])
        return None if partitions is None else partitions.get(key[2])

    def put(self, key: OffsetKey, value: V) -> None:
        """Set the value of a partition."""
        group_id, topic, index = key
        self.of_topic(group_id, topic)[index] = value

    def of_topic(self, group_id: str, topic: str) -> ByPartition[V]:
        """A group's offsets of a topic, to be changed: a value is put there at once."""
        topics = self.groups.get(group_id)
        if topics is None:
            topics = self.groups[group_id] = self._timeline.new_dict()
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = self._timeline.new_dict()
        return partitions

    def remove(self, key: OffsetKey) -> None:
        """Remove a partition, if it is there."""
        group_id, topic, index = key
        topics = self.groups.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return
        partitions.pop(index)
        if not partitions:
            topics.pop(topic)
        if not topics:
            self.groups.pop(group_id)

    def of_group(self, group_id: str, *, committed: bool = False) -> OfGroup[V]:
        """The offsets of a group."""
        groups = self.groups
        topics = groups.committed_value(group_id) if committed else groups.get(group_id)
        return OfGroup(topics, committed=committed)

    def of_topics(self, names: Iterable[str]) -> Iterator[tuple[OffsetKey, V]]:
        """The offsets of all groups for some topics."""
        for group_id in self.groups.in_order(string_hash):
            of_group = self.of_group(group_id)
            for name in names:
                for index in of_group.partitions(name):
                    value = of_group.get(name, index)
                    if value is not None:
                        yield (group_id, name, index), value


class OfGroup(Generic[V]):
    """A group's offsets by topic and partition, newest or as of the committed offset.

    Shapes:  topics, partitions and iteration have the order of Kafka's tables.
    """

    __slots__ = ("_committed", "_partitions", "_read", "_topics")

    def __init__(self, topics: ByTopic[V] | None, *, committed: bool) -> None:
        self._committed = committed
        self._topics = topics
        self._partitions = {} if topics is None else topics.view(committed=committed)
        self._read: dict[str, Mapping[int, V]] = {}

    def __iter__(self) -> Iterator[tuple[str, int, V]]:
        for topic in self.topics():
            of_topic = self._of_topic(topic)
            for index in self.partitions(topic):
                yield topic, index, of_topic[index]

    def topics(self) -> list[str]:
        """The topics of which it has something."""
        return (
            []
            if self._topics is None
            else self._topics.in_order(string_hash, committed=self._committed)
        )

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic."""
        partitions = self._partitions.get(topic)
        return [] if partitions is None else partitions.in_order(int, committed=self._committed)

    def get(self, topic: str, index: int) -> V | None:
        """The value of a partition."""
        return self._of_topic(topic).get(index)

    def _of_topic(self, topic: str) -> Mapping[int, V]:
        # Once for each topic: what is committed is read back from the changes since.
        read = self._read.get(topic)
        if read is None:
            partitions = self._partitions.get(topic)
            read = {} if partitions is None else partitions.view(committed=self._committed)
            self._read[topic] = read
        return read


class Offsets:
    """All offsets of a shard."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._committed: _Table[OffsetAndMetadata] = _Table(timeline)
        self._pending: TimelineDict[int, _Table[OffsetAndMetadata]] = timeline.new_dict()
        # How many open transactions have an offset of a partition, by its group.
        self._open: dict[str, dict[tuple[str, int], int]] = {}

    def of_group(self, group_id: str, *, committed: bool = False) -> OfGroup[OffsetAndMetadata]:
        """The offsets of a group, without those of open transactions."""
        return self._committed.of_group(group_id, committed=committed)

    def of_topics(self, names: Iterable[str]) -> Iterator[tuple[OffsetKey, OffsetAndMetadata]]:
        """The offsets that all groups have of some topics, those of open transactions included."""
        yield from self._committed.of_topics(names)
        for producer_id in self._pending.in_order(long_hash):
            yield from self._pending[producer_id].of_topics(names)

    def has(self, key: OffsetKey) -> bool:
        """An offset is committed, or would be with its transaction."""
        return self._committed.get(key) is not None or self.is_pending(key)

    def is_pending(self, key: OffsetKey) -> bool:
        """An open transaction has an offset for this partition."""
        return key[0] in self._open and key[1:] in self._open[key[0]]

    def pending_producers(self, key: OffsetKey) -> set[int]:
        """The producers whose open transactions have an offset for this partition."""
        pending = self._pending
        return {producer_id for producer_id in pending if pending[producer_id].get(key) is not None}

    def has_pending(self, group_id: str) -> bool:
        """An open transaction has an offset of this group."""
        return group_id in self._open

    def keys_of_group(self, group_id: str) -> Iterator[OffsetKey]:
        """The partitions of which a group has an offset, or would have with a transaction."""
        for topic, index, _ in self.of_group(group_id):
            yield group_id, topic, index
        pending = (self._pending[each] for each in self._pending.in_order(long_hash))
        of_each = (each.of_group(group_id) for each in pending)
        places = dict.fromkeys((topic, index) for of_one in of_each for topic, index, _ in of_one)
        for topic, index in places:
            if self._committed.get((group_id, topic, index)) is None:
                yield group_id, topic, index

    def replay(self, key: OffsetKey, value: OffsetAndMetadata | None, producer_id: int) -> None:
        """Apply a record; the offset of a transaction counts once that is committed."""
        if value is None:
            self._committed.remove(key)
            if self.is_pending(key):
                for each in self._pending:
                    if self._pending[each].get(key) is not None:
                        self._pending[each].remove(key)
                        self._close(key[0], key[1], key[2:])
        elif producer_id < 0:
            self._committed.put(key, value)
        else:
            pending = self._pending.get(producer_id)
            if pending is None:
                pending = self._pending[producer_id] = _Table(self._timeline)
            if pending.get(key) is None:
                of_group, place = self._open.setdefault(key[0], {}), key[1:]
                of_group[place] = of_group.get(place, 0) + 1
            pending.put(key, value)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker; an offset that was committed later without transaction stays."""
        pending = self._pending.pop(producer_id)
        if pending is None:
            return
        for group_id in pending.groups.in_order(string_hash):
            topics = pending.groups[group_id]
            for topic in topics.in_order(string_hash):
                values = topics[topic]
                self._close(group_id, topic, values)
                if committed:
                    self._commit(self._committed.of_topic(group_id, topic), values)

    @staticmethod
    def _commit(to: ByPartition[OffsetAndMetadata], values: ByPartition[OffsetAndMetadata]) -> None:
        for index in values.in_order(int):
            value, before = values[index], to.get(index)
            if before is None or value.record_offset > before.record_offset:
                to[index] = value

    def _close(self, group_id: str, topic: str, indexes: Iterable[int]) -> None:
        """An open transaction has no offset of these partitions any more."""
        of_group = self._open[group_id]
        for index in indexes:
            place = topic, index
            others = of_group[place] - 1
            if others:
                of_group[place] = others
            else:
                del of_group[place]
        if not of_group:
            del self._open[group_id]


def offset_record(key: OffsetKey, value: OffsetAndMetadata | None) -> CoordinatorRecord:
    """The record of a committed offset; None: its tombstone.

    Source:  GroupCoordinatorRecordHelpers.newOffsetCommitRecord.
    """
    group, topic, partition = key
    record_key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    if value is None:
        return CoordinatorRecord(record_key)
    record = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.committed_ms,
        expire_timestamp=-1 if value.expires_ms is None else value.expires_ms,
        topic_id=value.topic_id,
    )
    version = _WITH_TOPIC_ID if value.expires_ms is None else _WITH_EXPIRY
    return CoordinatorRecord(record_key, record, version)


def offset_of(value: OffsetCommitValue, record_offset: int) -> OffsetAndMetadata:
    """The offset that a record holds."""
    return OffsetAndMetadata(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        committed_ms=value.commit_timestamp,
        expires_ms=None if value.expire_timestamp < 0 else value.expire_timestamp,
        topic_id=value.topic_id,
        record_offset=record_offset,
    )
