"""Deletion of topics: replicas are stopped, then deleted, then the znodes go.

A topic with a replica on a dead broker waits for it; one that is reassigned, for the end of that.
The znodes go last: were they gone first, a broker that was down would come back with a log of which
nobody knows that it is to be deleted.

Source:  kafka.controller.TopicDeletionManager.
"""

from __future__ import annotations

from collections.abc import Iterable

from minicluster.java_order import scala_copy_order, scala_map_order, string_hash
from minicluster.zookeeper.controller.context import (
    PartitionStatus,
    Replica,
    ReplicaStatus,
)
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.partition_states import change_partitions
from minicluster.zookeeper.controller.replica_states import change_replicas
from minicluster.zookeeper.controller.request_batch import send_metadata
from minicluster.zookeeper.controller.znode_access import delete_all, delete_recursively
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.znodes import paths


def queue_deletions(state: ControllerState, topics: Iterable[str]) -> Process[None]:
    """Delete topics."""
    state.context.topics_to_delete.update(dict.fromkeys(sorted(topics)))
    yield from resume_deletions(state)


def mark_ineligible(state: ControllerState, topics: Iterable[str]) -> None:
    """Let topics wait with their deletion."""
    context = state.context
    context.ineligible_for_deletion.update(t for t in topics if context.is_queued_for_deletion(t))


def resume_deletion_of(state: ControllerState, topics: Iterable[str]) -> Process[None]:
    """Continue the deletion of topics that waited."""
    context = state.context
    resumed = {topic for topic in topics if context.is_queued_for_deletion(topic)}
    if resumed:
        context.ineligible_for_deletion -= resumed
        yield from resume_deletions(state)


def fail_replica_deletions(state: ControllerState, replicas: Iterable[Replica]) -> Process[None]:
    """Replicas that could not be deleted: their topics wait."""
    failed = [r for r in replicas if state.context.is_queued_for_deletion(r[0].topic)]
    if failed:
        yield from change_replicas(state, failed, ReplicaStatus.DELETION_INELIGIBLE)
        mark_ineligible(state, {partition.topic for partition, _ in failed})
        yield from resume_deletions(state)


def complete_replica_deletions(
    state: ControllerState, replicas: Iterable[Replica]
) -> Process[None]:
    """Replicas that were deleted."""
    deleted = [r for r in replicas if state.context.is_queued_for_deletion(r[0].topic)]
    yield from change_replicas(state, deleted, ReplicaStatus.DELETION_SUCCESSFUL)
    yield from resume_deletions(state)


def resume_deletions(state: ControllerState) -> Process[None]:
    """Do the next step of each deletion, in the order of the Scala set of the topics."""
    context = state.context
    retried: list[Replica] = []
    eligible = []
    queued = scala_map_order(context.topics_to_delete, string_hash)
    for topic in scala_copy_order(queued, string_hash):
        replicas = context.replicas_of(context.partitions_of(topic))
        states = [context.replica_states.get(replica) for replica in replicas]
        if all(status is ReplicaStatus.DELETION_SUCCESSFUL for status in states):
            yield from _complete(state, topic)
        started = ReplicaStatus.DELETION_STARTED in states
        if not started and ReplicaStatus.DELETION_INELIGIBLE in states:
            retried += context.replicas_in(topic, ReplicaStatus.DELETION_INELIGIBLE)
        waiting = topic in context.ineligible_for_deletion
        if context.is_queued_for_deletion(topic) and not started and not waiting:
            eligible.append(topic)
    if retried:
        yield from change_replicas(state, retried, ReplicaStatus.OFFLINE)
    if eligible:
        yield from _delete(state, eligible)


def _complete(state: ControllerState, topic: str) -> Process[None]:
    """All replicas are deleted: the znodes go bottom up, the request to delete as the last."""
    context = state.context
    state.forget_nodes((paths.topic(topic),))
    deleted = context.replicas_in(topic, ReplicaStatus.DELETION_SUCCESSFUL)
    yield from change_replicas(state, deleted, ReplicaStatus.NON_EXISTENT)
    yield from delete_recursively(state, paths.topic(topic))
    yield from delete_all(state, [paths.topic_config(topic)])
    yield from delete_all(state, [paths.delete_topic(topic)])
    context.remove_topic(topic)


def _delete(state: ControllerState, topics: list[str]) -> Process[None]:
    context = state.context
    unseen = [topic for topic in topics if topic not in context.deletion_started]
    partitions = [p for topic in unseen for p in context.partitions_of(topic)]
    if unseen:
        yield from change_partitions(state, partitions, PartitionStatus.OFFLINE)
        yield from change_partitions(state, partitions, PartitionStatus.NON_EXISTENT)
        context.deletion_started.update(unseen)
    everywhere = [p for topic in topics for p in context.partitions_of(topic)]
    send_metadata(state, context.broker_epochs, everywhere)
    dead: list[Replica] = []
    alive: list[Replica] = []
    waiting = []
    for topic in topics:
        replicas = context.replicas_of(context.partitions_of(topic))
        of_dead = [r for r in replicas if not context.is_online(r[1], r[0])]
        done = context.replicas_in(topic, ReplicaStatus.DELETION_SUCCESSFUL)
        dead += of_dead
        alive += [r for r in replicas if r not in of_dead and r not in done]
        if of_dead:
            waiting.append(topic)
    yield from change_replicas(state, dead, ReplicaStatus.DELETION_INELIGIBLE)
    yield from change_replicas(state, alive, ReplicaStatus.OFFLINE)
    yield from change_replicas(state, alive, ReplicaStatus.DELETION_STARTED)
    mark_ineligible(state, waiting)
