"""Reassignment of a partition: new replicas start; once all targets are in the ISR, old ones go.

Source:  KIP-455; kafka.controller.KafkaController.onPartitionReassignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minicluster.metadata.topic_partition import TopicPartition, in_scala_order
from minicluster.planting import step
from minicluster.zookeeper.controller.changing.elections import Strategy
from minicluster.zookeeper.controller.changing.partition_states import change_partitions
from minicluster.zookeeper.controller.changing.replica_states import change_replicas
from minicluster.zookeeper.controller.changing.topic_deletion import (
    mark_ineligible,
    resume_deletion_of,
)
from minicluster.zookeeper.controller.errors import StateChangeFailed
from minicluster.zookeeper.controller.events import ZkReassignment
from minicluster.zookeeper.controller.process import Process
from minicluster.zookeeper.controller.state.context import PartitionStatus, ReplicaStatus
from minicluster.zookeeper.controller.state.controller_state import ControllerState
from minicluster.zookeeper.controller.state.leader_and_isr import Leadership
from minicluster.zookeeper.controller.state.request_batch import RequestBatch, send_metadata
from minicluster.zookeeper.controller.znode_access import (
    decoded,
    delete_all,
    expect_ok,
    read_data,
    read_known_states,
    read_states,
    write_all,
    write_assignment,
    write_states,
)
from minicluster.zookeeper.server.operations import Code, Create, Exists, SetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import decode_reassignment, encode_reassignment
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment, without


def reassign(
    state: ControllerState, partition: TopicPartition, reassignment: ReplicaAssignment
) -> Process[None]:
    """The next phase of a reassignment: its start, or its end once all targets are in the ISR."""
    context = state.context
    mark_ineligible(state, (partition.topic,))
    yield from _update_current(state, partition, reassignment)
    if not (yield from is_complete(state, partition, reassignment)):
        yield from _raise_leader_epoch(state, partition, reassignment)
        for replica in reassignment.adding:
            yield from change_replicas(state, [(partition, replica)], ReplicaStatus.NEW)
        return
    added = [(partition, replica) for replica in reassignment.adding]
    yield from change_replicas(state, added, ReplicaStatus.ONLINE)
    completed = ReplicaAssignment(reassignment.target)
    context.assign(partition, completed)
    yield from _move_leader(state, partition, completed)
    yield from _stop_removed(state, partition, reassignment.removing)
    yield from _write(state, partition, completed)
    yield from _end(state, partition, completed)
    send_metadata(state, context.broker_epochs, (partition,))
    yield from resume_deletion_of(state, (partition.topic,))


def resume_reassignments(
    state: ControllerState, resumes: Callable[[TopicPartition, ReplicaAssignment], bool]
) -> Process[None]:
    """Go on with the reassignments that something has happened to."""
    for partition in in_scala_order(state.context.reassigned):
        assignment = state.context.assignment(partition)
        if resumes(partition, assignment):
            yield from reassign(state, partition, assignment)


def complete_if_caught_up(state: ControllerState, partition: TopicPartition) -> Process[None]:
    """End a reassignment if all targets are in the ISR by now."""
    assignment = state.context.assignment(partition)
    if (yield from is_complete(state, partition, assignment)):
        yield from reassign(state, partition, assignment)


def is_complete(
    state: ControllerState, partition: TopicPartition, assignment: ReplicaAssignment
) -> Process[bool]:
    """All targets are in the ISR, or no replica is added or removed."""
    if not assignment.is_being_reassigned:
        return True
    found = yield from read_known_states(state, (partition,))
    leadership = found.get(partition)
    return leadership is not None and targets_in_sync(state, leadership, assignment)


@step
def targets_in_sync(
    state: ControllerState, leadership: Leadership, assignment: ReplicaAssignment
) -> bool:
    """All targets are in the ISR."""
    return set(assignment.target) <= set(leadership.leader_and_isr.isr)


def _update_current(
    state: ControllerState, partition: TopicPartition, reassignment: ReplicaAssignment
) -> Process[None]:
    context = state.context
    current = context.assignment(partition)
    if current != reassignment:
        yield from _write(state, partition, reassignment)
        context.assign(partition, reassignment)
        yield from _stop_removed(state, partition, without(current.replicas, reassignment.replicas))
    if not state.settings.protocol.alter_partition_supported:
        state.watch_nodes((paths.partition_state(partition),))
    context.reassigned[partition] = None


def _raise_leader_epoch(
    state: ControllerState, partition: TopicPartition, assignment: ReplicaAssignment
) -> Process[None]:
    """A new leader epoch, so that brokers take the LeaderAndIsr with the new replicas."""
    context = state.context
    written = None
    while written is None:
        found = (yield from read_states(state, (partition,)))[partition]
        if not isinstance(found, Leadership):
            raise found or StateChangeFailed(f"{partition} has no state")
        if found.controller_epoch > context.epoch:
            raise StateChangeFailed("written by a newer controller")
        current = found.leader_and_isr
        result = yield from write_states(state, {partition: current.elect(current.leader)})
        for failure in result.failed.values():
            raise failure
        written = result.written.get(partition)
    leadership = Leadership(written, context.epoch)
    context.leaderships[partition] = leadership
    batch = RequestBatch(state)
    batch.add_leader_and_isr(assignment.origin, partition, leadership, assignment, is_new=False)
    batch.add_leader_and_isr(assignment.adding, partition, leadership, assignment, is_new=True)
    batch.send()


def _move_leader(
    state: ControllerState, partition: TopicPartition, completed: ReplicaAssignment
) -> Process[None]:
    """Another leader if this one goes or is not online; else only another epoch."""
    leader = state.context.leadership(partition).leader_and_isr.leader
    if leader in completed.replicas and state.context.is_online(leader, partition):
        yield from _raise_leader_epoch(state, partition, completed)
    else:
        yield from change_partitions(state, [partition], PartitionStatus.ONLINE, Strategy.REASSIGN)


def _stop_removed(
    state: ControllerState, partition: TopicPartition, removed: Sequence[int]
) -> Process[None]:
    replicas = [(partition, replica) for replica in removed]
    for status in (
        ReplicaStatus.OFFLINE,
        ReplicaStatus.DELETION_STARTED,
        ReplicaStatus.DELETION_SUCCESSFUL,
        ReplicaStatus.NON_EXISTENT,
    ):
        yield from change_replicas(state, replicas, status)


def _write(
    state: ControllerState, partition: TopicPartition, assignment: ReplicaAssignment
) -> Process[None]:
    context = state.context
    of_topic = context.assignments.get(partition.topic, {}) | {partition.partition: assignment}
    topic_id = context.topic_ids.get(partition.topic)
    yield from write_assignment(state, partition.topic, TopicAssignment(of_topic, topic_id))


def _end(
    state: ControllerState, partition: TopicPartition, completed: ReplicaAssignment
) -> Process[None]:
    if not state.settings.protocol.alter_partition_supported:
        state.forget_nodes((paths.partition_state(partition),))
    yield from remove_from_znode(
        state, lambda one, replicas: one == partition and replicas == completed.replicas
    )
    state.context.reassigned.pop(partition, None)


def read_reassignment(state: ControllerState) -> Process[dict[TopicPartition, tuple[int, ...]]]:
    """The targets in /admin/reassign_partitions; a text that cannot be read has none."""
    result = yield from read_data(state, paths.REASSIGN_PARTITIONS)
    return decoded(decode_reassignment, expect_ok(result, Code.NONODE), {})


def remove_from_znode(
    state: ControllerState, removes: Callable[[TopicPartition, tuple[int, ...]], bool]
) -> Process[None]:
    """Remove partitions from /admin/reassign_partitions; empty, the znode goes."""
    (there,) = yield (
        Exists(paths.REASSIGN_PARTITIONS, paths.REASSIGN_PARTITIONS in state.watched_nodes),
    )
    if there.code is Code.NONODE:
        return
    targets = yield from read_reassignment(state)
    kept = {one: replicas for one, replicas in targets.items() if not removes(one, replicas)}
    if kept:
        data = encode_reassignment(kept)
        (result,) = yield from write_all(state, [SetData(paths.REASSIGN_PARTITIONS, data)])
        if result.code is Code.NONODE:
            (result,) = yield from write_all(state, [Create(paths.REASSIGN_PARTITIONS, data)])
        expect_ok(result)
        return
    yield from delete_all(state, [paths.REASSIGN_PARTITIONS])
    state.put(ZkReassignment())  # the znode may be there again: its watch is gone
