"""CreateDelegationToken (api key 38): a client creates a delegation token.

Versions: 0-3, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
    3: owner_principal_type, owner_principal_name; response token_requester_principal_type,
        token_requester_principal_name.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import ErrorShape


@s.message(api_key=38, kind="request", versions="0-3", flexible="2+")
class CreateDelegationTokenRequest(s.Message):
    class CreatableRenewers(s.Struct):
        principal_type: str = s.string("0+", default="")
        principal_name: str = s.string("0+", default="")

    owner_principal_type: str | None = s.string("3+", default="", nullable="3+")
    owner_principal_name: str | None = s.string("3+", default="", nullable="3+")
    renewers: tuple[CreatableRenewers, ...] = s.array("CreatableRenewers", "0+", default=())
    max_lifetime_ms: int = s.int64("0+", default=0)


@s.message(api_key=38, kind="response", versions="0-3", flexible="2+")
class CreateDelegationTokenResponse(s.Message):
    error_code: int = s.int16("0+", default=0)
    principal_type: str = s.string("0+", default="")
    principal_name: str = s.string("0+", default="")
    token_requester_principal_type: str = s.string("3+", default="")
    token_requester_principal_name: str = s.string("3+", default="")
    issue_timestamp_ms: int = s.int64("0+", default=0)
    expiry_timestamp_ms: int = s.int64("0+", default=0)
    max_timestamp_ms: int = s.int64("0+", default=0)
    token_id: str = s.string("0+", default="")
    hmac: bytes = s.bytes_("0+", default=b"")
    throttle_time_ms: int = s.int32("0+", default=0)


API = api(
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    kafka_3_9="0-3",
    kafka_4_3="1-3",
    forwardable=True,
    error=ErrorShape(
        values={
            "principal_type": "User",
            "principal_name": "ANONYMOUS",
            "token_requester_principal_type": "User",
            "token_requester_principal_name": "ANONYMOUS",
            "issue_timestamp_ms": -1,
            "expiry_timestamp_ms": -1,
            "max_timestamp_ms": -1,
        }
    ),
)
