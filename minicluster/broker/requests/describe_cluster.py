"""DescribeCluster (60): the brokers of the cluster (KIP-700).

Versions:  0-2; the kind of endpoint from 1 on (KIP-919), fenced brokers from 2 on (KIP-1073).
"""

from __future__ import annotations

from minicluster.broker.requests.authorized_operations import NOT_REQUESTED, ON_CLUSTER
from minicluster.broker.state.api_state import NO_CONTROLLER, ApiState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2
_NAMES_ENDPOINT_TYPE = 1


def describe_cluster(
    state: ApiState, request: DescribeClusterRequest, version: int, now_ms: int
) -> DescribeClusterResponse:
    """The brokers, fenced ones where the request includes them.

    Errors:  UNSUPPORTED_ENDPOINT_TYPE, MISMATCHED_ENDPOINT_TYPE: a broker lists no controllers.
    Source:  AuthHelper.computeDescribeClusterResponse.
    """
    kind = request.endpoint_type
    if kind not in (_BROKERS, _CONTROLLERS):
        unsupported = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        return _refused(unsupported, f"Unsupported endpoint type {kind}", version)
    if kind != _BROKERS:
        mismatched = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        return _refused(
            mismatched,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
            version,
        )
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
    controller_id = state.live_broker_id()
    listed = any(broker.broker_id == controller_id for broker in brokers)
    operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=state.config.cluster_id,
        controller_id=controller_id if listed else NO_CONTROLLER,
        brokers=brokers,
        cluster_authorized_operations=ON_CLUSTER if operations else NOT_REQUESTED,
    )


def _refused(error: ErrorCode, message: str, version: int) -> DescribeClusterResponse:
    known = version >= _NAMES_ENDPOINT_TYPE
    return DescribeClusterResponse(
        error_code=error if known else ErrorCode.INVALID_REQUEST, error_message=message
    )
