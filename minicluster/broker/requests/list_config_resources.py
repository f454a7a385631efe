"""ListConfigResources (74): the resources that can have configs (KIP-1142).

Versions:  0-1; 0 lists client metrics subscriptions only, 1 every kind.
"""

from __future__ import annotations

from collections.abc import Iterable

from minicluster.broker.state.api_state import ApiState
from minicluster.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

KINDS = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)
"""The kinds in the order of the response."""

_NAMES_KINDS = 1


def list_config_resources(
    state: ApiState, request: ListConfigResourcesRequest, version: int, now_ms: int
) -> ListConfigResourcesResponse:
    """Every resource of the requested kinds; no kind means all.

    Errors:  UNSUPPORTED_VERSION for a kind that there is not.
    Source:  KafkaApis.handleListConfigResources.
    """
    served = KINDS if version >= _NAMES_KINDS else (CLIENT_METRICS,)
    wanted = request.resource_types or served
    if any(kind not in served for kind in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in served
            if kind in wanted
            for name in _names(state, kind)
        )
    )


def _names(state: ApiState, kind: int) -> Iterable[str]:
    if kind == TOPIC:
        return [topic.name for topic in state.image.topics]
    if kind in (BROKER, BROKER_LOGGER):
        brokers = state.image.cluster.brokers.values()
        return [str(broker.id) for broker in brokers if state.endpoint(broker) is not None]
    return [name for of_kind, name in state.image.configs.resources() if of_kind == kind]
