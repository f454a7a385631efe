"""The cluster as the active controller holds it.

Source:  kafka.controller.ControllerContext.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from uuid import UUID

from minicluster.log.epochs import NO_EPOCH
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.zookeeper.controller.errors import IllegalState
from minicluster.zookeeper.controller.leader_and_isr import (
    Leadership,
)
from minicluster.zookeeper.znodes.cluster import BrokerRegistration
from minicluster.zookeeper.znodes.partition_state import EPOCH_DURING_DELETE
from minicluster.zookeeper.znodes.topics import ReplicaAssignment


class PartitionStatus(Enum):
    """States of the partition state machine."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaStatus(Enum):
    """States of the replica state machine."""

    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    NON_EXISTENT = "NonExistentReplica"


Replica = tuple[TopicPartition, int]
"""A partition, and the broker that has a replica of it."""

NO_ASSIGNMENT = ReplicaAssignment()


class Context:
    """Brokers, topics, assignments, leaders, and the states of partitions and replicas."""

    def __init__(self) -> None:
        self.epoch = 0
        self.epoch_version = 0  # of the znode /controller_epoch
        self.live_brokers: dict[int, BrokerRegistration] = {}  # or shutting down
        self.broker_epochs: dict[int, int] = {}
        self.shutting_down: set[int] = set()
        self.topics: dict[str, None] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.topic_names: dict[UUID, str] = {}
        self.assignments: dict[str, dict[int, ReplicaAssignment]] = {}
        self.leaderships: dict[TopicPartition, Leadership] = {}
        self.reassigned: dict[TopicPartition, None] = {}
        self.partition_states: dict[TopicPartition, PartitionStatus] = {}
        self.replica_states: dict[Replica, ReplicaStatus] = {}
        self.offline_dirs: dict[int, set[TopicPartition]] = {}
        self.topics_to_delete: dict[str, None] = {}
        self.deletion_started: set[str] = set()
        self.ineligible_for_deletion: set[str] = set()

    def add_brokers(self, brokers: dict[int, tuple[BrokerRegistration, int]]) -> None:
        """Brokers that have registered, with their epochs."""
        for broker, (registration, epoch) in sorted(brokers.items()):
            self.live_brokers[broker] = registration
            self.broker_epochs[broker] = epoch

    def remove_brokers(self, brokers: Iterable[int]) -> None:
        """Brokers whose session has ended."""
        for broker in brokers:
            self.live_brokers.pop(broker, None)
            self.broker_epochs.pop(broker, None)

    def is_live(self, broker: int) -> bool:
        """The broker is registered and not shutting down."""
        return broker in self.broker_epochs and broker not in self.shutting_down

    def is_online(
        self, broker: int, partition: TopicPartition, *, or_shutting_down: bool = False
    ) -> bool:
        """A replica on a live broker, in a log directory that works."""
        live = broker in self.broker_epochs if or_shutting_down else self.is_live(broker)
        return live and partition not in self.offline_dirs.get(broker, ())

    def online(self, replicas: Iterable[int], partition: TopicPartition) -> tuple[int, ...]:
        """The replicas of a partition that are online."""
        return tuple(replica for replica in replicas if self.is_online(replica, partition))

    def add_topic_id(self, topic: str, topic_id: UUID) -> None:
        """The id of a topic, once and for all (KAFKA-14190).

        Errors:  IllegalState if the topic has another id, or another topic has this one.
        """
        current = self.topic_ids.get(topic, topic_id)
        if current != topic_id:
            raise IllegalState(f"topic {topic} has the id {current}, not {topic_id}")
        name = self.topic_names.get(topic_id, topic)
        if name != topic:
            raise IllegalState(f"the id {topic_id} is that of {name}, not of {topic}")
        self.topic_ids[topic], self.topic_names[topic_id] = topic_id, topic

    def leadership(self, partition: TopicPartition) -> Leadership:
        """Leader and ISR of a partition that has a state.

        Errors:  IllegalState if it has none.
        """
        leadership = self.leaderships.get(partition)
        if leadership is None:
            raise IllegalState(f"{partition} has no state")
        return leadership

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The replicas of a partition; none for one that is not there."""
        return self.assignments.get(partition.topic, {}).get(partition.partition, NO_ASSIGNMENT)

    def preferred_replica(self, partition: TopicPartition) -> int:
        """The first replica of a partition.

        Errors:  IllegalState if it has none, which only a tool writes.
        """
        replicas = self.assignment(partition).replicas
        if not replicas:
            raise IllegalState(f"{partition} has no replicas")
        return replicas[0]

    def assign(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Other replicas of a partition."""
        self.assignments.setdefault(partition.topic, {})[partition.partition] = assignment

    def partitions(self) -> list[TopicPartition]:
        """All partitions, in order."""
        return sorted(p for topic in self.assignments for p in self.partitions_of(topic))

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic, in order."""
        return [TopicPartition(topic, number) for number in sorted(self.assignments.get(topic, {}))]

    def partitions_on(self, broker: int) -> list[TopicPartition]:
        """The partitions with a replica on a broker."""
        return [p for p in self.partitions() if broker in self.assignment(p).replicas]

    def replicas_on(self, brokers: Iterable[int]) -> list[Replica]:
        """The replicas on some brokers."""
        return [(p, broker) for broker in brokers for p in self.partitions_on(broker)]

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        """The replicas of some partitions."""
        return [(p, broker) for p in partitions for broker in self.assignment(p).replicas]

    def replicas_in(self, topic: str, status: ReplicaStatus) -> list[Replica]:
        """The replicas of a topic in one state."""
        replicas = self.replicas_of(self.partitions_of(topic))
        return [replica for replica in replicas if self.replica_states.get(replica) is status]

    def partitions_in(
        self, states: Iterable[PartitionStatus], topic: str | None = None
    ) -> list[TopicPartition]:
        """The partitions in some states, of all topics or of one."""
        wanted = set(states)
        return sorted(
            partition
            for partition, state in self.partition_states.items()
            if state in wanted and topic in (None, partition.topic)
        )

    def is_queued_for_deletion(self, topic: str) -> bool:
        """The topic is to be deleted."""
        return topic in self.topics_to_delete

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch for StopReplica; -2 while its topic is deleted, -1 if there is none."""
        if self.is_queued_for_deletion(partition.topic):
            return EPOCH_DURING_DELETE
        leadership = self.leaderships.get(partition)
        return NO_EPOCH if leadership is None else leadership.leader_and_isr.leader_epoch

    def partitions_with_leaders(self) -> list[TopicPartition]:
        """The partitions that have a state, but for those of topics to be deleted."""
        return sorted(p for p in self.leaderships if not self.is_queued_for_deletion(p.topic))

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """The partitions whose leader is not online, but for those of topics to be deleted."""
        return [
            partition
            for partition in self.partitions_with_leaders()
            if not self.is_online(self.leaderships[partition].leader_and_isr.leader, partition)
        ]

    def remove_topic(self, topic: str) -> None:
        """A topic that is gone."""
        self.topics_to_delete.pop(topic, None)
        self.deletion_started.discard(topic)
        self.topics.pop(topic, None)
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)
        for partition in self.partitions_of(topic):
            self.leaderships.pop(partition, None)
        self.assignments.pop(topic, None)
