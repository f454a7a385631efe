"""From requests on the wire to decisions, and to the errors that answer a whole request.

One row per API that the active controller serves. What comes in as names leaves as Kafka's own
responses; operations know nothing of tokens, tracing or who is asking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from minicluster.controller.deciding.decision import ApiError, Decision, KRaftVersion
from minicluster.controller.deciding.elections import elect_leaders
from minicluster.controller.deciding.placement import Draw
from minicluster.controller.operations.alter_configs import alter_configs, incremental_alter_configs
from minicluster.controller.operations.alter_isr import alter_isr_of_kip_497, alter_isr_of_kip_704
from minicluster.controller.operations.alter_partition import alter_partition
from minicluster.controller.operations.alter_partition_reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from minicluster.controller.operations.alter_replica_state import alter_replica_state
from minicluster.controller.operations.assign_replicas_to_dirs import assign_replicas_to_dirs
from minicluster.controller.operations.broker_heartbeat import HeartbeatReply, broker_heartbeat
from minicluster.controller.operations.broker_registration import RegistrationReply, register_broker
from minicluster.controller.operations.controller_registration import (
    allocate_producer_ids,
    register_controller,
)
from minicluster.controller.operations.create_partitions import create_partitions
from minicluster.controller.operations.create_topics import create_topics, delete_topics
from minicluster.controller.operations.unregister_broker import unregister_broker
from minicluster.controller.operations.update_features import update_features
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.protocol.messages.kip_texts.kip_589 import (
    AlterReplicaStateRequest,
    AlterReplicaStateResponse,
)
from minicluster.protocol.uuids import ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request with all that deciding it may need.

    Shapes:  state has what is decided and not yet committed, committed has it not.
    Units:   next_offset is where the decision's first record would go.
    """

    state: ClusterState
    request: Any
    version: int
    now_ms: int
    next_offset: int
    kraft: KRaftVersion
    forwarded: bool
    draw: Draw
    new_topic_id: Callable[[], UUID]
    committed: MetadataImage

    @property
    def plain(self) -> tuple[ClusterState, Any, int, int]:
        """The arguments that every operation takes."""
        return self.state, self.request, self.version, self.now_ms


@dataclass(frozen=True, slots=True)
class Api:
    """How one request is served.

    Shapes:  cluster_action: only brokers and controllers may ask. trivial: what an empty request
             is called by, which is answered at once, by any controller. reads: any controller
             answers, from what is committed.
    """

    decide: Callable[[Call], Decision]
    cluster_action: bool = False
    items: str | None = None
    reads: bool = False

    def is_trivial(self, request: Any) -> bool:
        """Whether there is nothing to do."""
        return self.items is not None and getattr(request, self.items) == ()


def _register_broker(call: Call) -> Decision:
    decision = register_broker(
        *call.plain, next_offset=call.next_offset, kraft_version=call.kraft.level
    )
    reply: RegistrationReply = decision.response
    return replace(decision, response=m.BrokerRegistrationResponse(broker_epoch=reply.broker_epoch))


def _broker_heartbeat(call: Call) -> Decision:
    decision = broker_heartbeat(*call.plain)
    reply: HeartbeatReply = decision.response
    response = m.BrokerHeartbeatResponse(
        is_caught_up=reply.is_caught_up,
        is_fenced=reply.is_fenced,
        should_shut_down=reply.should_shut_down,
    )
    return replace(decision, response=response)


def _create_topics(call: Call) -> Decision:
    """Names that come twice, and the metadata topic, are refused before the others are tried.

    Source:  ControllerApis.createTopics.
    """
    request: m.CreateTopicsRequest = call.request
    names = [topic.name for topic in request.topics]
    twice = {name: None for name in names if names.count(name) > 1}
    refused = [_refused_topic(name, "Duplicate topic name.") for name in twice]
    metadata = "__cluster_metadata"
    if metadata in names and metadata not in twice:
        refused.append(_refused_topic(metadata, f"Creation of {metadata} is prohibited."))
    left = tuple(t for t in request.topics if t.name not in twice and t.name != metadata)
    decision = create_topics(
        call.state,
        replace(request, topics=left),
        call.version,
        call.now_ms,
        draw=call.draw,
        new_topic_id=call.new_topic_id,
    )
    answers: m.CreateTopicsResponse = decision.response
    return replace(decision, response=m.CreateTopicsResponse(topics=(*answers.topics, *refused)))


def _refused_topic(name: str, message: str) -> m.CreateTopicsResponse.CreatableTopicResult:
    return m.CreateTopicsResponse.CreatableTopicResult(
        name=name, error_code=ErrorCode.INVALID_REQUEST, error_message=message
    )


def _delete_topics(call: Call) -> Decision:
    """Topics by id or by name; below version 6 by name only.

    Source:  ControllerApis.deleteTopics.
    """
    request: m.DeleteTopicsRequest = call.request
    asked: list[tuple[str | None, UUID]] = [(name, ZERO_UUID) for name in request.topic_names]
    asked += [(topic.name, topic.topic_id) for topic in request.topics]
    topics = call.state.image.topics
    found: dict[int, UUID] = {}
    errors: dict[int, ApiError] = {}
    for place, (name, topic_id) in enumerate(asked):
        if (name is None) == (topic_id == ZERO_UUID):
            which = "Neither topic name nor id" if name is None else "Both topic name and id"
            errors[place] = ApiError(ErrorCode.INVALID_REQUEST, f"{which} were specified.")
            continue
        topic = topics.get(topic_id) if name is None else topics.named(name)
        if topic is None:
            errors[place] = ApiError(
                ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        elif topic.id in found.values():
            errors[place] = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic.")
        else:
            found[place] = topic.id
    decision = delete_topics(call.state, list(found.values()), call.version, call.now_ms)
    results = []
    for place, (name, topic_id) in enumerate(asked):
        topic = topics.get(found[place]) if place in found else None
        error = errors.get(place, ApiError())
        results.append(
            m.DeleteTopicsResponse.DeletableTopicResult(
                name=name if topic is None else topic.name,
                topic_id=topic_id if topic is None else topic.id,
                error_code=error.error,
                error_message=error.message,
            )
        )
    return replace(decision, response=m.DeleteTopicsResponse(responses=tuple(results)))


APIS: dict[type, Api] = {
    m.AlterPartitionRequest: Api(
        lambda call: alter_partition(*call.plain), cluster_action=True, items="topics"
    ),
    m.BrokerRegistrationRequest: Api(_register_broker, cluster_action=True),
    m.BrokerHeartbeatRequest: Api(_broker_heartbeat, cluster_action=True),
    m.UnregisterBrokerRequest: Api(lambda call: unregister_broker(*call.plain)),
    m.AssignReplicasToDirsRequest: Api(
        lambda call: assign_replicas_to_dirs(*call.plain), cluster_action=True
    ),
    m.CreateTopicsRequest: Api(_create_topics, items="topics"),
    m.DeleteTopicsRequest: Api(_delete_topics),
    m.CreatePartitionsRequest: Api(
        lambda call: create_partitions(*call.plain, draw=call.draw), items="topics"
    ),
    m.ElectLeadersRequest: Api(lambda call: elect_leaders(*call.plain), items="topic_partitions"),
    m.AlterPartitionReassignmentsRequest: Api(
        lambda call: alter_partition_reassignments(*call.plain), items="topics"
    ),
    m.ListPartitionReassignmentsRequest: Api(
        lambda call: list_partition_reassignments(*call.plain, committed=call.committed),
        reads=True,
    ),
    m.IncrementalAlterConfigsRequest: Api(
        lambda call: incremental_alter_configs(*call.plain, forwarded=call.forwarded),
        items="resources",
    ),
    m.AlterConfigsRequest: Api(lambda call: alter_configs(*call.plain), items="resources"),
    m.UpdateFeaturesRequest: Api(lambda call: update_features(*call.plain, kraft=call.kraft)),
    m.ControllerRegistrationRequest: Api(
        lambda call: register_controller(*call.plain), cluster_action=True
    ),
    m.AllocateProducerIdsRequest: Api(
        lambda call: allocate_producer_ids(*call.plain), cluster_action=True
    ),
    kip_497.AlterIsrRequest: Api(
        lambda call: alter_isr_of_kip_497(*call.plain), cluster_action=True
    ),
    kip_704.AlterIsrRequest: Api(
        lambda call: alter_isr_of_kip_704(*call.plain), cluster_action=True
    ),
    AlterReplicaStateRequest: Api(
        lambda call: alter_replica_state(*call.plain), cluster_action=True
    ),
}


def trivial_response(request: Any) -> Any:
    """The answer to a request that asks for nothing."""
    match request:
        case m.AlterPartitionRequest():
            return m.AlterPartitionResponse()
        case m.CreateTopicsRequest():
            return m.CreateTopicsResponse()
        case m.CreatePartitionsRequest():
            return m.CreatePartitionsResponse()
        case m.ElectLeadersRequest():
            return m.ElectLeadersResponse()
        case m.AlterPartitionReassignmentsRequest():
            return m.AlterPartitionReassignmentsResponse(error_message=None)
        case m.IncrementalAlterConfigsRequest():
            return m.IncrementalAlterConfigsResponse()
        case _:
            return m.AlterConfigsResponse()


def error_response(request: Any, error: ErrorCode, message: str | None = None) -> Any:
    """The answer that refuses a whole request: at its top, or item by item where it has no top.

    Source:  getErrorResponse of each request class.
    """
    match request:
        case m.AlterPartitionRequest():
            return m.AlterPartitionResponse(error_code=error)
        case kip_497.AlterIsrRequest():
            return kip_497.AlterIsrResponse(error_code=error)
        case kip_704.AlterIsrRequest():
            return kip_704.AlterIsrResponse(error_code=error)
        case m.BrokerRegistrationRequest():
            return m.BrokerRegistrationResponse(error_code=error, broker_epoch=-1)
        case m.BrokerHeartbeatRequest():
            return m.BrokerHeartbeatResponse(error_code=error)
        case m.UnregisterBrokerRequest():
            return m.UnregisterBrokerResponse(error_code=error, error_message=message)
        case m.AssignReplicasToDirsRequest():
            return m.AssignReplicasToDirsResponse(error_code=error)
        case m.ElectLeadersRequest():
            return m.ElectLeadersResponse(error_code=error)
        case m.AlterPartitionReassignmentsRequest():
            return m.AlterPartitionReassignmentsResponse(error_code=error, error_message=message)
        case m.ListPartitionReassignmentsRequest():
            return m.ListPartitionReassignmentsResponse(error_code=error, error_message=message)
        case m.UpdateFeaturesRequest():
            return m.UpdateFeaturesResponse(error_code=error, error_message=message)
        case m.ControllerRegistrationRequest():
            return m.ControllerRegistrationResponse(error_code=error, error_message=message)
        case m.AllocateProducerIdsRequest():
            return m.AllocateProducerIdsResponse(error_code=error)
        case AlterReplicaStateRequest():
            return AlterReplicaStateResponse(error_code=error)
        case _:
            return _error_per_item(request, error, message)


def _error_per_item(request: Any, error: ErrorCode, message: str | None) -> Any:
    said: dict[str, Any] = {"error_code": error, "error_message": message}
    match request:
        case m.CreateTopicsRequest(topics=topics):
            result = m.CreateTopicsResponse.CreatableTopicResult
            return m.CreateTopicsResponse(topics=tuple(result(name=t.name, **said) for t in topics))
        case m.DeleteTopicsRequest(topics=states, topic_names=names):
            deleted = m.DeleteTopicsResponse.DeletableTopicResult
            by_name = [deleted(name=name, **said) for name in names]
            by_state = [deleted(name=t.name, topic_id=t.topic_id, **said) for t in states]
            return m.DeleteTopicsResponse(responses=(*by_name, *by_state))
        case m.CreatePartitionsRequest(topics=wanted):
            grown = m.CreatePartitionsResponse.CreatePartitionsTopicResult
            return m.CreatePartitionsResponse(
                results=tuple(grown(name=t.name, **said) for t in wanted)
            )
        case m.IncrementalAlterConfigsRequest(resources=resources):
            changed = m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
            return m.IncrementalAlterConfigsResponse(
                responses=tuple(
                    changed(resource_type=r.resource_type, resource_name=r.resource_name, **said)
                    for r in resources
                )
            )
        case m.AlterConfigsRequest(resources=replaced):
            set_anew = m.AlterConfigsResponse.AlterConfigsResourceResponse
            return m.AlterConfigsResponse(
                responses=tuple(
                    set_anew(resource_type=r.resource_type, resource_name=r.resource_name, **said)
                    for r in replaced
                )
            )
        case _:
            raise TypeError(f"{type(request).__name__} is no request to a controller")
