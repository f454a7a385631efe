"""DescribeCluster (60): the brokers of the cluster, or its controllers (KIP-700, KIP-919).

Versions:  0-2; the kind of endpoint from 1 on (KIP-919), fenced brokers from 2 on (KIP-1073).
"""

from __future__ import annotations

from minicluster.broker.api_state import NO_CONTROLLER, ApiState
from minicluster.metadata.authorized_operations import NOT_REQUESTED, ON_CLUSTER
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

BROKERS, _CONTROLLERS = 1, 2  # kinds of endpoints
_TYPES = {BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}
_NAMES_ENDPOINT_TYPE = 1


def describe_cluster(
    state: ApiState, request: DescribeClusterRequest, version: int, now_ms: int
) -> DescribeClusterResponse:
    """The brokers, fenced ones where the request includes them.

    Errors:  UNSUPPORTED_ENDPOINT_TYPE, MISMATCHED_ENDPOINT_TYPE: a broker lists no controllers.
    Source:  AuthHelper.computeDescribeClusterResponse.
    """
    rejection = _reject_endpoint_type(request, BROKERS, version)
    if rejection is not None:
        return rejection
    brokers = tuple(
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=broker.id,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for broker in state.image.cluster.brokers.values()
        if (endpoint := state.endpoint(broker)) is not None
        and (request.include_fenced_brokers or not broker.fenced)
    )
    return _described(state, request, brokers, state.controller_id())


def describe_controllers(
    state: ApiState, request: DescribeClusterRequest, version: int, leader_id: int
) -> DescribeClusterResponse:
    """The registered controllers; the active one is the leader of the quorum.

    Errors:  UNSUPPORTED_VERSION below metadata.version 3.7-IV0; UNSUPPORTED_ENDPOINT_TYPE,
             MISMATCHED_ENDPOINT_TYPE: a controller lists no brokers.
    Source:  ControllerApis.handleDescribeCluster, ControllerRegistrationsPublisher.
    """
    metadata_version = state.image.features.metadata_version
    if metadata_version is None or not metadata_version.controller_registration_supported:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="Direct-to-controller communication is not supported with the current "
            "MetadataVersion.",
        )
    rejection = _reject_endpoint_type(request, _CONTROLLERS, version)
    if rejection is not None:
        return rejection
    controllers = tuple(
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=controller.id, host=endpoint.host, port=endpoint.port
        )
        for controller in state.image.cluster.controllers.values()
        if (endpoint := state.endpoint(controller)) is not None
    )
    return _described(state, request, controllers, leader_id)


def _reject_endpoint_type(
    request: DescribeClusterRequest, served: int, version: int
) -> DescribeClusterResponse | None:
    wanted = request.endpoint_type
    if wanted not in _TYPES:
        unsupported = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        return _rejected(unsupported, f"Unsupported endpoint type {wanted}", version)
    if wanted != served:
        message = (
            f"The request was sent to an endpoint of type {_TYPES[served]}, but we wanted an "
            f"endpoint of type {_TYPES[wanted]}"
        )
        return _rejected(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message, version)
    return None


def _described(
    state: ApiState,
    request: DescribeClusterRequest,
    nodes: tuple[DescribeClusterResponse.DescribeClusterBroker, ...],
    controller_id: int,
) -> DescribeClusterResponse:
    listed = any(node.broker_id == controller_id for node in nodes)
    operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=state.config.cluster_id,
        endpoint_type=request.endpoint_type,
        controller_id=controller_id if listed else NO_CONTROLLER,
        brokers=nodes,
        cluster_authorized_operations=ON_CLUSTER if operations else NOT_REQUESTED,
    )


def _rejected(error: ErrorCode, message: str, version: int) -> DescribeClusterResponse:
    known = version >= _NAMES_ENDPOINT_TYPE
    return DescribeClusterResponse(
        error_code=error if known else ErrorCode.INVALID_REQUEST, error_message=message
    )
