"""Requests of a login that come after it: SASL on a connection whose listener expects none.

Versions:  SaslHandshake 0-1, SaslAuthenticate 0-2.
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
