"""RenewDelegationToken (api key 39): a client renews a delegation token.

Versions: 0-2, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=39, kind="request", versions="0-2", flexible="2+")
class RenewDelegationTokenRequest(s.Message):
    hmac: bytes = s.bytes_("0+", default=b"")
    renew_period_ms: int = s.int64("0+", default=0)


@s.message(api_key=39, kind="response", versions="0-2", flexible="2+")
class RenewDelegationTokenResponse(s.Message):
    error_code: int = s.int16("0+", default=0)
    expiry_timestamp_ms: int = s.int64("0+", default=0)
    throttle_time_ms: int = s.int32("0+", default=0)


API = api(
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    kafka_3_9="0-2",
    kafka_4_3="1-2",
    forwardable=True,
)
