"""Topics that come and go, more partitions, and requests to delete.

Source:  KIP-516; kafka.controller.KafkaController.processTopicChange,
         processPartitionModifications, processTopicDeletion, processTopicIds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.planting import step
from minicluster.values import replace
from minicluster.zookeeper.controller.context import PartitionStatus, ReplicaStatus
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.partition_states import change_partitions
from minicluster.zookeeper.controller.replica_states import change_replicas
from minicluster.zookeeper.controller.topic_deletion import (
    mark_ineligible,
    queue_deletions,
)
from minicluster.zookeeper.controller.znode_access import (
    children_of,
    delete_all,
    read_assignments,
    write_all,
    write_assignment,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import SetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import TopicAssignment


def process_topic_change(state: ControllerState) -> Process[None]:
    """Take new topics, and forget those that are gone."""
    if not state.is_active:
        return
    context = state.context
    topics = yield from children_of(state, paths.TOPICS)
    new = [topic for topic in topics if topic not in context.topics]
    gone = [topic for topic in context.topics if topic not in topics]
    context.topics = dict.fromkeys(topics)
    state.watch_nodes(paths.topic(topic) for topic in new)
    assignments = yield from read_assignments(state, new)
    for topic in gone:
        context.remove_topic(topic)
    yield from take_assignments(state, assignments)
    yield from _create(state, [p for topic in assignments for p in context.partitions_of(topic)])


@step
def take_assignments(
    state: ControllerState, assignments: Mapping[str, TopicAssignment]
) -> Process[None]:
    """Take assignments and topic ids; a topic without an id gets one from IBP 2.8 on."""
    context = state.context
    with_ids = dict(assignments)
    if state.settings.protocol.topic_ids_supported:
        missing = [topic for topic, taken in assignments.items() if taken.topic_id is None]
        for topic in missing:
            with_ids[topic] = replace(assignments[topic], topic_id=state.new_topic_id())
        yield from write_all(
            state, [SetData(paths.topic(topic), with_ids[topic].encode()) for topic in missing]
        )
    for topic, assignment in with_ids.items():
        if assignment.topic_id is not None:
            context.add_topic_id(topic, assignment.topic_id)
        for number, replicas in assignment.partitions.items():
            context.assign(TopicPartition(topic, number), replicas)


def _create(state: ControllerState, partitions: Sequence[TopicPartition]) -> Process[None]:
    yield from change_partitions(state, partitions, PartitionStatus.NEW)
    replicas = state.context.replicas_of(partitions)
    yield from change_replicas(state, replicas, ReplicaStatus.NEW)
    yield from change_partitions(state, partitions, PartitionStatus.ONLINE)
    yield from change_replicas(state, replicas, ReplicaStatus.ONLINE)


def process_partition_modification(state: ControllerState, topic: str) -> Process[None]:
    """More partitions of a topic; one that is to be deleted gets none."""
    if not state.is_active:
        return
    context = state.context
    assignment = (yield from read_assignments(state, (topic,))).get(topic)
    assigned = {} if assignment is None else assignment.partitions
    added = [
        TopicPartition(topic, number)
        for number in sorted(assigned)
        if not context.assignment(TopicPartition(topic, number)).replicas
    ]
    if not added:
        return
    if context.is_queued_for_deletion(topic):
        existing = yield from children_of(state, paths.topic_partitions(topic))
        before = {
            int(name): context.assignment(TopicPartition(topic, int(name)))
            for name in existing
            if int(name) in assigned
        }
        restored = TopicAssignment(before, context.topic_ids.get(topic))
        yield from write_assignment(state, topic, restored)
        return
    for partition in added:
        context.assign(partition, assigned[partition.partition])
    yield from _create(state, added)


def process_topic_deletion(state: ControllerState) -> Process[None]:
    """Requests to delete topics; those of unknown topics go."""
    if not state.is_active:
        return
    context = state.context
    requested = yield from children_of(state, paths.DELETE_TOPICS)
    unknown = [topic for topic in requested if topic not in context.topics]
    yield from delete_all(state, [paths.delete_topic(topic) for topic in unknown])
    topics = [topic for topic in requested if topic not in unknown]
    if not state.settings.delete_topic_enable:
        yield from delete_all(state, [paths.delete_topic(topic) for topic in topics])
        return
    reassigned = {partition.topic for partition in context.reassigned}
    if topics:
        mark_ineligible(state, [topic for topic in topics if topic in reassigned])
        yield from queue_deletions(state, topics)
