"""All committed states of a run, for the rules that compare a trace with its metadata log.

Kept for runs, whose logs are short; a log alone is folded without it. Bounded by the records.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from uuid import UUID

from minicluster.protocol.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    RemoveAccessControlEntryRecord,
)
from minicluster.protocol.uuids import format_uuid
from minicluster.values import Value
from minicluster.verify.histories.cluster import TOPIC_RESOURCE, Broker, Cluster
from minicluster.verify.histories.partitions import PartitionHistory, PartitionState, PartitionStep
from minicluster.verify.histories.throttles import CommittedThrottle


class CommittedPartition(Value, kw_only=True, eq=False):
    """A partition as of one record about it.

    Shapes:  position: of the record among all; that of a snapshot's record is below its end.
             operation: the offset at which its operation ends. leader_epoch, partition_epoch: after
             the record; old_leader_epoch, old_partition_epoch: before it, -1 where there was none.
    """

    offset: int
    position: int
    operation: int
    step: PartitionStep
    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    old_leader_epoch: int
    old_partition_epoch: int

    @property
    def before(self) -> PartitionState:
        """The state before the record."""
        return self.step.before

    @property
    def after(self) -> PartitionState:
        """The state after the record."""
        return self.step.after


class CommittedBroker(Value, kw_only=True, eq=False):
    """A broker as of one record about it.

    Shapes:  kind: Register Fence Unfence Change Unregister. was_…: before the record.
             registered_at: the offset of the last registration that the log holds before the
             record, or the epoch of one in a snapshot; None: no registration.
    """

    offset: int
    position: int
    operation: int
    kind: str
    judged: bool
    broker: int
    epoch: int
    registered: bool
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[UUID, ...]
    was_registered: bool
    was_fenced: bool
    registered_at: int | None
    level: int
    rack: str | None

    @property
    def active(self) -> bool:
        """Registered, not fenced, not in controlled shutdown."""
        return self.registered and not self.fenced and not self.in_controlled_shutdown

    @property
    def is_unfenced(self) -> bool:
        """The record unfences a registered broker."""
        by_itself = self.judged and self.kind in ("Change", "Unfence")
        return by_itself and self.was_registered and self.was_fenced and not self.fenced


class CommittedTopic(Value, kw_only=True):
    """A TopicRecord or a RemoveTopicRecord."""

    offset: int
    operation: int
    kind: str  # Topic RemoveTopic
    topic_id: str
    name: str


class CommittedStates:
    """Makes the committed states as the log's records come, and keeps none of them.

    Bounded by the brokers and by the partitions that ever were. Subclasses keep or show what they
    are told: ``take_topic``, ``take_partition``, ``take_broker``, ``on_config``.
    """

    def __init__(self) -> None:
        self.offset = self.operation = self.position = -1  # of the current record
        self._texts: dict[UUID, str] = {}
        self._epochs: dict[tuple[str, int], tuple[int, int]] = {}
        self._was: dict[int, tuple[bool, bool, int | None]] = {}

    def take_topic(self, topic: CommittedTopic) -> None:
        """A topic is created or removed."""

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition."""

    def take_broker(self, state: CommittedBroker) -> None:
        """A record has changed a broker."""

    def on_config(self, record: ConfigRecord) -> None:
        """A config is set or removed; those of a snapshot come twice."""

    def on_acl(self, record: AccessControlEntryRecord | RemoveAccessControlEntryRecord) -> None:
        """An ACL is set or removed."""

    def begin(self, offset: int, operation: int, position: int) -> None:
        """The next record is at an offset, of an operation that ends at another."""
        if offset == self.offset and position <= self.position:
            position = self.position + 1  # the records of a snapshot share an offset
        self.offset, self.operation, self.position = offset, operation, position

    def on_topic(self, kind: str, topic_id: UUID, name: str | None) -> None:
        """A topic is created or removed."""
        self.take_topic(
            CommittedTopic(
                offset=self.offset,
                operation=self.operation,
                kind=kind,
                topic_id=self._text(topic_id),
                name=name or "",
            )
        )

    def on_partition(self, partition: PartitionHistory, step: PartitionStep) -> None:
        """A record has changed a partition."""
        key = self._text(partition.topic.topic_id), partition.number
        old = self._epochs.get(key, (-1, -1))
        self._epochs[key] = partition.leader_epoch, partition.partition_epoch
        if not step.leaves_a_state:  # its topic is deleted
            del self._epochs[key], self._texts[partition.topic.topic_id]
        state = CommittedPartition(
            offset=self.offset,
            position=self.position,
            operation=self.operation,
            step=step,
            topic=partition.name,
            topic_id=key[0],
            partition=partition.number,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            old_leader_epoch=old[0],
            old_partition_epoch=old[1],
        )
        self.take_partition(state)

    def on_broker(self, number: int, cluster: Cluster, kind: str) -> None:
        """A record has changed a broker."""
        broker: Broker = cluster.brokers[number]
        was_registered, was_fenced, registered_at = self._was.get(number, (False, True, None))
        self.take_broker(
            CommittedBroker(
                offset=self.offset,
                position=self.position,
                operation=self.operation,
                kind=kind,
                judged=cluster.judged,
                broker=number,
                epoch=broker.epoch,
                registered=broker.registered,
                fenced=broker.fenced,
                in_controlled_shutdown=broker.in_controlled_shutdown,
                log_dirs=broker.log_dirs,
                was_registered=was_registered,
                was_fenced=was_fenced,
                registered_at=registered_at,
                level=cluster.level,
                rack=broker.rack,
            )
        )
        if kind == "Register":
            registered_at = self.offset if cluster.judged else broker.epoch
        self._was[number] = broker.registered, broker.fenced, registered_at

    def _text(self, topic_id: UUID) -> str:
        text = self._texts.get(topic_id)
        if text is None:
            text = self._texts[topic_id] = format_uuid(topic_id)
        return text


class Timeline(CommittedStates):
    """The committed states in order: of each partition, of each broker, of topics, of throttles.

    Shapes:  partitions: topic id as the trace has it, and number -> its states; by_offset: the
             states that the record at an offset made. brokers: id -> states; unfenced: by the
             offset of the record. operations: their ends. configured: the ends of those that set a
             config of a topic. acls: all of them, by the ends of those that change some.
    """

    def __init__(self) -> None:
        super().__init__()
        self.partitions: dict[tuple[str, int], list[CommittedPartition]] = {}
        self.by_offset: dict[int, list[CommittedPartition]] = {}
        self.brokers: dict[int, list[CommittedBroker]] = {}
        self.unfenced: dict[int, CommittedBroker] = {}
        self.operations: list[int] = []
        self.topics: list[CommittedTopic] = []
        self.configured: set[int] = set()
        self.throttles: list[CommittedThrottle] = []
        self.acls: dict[int, tuple[AccessControlEntryRecord, ...]] = {}

    def begin(self, offset: int, operation: int, position: int) -> None:
        """The next record is at an offset, of an operation that ends at another."""
        super().begin(offset, operation, position)
        if not self.operations or self.operations[-1] != operation:
            self.operations.append(operation)

    def take_topic(self, topic: CommittedTopic) -> None:
        """A topic is created or removed."""
        self.topics.append(topic)

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition."""
        self.partitions.setdefault((state.topic_id, state.partition), []).append(state)
        self.by_offset.setdefault(state.offset, []).append(state)

    def take_broker(self, state: CommittedBroker) -> None:
        """A record has changed a broker."""
        self.brokers.setdefault(state.broker, []).append(state)
        if state.is_unfenced:
            self.unfenced[state.offset] = state

    def on_config(self, record: ConfigRecord) -> None:
        """A config is set or removed."""
        if record.resource_type == TOPIC_RESOURCE and record.value is not None:
            self.configured.add(self.operation)
        throttle = CommittedThrottle.of(record, self.position, self.operation)
        if throttle is not None:
            self.throttles.append(throttle)

    def on_acl(self, record: AccessControlEntryRecord | RemoveAccessControlEntryRecord) -> None:
        """An ACL is set or removed."""
        acls = {acl.id: acl for acl in next(reversed(self.acls.values()), ())}
        acls.pop(record.id, None)
        if isinstance(record, AccessControlEntryRecord):
            acls[record.id] = record
        self.acls[self.operation] = tuple(acls.values())

    def written_at(self, offset: int) -> list[CommittedPartition]:
        """The states that the log's record at an offset made.

        A snapshot's records share the offset before its end with a record that only it contains
        now: the request that wrote that record wrote none of them.
        """
        return [state for state in self.by_offset.get(offset, ()) if state.step.judged]

    def operation_of(self, offset: int) -> int | None:
        """The end of the operation of a record; None where it is not committed."""
        place = bisect_left(self.operations, offset)
        return self.operations[place] if place < len(self.operations) else None

    def partition_at(self, topic_id: str, number: int, offset: int) -> CommittedPartition | None:
        """The latest state of a partition at or before an offset."""
        states = self.partitions.get((topic_id, number), ())
        place = bisect_right(states, offset, key=lambda state: state.offset)
        return states[place - 1] if place else None

    def broker_at(self, broker: int, offset: int) -> CommittedBroker | None:
        """The latest state of a broker at or before an offset."""
        states = self.brokers.get(broker, ())
        place = bisect_right(states, offset, key=lambda state: state.offset)
        return states[place - 1] if place else None
