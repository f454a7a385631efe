"""Reassignment of partitions, from the request, or a tool's znode, to the end of the old replicas.

New replicas start; once all targets are in the ISR, the old ones go. The phases stand after the
events that begin them and bring them on:

    1  write the assignment, targets and old replicas together
    2  raise the leader epoch: a broker ignores a LeaderAndIsr of an epoch that it has already, and
       would not learn of the new replicas
    3  start the new replicas, and wait until an ISR has all targets
    4  move the leader, if it is none of the targets
    5  stop the removed replicas, and delete their logs
    6  write the assignment without them

Each step can be the last of this controller. So each is written where the next controller finds it,
and is done again as a whole: every step is harmless the second time.

Versions: AlterPartitionReassignments (45) 0; ListPartitionReassignments (46) 0.
Source:   KIP-455; kafka.controller.KafkaController.processApiPartitionReassignment,
          processZkPartitionReassignment, onPartitionReassignment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minicluster.controller.errors import ApiError
from minicluster.metadata.topic_partition import TopicPartition, in_scala_order
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from minicluster.zookeeper.controller.context import PartitionStatus, ReplicaStatus
from minicluster.zookeeper.controller.controller_api import ControllerApi
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.elections import Strategy
from minicluster.zookeeper.controller.errors import FAILURES, NO_PARTITION, StateChangeFailed
from minicluster.zookeeper.controller.events import ZkReassignment
from minicluster.zookeeper.controller.leader_and_isr import Leadership
from minicluster.zookeeper.controller.partition_states import change_partitions
from minicluster.zookeeper.controller.replica_states import change_replicas
from minicluster.zookeeper.controller.request_batch import RequestBatch, send_metadata
from minicluster.zookeeper.controller.topic_deletion import (
    mark_ineligible,
    resume_deletion_of,
)
from minicluster.zookeeper.controller.znode_access import (
    decoded,
    delete_all,
    expect_ok,
    read_data,
    read_known_states,
    read_states,
    watch_node,
    write_all,
    write_assignment,
    write_states,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code, Create, Exists, SetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import decode_reassignment, encode_reassignment
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment, without


def process_alter_reassignments(
    state: ControllerState, token: Any, request: AlterPartitionReassignmentsRequest
) -> Process[None]:
    """Begin, change and cancel reassignments."""
    if not state.is_active:
        state.respond(token, alter_reassignments_refusal())
        return
    outcomes: dict[TopicPartition, ApiError] = {}
    reassignments: dict[TopicPartition, ReplicaAssignment] = {}
    requested = {
        TopicPartition(topic.name, data.partition_index): data.replicas
        for topic in request.topics
        for data in topic.partitions
    }
    for partition, replicas in requested.items():
        problem = None if replicas is None else _problem_of(state, partition, replicas)
        if problem is not None:
            outcomes[partition] = ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
            continue
        built = _build(state, partition, replicas)
        if built is None:
            outcomes[partition] = ApiError.of_code(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        else:
            reassignments[partition] = built
    yield from remove_from_znode(state, lambda listed, _: listed in reassignments)
    outcomes |= yield from _reassign_all(state, reassignments)
    state.respond(token, _response(outcomes))


def alter_reassignments_refusal() -> AlterPartitionReassignmentsResponse:
    """The response of a broker that is not, or not any more, the controller."""
    error = ApiError.of_code(ErrorCode.NOT_CONTROLLER)
    return AlterPartitionReassignmentsResponse(error_code=error.error, error_message=error.message)


def _response(outcomes: dict[TopicPartition, ApiError]) -> AlterPartitionReassignmentsResponse:
    by_topic: dict[str, list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse]]
    by_topic = {}
    for partition, outcome in outcomes.items():
        by_topic.setdefault(partition.topic, []).append(
            AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                partition_index=partition.partition,
                error_code=outcome.error,
                error_message=outcome.message,
            )
        )
    return AlterPartitionReassignmentsResponse(
        responses=tuple(
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic, partitions=tuple(partitions)
            )
            for topic, partitions in by_topic.items()
        ),
    )


def _problem_of(
    state: ControllerState, partition: TopicPartition, replicas: tuple[int, ...]
) -> str | None:
    """The reason to reject a target: replicas are named once each, and added on live brokers.

    Source:  KafkaController.validateReplicas, with the texts of its Scala collections.
    """
    listed = f"ArrayBuffer({', '.join(map(str, replicas))})"
    if not replicas:
        return "Empty replica list specified in partition reassignment."
    if len(replicas) != len(set(replicas)):
        return f"Duplicate replica ids in partition reassignment replica list: {listed}"
    if min(replicas) < 0:
        return f"Invalid broker id in replica list: {listed}"
    context = state.context
    adding = context.assignment(partition).reassign_to(replicas).adding
    if all(context.is_live(broker) for broker in adding):
        return None
    live = ", ".join(str(broker) for broker in context.broker_epochs if context.is_live(broker))
    return (
        "Replica assignment has brokers that are not alive. Replica list: "
        f"ArrayBuffer({', '.join(map(str, adding))}), live broker list: Set({live})"
    )


def _build(
    state: ControllerState, partition: TopicPartition, target: tuple[int, ...] | None
) -> ReplicaAssignment | None:
    """The assignment on the way to a target; without one, back to where it was."""
    current = state.context.assignment(partition)
    if target is None:
        return current.reassign_to(current.origin) if current.is_being_reassigned else None
    return current.reassign_to(target)


def _reassign_all(
    state: ControllerState, reassignments: Mapping[TopicPartition, ReplicaAssignment]
) -> Process[dict[TopicPartition, ApiError]]:
    outcomes = {}
    for partition in in_scala_order(reassignments):
        deleted = state.context.is_queued_for_deletion(partition.topic)
        if deleted or not state.context.assignment(partition).replicas:
            outcomes[partition] = NO_PARTITION
            continue
        try:
            yield from reassign(state, partition, reassignments[partition])
            outcomes[partition] = ApiError()
        except FAILURES:
            outcomes[partition] = ApiError.of_code(ErrorCode.UNKNOWN_SERVER_ERROR)
    return outcomes


def process_zk_reassignment(state: ControllerState) -> Process[list[TopicPartition]]:
    """The reassignments that a tool requests by a znode; returns those that have begun."""
    if not state.is_active or not (yield from watch_node(state, paths.REASSIGN_PARTITIONS)):
        return []
    targets = yield from read_reassignment(state)
    reassignments = {
        partition: state.context.assignment(partition).reassign_to(target)
        for partition, target in targets.items()
    }
    outcomes = yield from _reassign_all(state, reassignments)
    failed = [p for p, outcome in outcomes.items() if outcome.error != ErrorCode.NONE]
    if failed:
        yield from remove_from_znode(state, lambda listed, _: listed in failed)
    return [partition for partition in outcomes if partition not in failed]


def process_reassignment_isr_change(
    state: ControllerState, partition: TopicPartition
) -> Process[None]:
    """A leader has written the ISR of a partition that is reassigned."""
    if state.is_active and partition in state.context.reassigned:
        yield from complete_if_caught_up(state, partition)


def process_list_reassignments(
    state: ControllerState, token: Any, request: ListPartitionReassignmentsRequest
) -> None:
    """The ongoing reassignments, all or those of the requested partitions."""
    context = state.context
    if not state.is_active:
        error = ApiError.of_code(ErrorCode.NOT_CONTROLLER)
        response = ListPartitionReassignmentsResponse(
            error_code=error.error, error_message=error.message
        )
        state.respond(token, response)
        return
    requested = sorted(context.reassigned)
    if request.topics is not None:
        named = (TopicPartition(t.name, p) for t in request.topics for p in t.partition_indexes)
        requested = list(dict.fromkeys(named))
    by_topic: dict[str, list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment]] = {}
    for partition in requested:
        assignment = context.assignment(partition)
        if assignment.is_being_reassigned:
            by_topic.setdefault(partition.topic, []).append(
                ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
                    partition_index=partition.partition,
                    replicas=assignment.replicas,
                    adding_replicas=assignment.adding,
                    removing_replicas=assignment.removing,
                )
            )
    state.respond(
        token,
        ListPartitionReassignmentsResponse(
            topics=tuple(
                ListPartitionReassignmentsResponse.OngoingTopicReassignment(
                    name=topic, partitions=tuple(partitions)
                )
                for topic, partitions in by_topic.items()
            ),
        ),
    )


# The phases of a reassignment.


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
    """Continue the reassignments that something has happened to."""
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
    leaderships = yield from read_known_states(state, (partition,))
    leadership = leaderships.get(partition)
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
        read = (yield from read_states(state, (partition,)))[partition]
        if not isinstance(read, Leadership):
            raise read or StateChangeFailed(f"{partition} has no state")
        if read.controller_epoch > context.epoch:
            raise StateChangeFailed("written by a newer controller")
        current = read.leader_and_isr
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
        state, lambda listed, replicas: listed == partition and replicas == completed.replicas
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
    (existing,) = yield (
        Exists(paths.REASSIGN_PARTITIONS, paths.REASSIGN_PARTITIONS in state.watched_nodes),
    )
    if existing.code is Code.NONODE:
        return
    targets = yield from read_reassignment(state)
    remaining = {
        partition: replicas
        for partition, replicas in targets.items()
        if not removes(partition, replicas)
    }
    if remaining:
        data = encode_reassignment(remaining)
        (result,) = yield from write_all(state, [SetData(paths.REASSIGN_PARTITIONS, data)])
        if result.code is Code.NONODE:
            (result,) = yield from write_all(state, [Create(paths.REASSIGN_PARTITIONS, data)])
        expect_ok(result)
        return
    yield from delete_all(state, [paths.REASSIGN_PARTITIONS])
    state.put(ZkReassignment())  # the znode may be there again: its watch is gone


ALTER_PARTITION_REASSIGNMENTS = ControllerApi(
    AlterPartitionReassignmentsRequest,
    lambda state, event: process_alter_reassignments(state, event.token, event.request),
    preempted=lambda request: alter_reassignments_refusal(),
)
LIST_PARTITION_REASSIGNMENTS = ControllerApi(
    ListPartitionReassignmentsRequest,
    lambda state, event: process_list_reassignments(state, event.token, event.request),
    preempted=lambda request: ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=None
    ),
)
