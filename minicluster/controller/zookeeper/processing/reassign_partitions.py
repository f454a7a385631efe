"""AlterPartitionReassignments (45) and ListPartitionReassignments (46), and the znode of old tools.

Versions: AlterPartitionReassignments 0; ListPartitionReassignments 0.
Source:   KIP-455; kafka.controller.KafkaController.processApiPartitionReassignment,
          processZkPartitionReassignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.controller.zookeeper.changing.reassignment import (
    FAILURES_OF_A_PARTITION,
    complete_if_caught_up,
    reassign,
    remove_from_znode,
)
from minicluster.controller.zookeeper.process import Process
from minicluster.controller.zookeeper.state.controller_state import ControllerState
from minicluster.controller.zookeeper.znode_access import expect_ok, read_data, watch_node
from minicluster.metadata.topic_partition import TopicPartition, in_scala_order
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from minicluster.zookeeper.operations import Code
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import decode_reassignment
from minicluster.zookeeper.znodes.topics import ReplicaAssignment


def process_alter_reassignments(
    state: ControllerState, token: Any, request: AlterPartitionReassignmentsRequest, version: int
) -> Process[None]:
    """Begin, change and cancel reassignments."""
    if not state.is_active:
        refused = AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=None
        )
        state.respond(token, refused)
        return
    outcomes: dict[TopicPartition, ErrorCode] = {}
    reassignments: dict[TopicPartition, ReplicaAssignment] = {}
    for topic in request.topics:
        for requested in topic.partitions:
            partition = TopicPartition(topic.name, requested.partition_index)
            if requested.replicas is not None and not _is_valid(
                state, partition, requested.replicas
            ):
                outcomes[partition] = ErrorCode.INVALID_REPLICA_ASSIGNMENT
                continue
            built = _build(state, partition, requested.replicas)
            if built is None:
                outcomes[partition] = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            else:
                reassignments[partition] = built
    yield from remove_from_znode(state, lambda one, _: one in reassignments)
    outcomes |= yield from _reassign_all(state, reassignments)
    state.respond(token, _response(outcomes))


def _response(outcomes: dict[TopicPartition, ErrorCode]) -> AlterPartitionReassignmentsResponse:
    by_topic: dict[str, list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse]]
    by_topic = {}
    for partition, code in outcomes.items():
        by_topic.setdefault(partition.topic, []).append(
            AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                partition_index=partition.partition, error_code=code, error_message=None
            )
        )
    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=tuple(
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic, partitions=tuple(partitions)
            )
            for topic, partitions in by_topic.items()
        ),
    )


def _is_valid(state: ControllerState, partition: TopicPartition, replicas: tuple[int, ...]) -> bool:
    """Replicas, each once, none negative, and those to be added on live brokers."""
    if not replicas or len(replicas) != len(set(replicas)) or min(replicas) < 0:
        return False
    reassigned = state.context.assignment(partition).reassign_to(replicas)
    return all(state.context.is_live(broker) for broker in reassigned.adding)


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
) -> Process[dict[TopicPartition, ErrorCode]]:
    outcomes = {}
    for partition in in_scala_order(reassignments):
        deleted = state.context.is_queued_for_deletion(partition.topic)
        if deleted or not state.context.assignment(partition).replicas:
            outcomes[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        try:
            yield from reassign(state, partition, reassignments[partition])
            outcomes[partition] = ErrorCode.NONE
        except FAILURES_OF_A_PARTITION:
            outcomes[partition] = ErrorCode.UNKNOWN_SERVER_ERROR
    return outcomes


def process_zk_reassignment(state: ControllerState) -> Process[list[TopicPartition]]:
    """The reassignments that a tool requests by a znode; returns those that have begun."""
    if not state.is_active or not (yield from watch_node(state, paths.REASSIGN_PARTITIONS)):
        return []
    result = yield from read_data(state, paths.REASSIGN_PARTITIONS)
    targets = decode_reassignment(result.data) if expect_ok(result, Code.NONODE).ok else {}
    reassignments = {
        partition: state.context.assignment(partition).reassign_to(target)
        for partition, target in targets.items()
    }
    outcomes = yield from _reassign_all(state, reassignments)
    failed = [partition for partition, code in outcomes.items() if code != ErrorCode.NONE]
    if failed:
        yield from remove_from_znode(state, lambda one, _: one in failed)
    return [partition for partition, code in outcomes.items() if code == ErrorCode.NONE]


def process_reassignment_isr_change(
    state: ControllerState, partition: TopicPartition
) -> Process[None]:
    """A leader has written the ISR of a partition that is reassigned."""
    if state.is_active and partition in state.context.reassigned:
        yield from complete_if_caught_up(state, partition)


def process_list_reassignments(
    state: ControllerState, token: Any, request: ListPartitionReassignmentsRequest, version: int
) -> None:
    """The ongoing reassignments, all or those of the requested partitions."""
    context = state.context
    if not state.is_active:
        refused = ListPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=None
        )
        state.respond(token, refused)
        return
    requested = sorted(context.reassigned)
    if request.topics is not None:
        requested = [TopicPartition(t.name, p) for t in request.topics for p in t.partition_indexes]
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
            error_message=None,
            topics=tuple(
                ListPartitionReassignmentsResponse.OngoingTopicReassignment(
                    name=topic, partitions=tuple(partitions)
                )
                for topic, partitions in by_topic.items()
            ),
        ),
    )
