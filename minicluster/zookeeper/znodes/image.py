"""The committed state of a cluster on ZooKeeper: what its znodes hold, as metadata records."""

from __future__ import annotations

from uuid import UUID

from minicluster.metadata.image.configs import TOPIC
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol.records import VersionedRecord
from minicluster.zookeeper.server.tree import Change
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import BrokerRegistration
from minicluster.zookeeper.znodes.partition_state import PartitionState
from minicluster.zookeeper.znodes.records import (
    broker_record,
    config_records,
    dead_broker_record,
    first_records,
    id_of_name,
    no_topic_record,
    partition_record,
    topic_record,
)
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment, decode_config


class ZnodeImage:
    """The fold of ZooKeeper's transactions to an image."""

    def __init__(self) -> None:
        self.image = MetadataImage.EMPTY
        self._assignments: dict[str, TopicAssignment] = {}
        self._states: dict[TopicPartition, tuple[PartitionState, int]] = {}
        self._epochs: dict[int, int] = {}
        self._offset = 0
        self._deleted: dict[str, UUID] = {}  # topics whose mark for deletion is still there

    def on_changes(self, changes: tuple[Change, ...]) -> list[VersionedRecord]:
        """The records of one transaction; they are applied."""
        records = first_records() if self.image is MetadataImage.EMPTY else []
        self._apply(records)
        for change in changes:
            of_change = self._records(change)
            self._apply(of_change)
            records += of_change
        return records

    def _apply(self, records: list[VersionedRecord]) -> None:
        for record in records:
            self.image = apply(self.image, record, offset=self._offset)
            self._offset += 1

    def _records(self, change: Change) -> list[VersionedRecord]:
        parent, _, name = change.path.rpartition("/")
        partition = paths.state_of(change.path)
        if partition is not None:
            return self._state(partition, change)
        match parent:
            case paths.BROKER_IDS:
                return self._broker(int(name), change)
            case paths.TOPICS:
                return self._topic(name, change)
            case paths.DELETE_TOPICS if change.kind == "delete":
                return self._forget_deleted(name)
            case paths.TOPIC_CONFIGS if change.kind != "delete":
                before = self.image.configs.of(TOPIC, name)
                return config_records(name, dict(before), decode_config(change.data))
        return []

    def _broker(self, broker: int, change: Change) -> list[VersionedRecord]:
        if change.kind == "delete":
            return [dead_broker_record(broker, self._epochs[broker])]
        if change.data is None:
            return []  # created empty; its data comes with the next part of the multi
        self._epochs[broker] = change.czxid
        registration = BrokerRegistration.decode(change.data)
        endpoints = [(each.listener, each.host, each.port) for each in registration.endpoints]
        incarnation = UUID(int=change.czxid)
        return [broker_record(broker, change.czxid, incarnation, endpoints)]

    def _forget_deleted(self, topic: str) -> list[VersionedRecord]:
        """The end of a topic is that of its mark for deletion: until then its name is taken."""
        topic_id = self._deleted.pop(topic, None)
        return [] if topic_id is None else [no_topic_record(topic_id)]

    def _topic(self, topic: str, change: Change) -> list[VersionedRecord]:
        before = self._assignments.get(topic)
        if change.kind == "delete":
            del self._assignments[topic]
            self._deleted[topic] = _id(topic, before)
            return []
        assignment = TopicAssignment.decode(change.data)
        self._assignments[topic] = assignment
        records = self._forget_deleted(topic)
        if before is None:
            records.append(topic_record(topic, _id(topic, assignment)))
        for number, replicas in assignment.partitions.items():
            partition = TopicPartition(topic, number)
            known = self._states.get(partition)
            changed = before is None or before.partitions.get(number) != replicas
            if known is not None and changed:
                records.append(self._partition(partition, replicas, *known))
        return records

    def _state(self, partition: TopicPartition, change: Change) -> list[VersionedRecord]:
        if change.kind == "delete":
            self._states.pop(partition, None)
            return []
        state = PartitionState.from_json(change.data or b"")
        self._states[partition] = (state, change.version)
        assignment = self._assignments[partition.topic].partitions.get(partition.partition)
        if assignment is None:
            return []
        return [self._partition(partition, assignment, state, change.version)]

    def _partition(
        self,
        partition: TopicPartition,
        assignment: ReplicaAssignment,
        state: PartitionState,
        version: int,
    ) -> VersionedRecord:
        return partition_record(
            _id(partition.topic, self._assignments[partition.topic]),
            partition.partition,
            replicas=assignment.replicas,
            isr=state.isr,
            adding_replicas=assignment.adding,
            removing_replicas=assignment.removing,
            leader=state.leader,
            leader_recovery_state=state.leader_recovery_state,
            leader_epoch=state.leader_epoch,
            partition_epoch=version,
        )


def _id(topic: str, assignment: TopicAssignment | None) -> UUID:
    known = None if assignment is None else assignment.topic_id
    return id_of_name(topic) if known is None else known
