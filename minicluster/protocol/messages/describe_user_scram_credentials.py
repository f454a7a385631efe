"""DescribeUserScramCredentials (api key 50): the SCRAM credentials of users.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=50, kind="request", versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(s.Message):
    class UserName(s.Struct):
        name: str = s.string("0+", default="")

    users: tuple[UserName, ...] | None = s.array("UserName", "0+", default=(), nullable="0+")


@s.message(api_key=50, kind="response", versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(s.Message):
    class CredentialInfo(s.Struct):
        mechanism: int = s.int8("0+", default=0)
        iterations: int = s.int32("0+", default=0)

    class DescribeUserScramCredentialsResult(s.Struct):
        user: str = s.string("0+", default="")
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")
        credential_infos: tuple[DescribeUserScramCredentialsResponse.CredentialInfo, ...] = s.array(
            "CredentialInfo", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")
    results: tuple[DescribeUserScramCredentialsResult, ...] = s.array(
        "DescribeUserScramCredentialsResult", "0+", default=()
    )


API = api(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    error=ErrorShape({"results": Each(("users",))}),
)
