"""The APIs of a controller's listener: their versions, and those that need no log.

    quorum:      the Raft APIs, to the quorum machine
    decides:     what the controller machine decides, forwarded by a broker (Envelope) or not
    RESPONDERS:  what a controller responds from its committed image

Source:  ControllerApis, SimpleApiVersionManager, ApiKeys.apisForListener (CONTROLLER).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from minicluster.broker.api_state import NO_CONTROLLER, ApiState
from minicluster.broker.requests.api_versions import api_versions
from minicluster.broker.requests.describe_acls import describe_acls
from minicluster.broker.requests.describe_cluster import BROKERS, describe_controllers
from minicluster.broker.requests.describe_configs import describe_configs
from minicluster.broker.requests.security import reject_sasl
from minicluster.controller.controller_apis import CONTROLLER_APIS
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol import messages as m
from minicluster.protocol.api import advertised_versions
from minicluster.protocol.error_responses import error_response
from minicluster.quorum.handlers import REQUEST_HANDLERS as QUORUM_HANDLERS
from minicluster.rules import Rules


class ControllerListenerState(ApiState):
    """The newest committed image of a controller, and the leader of its quorum."""

    leader_id: int = NO_CONTROLLER


Responder = Callable[[ControllerListenerState, Any, int, int], Any]


def respond(state: ControllerListenerState, request: Any, version: int, now_ms: int) -> Any:
    """Respond to a request that is in ``RESPONDERS``."""
    return RESPONDERS[type(request)](state, request, version, now_ms)


def _api_versions(state: ControllerListenerState, request: Any, version: int, now_ms: int) -> Any:
    return api_versions(state, request, version, controller_versions(state.rules))


def _describe_cluster(
    state: ControllerListenerState, request: Any, version: int, now_ms: int
) -> Any:
    return describe_controllers(state, request, version, state.leader_id)


def _reject_unknown(state: ControllerListenerState, request: Any, version: int, now_ms: int) -> Any:
    """UNKNOWN_SERVER_ERROR: Kafka's controllers advertise these APIs and do not handle them."""
    message = f"Unsupported ApiKey {_API_KEYS[type(request)]}"
    return error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, message, version=version)


_API_KEYS: Mapping[type[Message], str] = {
    m.DescribeDelegationTokenRequest: "DESCRIBE_DELEGATION_TOKEN",
    m.DescribeUserScramCredentialsRequest: "DESCRIBE_USER_SCRAM_CREDENTIALS",
}

RESPONDERS: Mapping[type[Message], Responder] = {
    m.ApiVersionsRequest: _api_versions,
    m.SaslHandshakeRequest: reject_sasl,
    m.SaslAuthenticateRequest: reject_sasl,
    m.DescribeAclsRequest: describe_acls,
    m.DescribeConfigsRequest: describe_configs,
    m.DescribeDelegationTokenRequest: _reject_unknown,
    m.DescribeUserScramCredentialsRequest: _reject_unknown,
    m.DescribeClusterRequest: _describe_cluster,
}


@cache
def controller_versions(rules: Rules) -> Mapping[int, range]:
    """The versions that a controller of this release serves, by API key."""
    served: set[type[Message]] = {
        m.EnvelopeRequest,
        *RESPONDERS,
        *QUORUM_HANDLERS,
        *CONTROLLER_APIS,
    }
    return advertised_versions(rules, served)


def is_for_controllers(request: Any, rules: Rules) -> bool:
    """True for a request that a controller handles; any other is one for brokers.

    DescribeCluster says in the request of whom it is: each listener describes its own kind of node
    (KIP-919).
    """
    if isinstance(request, m.DescribeClusterRequest) and request.endpoint_type == BROKERS:
        return False
    return type(request) not in _API_KEYS and request.api_key in controller_versions(rules)
