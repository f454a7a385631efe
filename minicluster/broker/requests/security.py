"""Requests about security that a node without any rejects: SASL and delegation tokens.

Versions:  SaslHandshake 0-1, SaslAuthenticate 0-2; DescribeAcls 1-3, CreateAcls 1-3,
           DeleteAcls 1-3; CreateDelegationToken 1-3, RenewDelegationToken 1-2,
           ExpireDelegationToken 1-2, DescribeDelegationToken 1-3.
"""

from __future__ import annotations

from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response


def reject_sasl(state: ApiState, request: Any, version: int, now_ms: int) -> Any:
    """Rejected: nobody logs in over PLAINTEXT.

    Served nevertheless: otherwise a client that is set to SASL would say that this broker is too
    old for it (librdkafka), and not that the listener expects no login.

    Errors:  ILLEGAL_SASL_STATE.
    Source:  KafkaApis.handleSaslHandshakeRequest, handleSaslAuthenticateRequest.
    """
    message = "SaslAuthenticate request received after successful authentication"
    return error_response(request, ErrorCode.ILLEGAL_SASL_STATE, message, version=version)


def reject_delegation_tokens(state: ApiState, request: Any, version: int, now_ms: int) -> Any:
    """Rejected: clients come over PLAINTEXT, which may not handle tokens.

    Errors:  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
    Source:  KafkaApis.handleDescribeTokensRequest, allowTokenRequests.
    """
    return error_response(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, version=version)
