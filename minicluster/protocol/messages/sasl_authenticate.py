"""SaslAuthenticate (api key 36): a client sends bytes of its SASL mechanism.

Versions: 0-2, flexible from 2.
    1: response session_lifetime_ms.
    2: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=36, kind="request", versions="0-2", flexible="2+")
class SaslAuthenticateRequest(s.Message):
    auth_bytes: bytes = s.bytes_("0+", default=b"")


@s.message(api_key=36, kind="response", versions="0-2", flexible="2+")
class SaslAuthenticateResponse(s.Message):
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")
    auth_bytes: bytes = s.bytes_("0+", default=b"")
    session_lifetime_ms: int = s.int64("1+", default=0, ignorable=True)


API = api(
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    kafka_3_9="0-2",
    kafka_4_3="0-2",
)
