"""ExpireDelegationToken (api key 40): a client ends a delegation token.

Versions: 0-2, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=40, kind="request", versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest(s.Message):
    hmac: bytes = s.bytes_("0+", default=b"")
    expiry_time_period_ms: int = s.int64("0+", default=0)


@s.message(api_key=40, kind="response", versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse(s.Message):
    error_code: int = s.int16("0+", default=0)
    expiry_timestamp_ms: int = s.int64("0+", default=0)
    throttle_time_ms: int = s.int32("0+", default=0)


API = api(
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    kafka_3_9="0-2",
    kafka_4_3="1-2",
    forwardable=True,
)
