"""The APIs of a controller's listener: their versions, and those that need no log.

    quorum:      the Raft APIs, to the quorum machine
    decides:     what the controller machine decides, forwarded by a broker (Envelope) or not
    RESPONDERS:  what a controller responds from its committed image

Leaves out: SASL, an authorizer.
Source:  ControllerApis, SimpleApiVersionManager, ApiKeys.apisForListener (CONTROLLER).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from minicluster.broker.request_table import RequestTable
from minicluster.broker.requests.api_versions import api_versions
from minicluster.broker.requests.describe_cluster import describe_controllers
from minicluster.broker.requests.describe_configs import describe_configs
from minicluster.broker.requests.security import refuse_acls, refuse_delegation_tokens
from minicluster.broker.state.api_state import NO_CONTROLLER, ApiState
from minicluster.controller.controller_apis import CONTROLLER_APIS
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.api_versions import limited_versions
from minicluster.protocol.error_responses import error_response
from minicluster.quorum.handlers import REQUEST_HANDLERS as QUORUM_HANDLERS
from minicluster.rules import Rules


@dataclass(slots=True)
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


def _refuse_sasl(state: ControllerListenerState, request: Any, version: int, now_ms: int) -> Any:
    """ILLEGAL_SASL_STATE: the listener is PLAINTEXT."""
    return error_response(request, ErrorCode.ILLEGAL_SASL_STATE, version=version)


def _refuse_unknown(state: ControllerListenerState, request: Any, version: int, now_ms: int) -> Any:
    """UNKNOWN_SERVER_ERROR: Kafka's controllers advertise these APIs and do not handle them."""
    name = type(request).__name__.removesuffix("Request")
    message = f"Unsupported ApiKey {_API_KEYS[name]}"
    return error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, message, version=version)


_API_KEYS = {
    "DescribeDelegationToken": "DESCRIBE_DELEGATION_TOKEN",
    "DescribeUserScramCredentials": "DESCRIBE_USER_SCRAM_CREDENTIALS",
}

RESPONDERS = RequestTable[Responder](
    {
        "ApiVersions": _api_versions,
        "SaslHandshake": _refuse_sasl,
        "SaslAuthenticate": _refuse_sasl,
        "DescribeAcls": refuse_acls,
        "CreateAcls": refuse_acls,
        "DeleteAcls": refuse_acls,
        "DescribeConfigs": describe_configs,
        "CreateDelegationToken": refuse_delegation_tokens,
        "RenewDelegationToken": refuse_delegation_tokens,
        "ExpireDelegationToken": refuse_delegation_tokens,
        "DescribeDelegationToken": _refuse_unknown,
        "DescribeUserScramCredentials": _refuse_unknown,
        "DescribeCluster": _describe_cluster,
    }
)


@cache
def controller_versions(rules: Rules) -> Mapping[int, range]:
    """The versions that a controller of this release serves, by API key."""
    served: set[Any] = {m.EnvelopeRequest, *RESPONDERS, *QUORUM_HANDLERS}
    served |= {each for each in CONTROLLER_APIS if getattr(m, each.__name__, None) is each}
    return limited_versions(rules, sorted(served, key=lambda request: request.api_key))
