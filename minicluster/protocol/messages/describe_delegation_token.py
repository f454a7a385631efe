"""DescribeDelegationToken (api key 41): the delegation tokens of owners.

Versions: 0-3, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
    3: response token_requester_principal_type, token_requester_principal_name.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=41, kind="request", versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest(s.Message):
    class DescribeDelegationTokenOwner(s.Struct):
        principal_type: str = s.string("0+", default="")
        principal_name: str = s.string("0+", default="")

    owners: tuple[DescribeDelegationTokenOwner, ...] | None = s.array(
        "DescribeDelegationTokenOwner", "0+", default=(), nullable="0+"
    )


@s.message(api_key=41, kind="response", versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse(s.Message):
    class DescribedDelegationTokenRenewer(s.Struct):
        principal_type: str = s.string("0+", default="")
        principal_name: str = s.string("0+", default="")

    class DescribedDelegationToken(s.Struct):
        principal_type: str = s.string("0+", default="")
        principal_name: str = s.string("0+", default="")
        token_requester_principal_type: str = s.string("3+", default="")
        token_requester_principal_name: str = s.string("3+", default="")
        issue_timestamp: int = s.int64("0+", default=0)
        expiry_timestamp: int = s.int64("0+", default=0)
        max_timestamp: int = s.int64("0+", default=0)
        token_id: str = s.string("0+", default="")
        hmac: bytes = s.bytes_("0+", default=b"")
        renewers: tuple[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer, ...] = (
            s.array("DescribedDelegationTokenRenewer", "0+", default=())
        )

    error_code: int = s.int16("0+", default=0)
    tokens: tuple[DescribedDelegationToken, ...] = s.array(
        "DescribedDelegationToken", "0+", default=()
    )
    throttle_time_ms: int = s.int32("0+", default=0)


API = api(
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    kafka_3_9="0-3",
    kafka_4_3="1-3",
)
