"""AlterPartitionReassignments (45) and ListPartitionReassignments (46), and the znode of old tools.

Versions: AlterPartitionReassignments 0; ListPartitionReassignments 0.
Source:   KIP-455; kafka.controller.KafkaController.processApiPartitionReassignment,
          processZkPartitionReassignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.controller.errors import ApiError
from minicluster.metadata.topic_partition import TopicPartition, in_scala_order
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from minicluster.zookeeper.controller.changing.reassignment import (
    complete_if_caught_up,
    read_reassignment,
    reassign,
    remove_from_znode,
)
from minicluster.zookeeper.controller.errors import FAILURES
from minicluster.zookeeper.controller.process import Process
from minicluster.zookeeper.controller.processing.unknown_partition import NO_PARTITION
from minicluster.zookeeper.controller.state.controller_state import ControllerState
from minicluster.zookeeper.controller.znode_access import watch_node
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import ReplicaAssignment


def process_alter_reassignments(
    state: ControllerState, token: Any, request: AlterPartitionReassignmentsRequest, version: int
) -> Process[None]:
    """Begin, change and cancel reassignments."""
    if not state.is_active:
        state.respond(token, alter_reassignments_refusal())
        return
    outcomes: dict[TopicPartition, ApiError] = {}
    reassignments: dict[TopicPartition, ReplicaAssignment] = {}
    requested = {
        TopicPartition(topic.name, one.partition_index): one.replicas
        for topic in request.topics
        for one in topic.partitions
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
    yield from remove_from_znode(state, lambda one, _: one in reassignments)
    outcomes |= yield from _reassign_all(state, reassignments)
    state.respond(token, _response(outcomes))


def alter_reassignments_refusal() -> AlterPartitionReassignmentsResponse:
    """The response of a broker that is not the controller, or is no more."""
    refused = ApiError.of_code(ErrorCode.NOT_CONTROLLER)
    return AlterPartitionReassignmentsResponse(
        error_code=refused.error, error_message=refused.message
    )


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
    """The reason to refuse a target: replicas are named once each, and added on live brokers.

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
        yield from remove_from_znode(state, lambda one, _: one in failed)
    return [partition for partition in outcomes if partition not in failed]


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
        error = ApiError.of_code(ErrorCode.NOT_CONTROLLER)
        refused = ListPartitionReassignmentsResponse(
            error_code=error.error, error_message=error.message
        )
        state.respond(token, refused)
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
