"""Requests of brokers and clients that the controller decides, by API; and what becomes of those
that wait when its session expires.

Source:  kafka.controller.ControllerEvent.preempt.
"""

from __future__ import annotations

from typing import Any

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from minicluster.protocol.messages.kip_texts.kip_589 import AlterReplicaStateRequest
from minicluster.zookeeper.controller.events import ControllerEvent, RequestReceived
from minicluster.zookeeper.controller.processing.allocate_producer_ids import (
    process_allocate_producer_ids,
)
from minicluster.zookeeper.controller.processing.alter_partition import process_alter_partition
from minicluster.zookeeper.controller.processing.alter_replica_state import (
    process_alter_replica_state,
)
from minicluster.zookeeper.controller.processing.controlled_shutdown import (
    process_controlled_shutdown,
)
from minicluster.zookeeper.controller.processing.preferred_election import (
    NOT_CONTROLLER,
    elect_leaders_response,
    process_elect_leaders,
)
from minicluster.zookeeper.controller.processing.reassignment import (
    alter_reassignments_refusal,
    process_alter_reassignments,
    process_list_reassignments,
)
from minicluster.zookeeper.controller.state.controller_state import ControllerState
from minicluster.zookeeper.process import Process

CONTROLLER_REQUESTS = (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    ElectLeadersRequest,
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    AllocateProducerIdsRequest,
    AlterReplicaStateRequest,
)
"""The requests that the controller decides in turn with its other events."""


def process_request(state: ControllerState, event: RequestReceived) -> Process[None] | None:
    """Decide a request; None if it was decided at once."""
    token, request, version = event.token, event.request, event.version
    match request:
        case AlterPartitionRequest():
            return process_alter_partition(state, token, request, version)
        case ControlledShutdownRequest():
            return process_controlled_shutdown(state, token, request, version)
        case ElectLeadersRequest():
            return process_elect_leaders(state, token, request, version, event.received_ms)
        case AlterPartitionReassignmentsRequest():
            return process_alter_reassignments(state, token, request, version)
        case AllocateProducerIdsRequest():
            return process_allocate_producer_ids(state, token, request, version)
        case AlterReplicaStateRequest():
            return process_alter_replica_state(state, token, request, version)
        case ListPartitionReassignmentsRequest():
            process_list_reassignments(state, token, request, version)
            return None
    raise TypeError(f"the controller has no {type(request).__name__}")


def preempted(state: ControllerState, event: ControllerEvent) -> None:
    """Respond to events that wait as a broker that is not the controller; not to AlterPartition.

    Its leader sends it again after the time-out, or when it finds the next controller.
    """
    if isinstance(event, RequestReceived):
        response = _preempted_response(event.request)
        if response is not None:
            state.respond(event.token, response)


def _preempted_response(request: Any) -> Any:
    match request:
        case ControlledShutdownRequest():
            return ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        case AlterPartitionReassignmentsRequest():
            return alter_reassignments_refusal()
        case ListPartitionReassignmentsRequest():
            return ListPartitionReassignmentsResponse(
                error_code=ErrorCode.NOT_CONTROLLER, error_message=None
            )
        case ElectLeadersRequest(topic_partitions=topics) if topics:
            partitions = [TopicPartition(t.topic, p) for t in topics for p in t.partitions]
            return elect_leaders_response(dict.fromkeys(partitions, NOT_CONTROLLER))
        case ElectLeadersRequest():
            return elect_leaders_response({})
    return None
