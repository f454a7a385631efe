"""AlterUserScramCredentials (api key 51): a client changes SCRAM credentials.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=51, kind="request", versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(s.Message):
    class ScramCredentialDeletion(s.Struct):
        name: str = s.string("0+", default="")
        mechanism: int = s.int8("0+", default=0)

    class ScramCredentialUpsertion(s.Struct):
        name: str = s.string("0+", default="")
        mechanism: int = s.int8("0+", default=0)
        iterations: int = s.int32("0+", default=0)
        salt: bytes = s.bytes_("0+", default=b"")
        salted_password: bytes = s.bytes_("0+", default=b"")

    deletions: tuple[ScramCredentialDeletion, ...] = s.array(
        "ScramCredentialDeletion", "0+", default=()
    )
    upsertions: tuple[ScramCredentialUpsertion, ...] = s.array(
        "ScramCredentialUpsertion", "0+", default=()
    )


@s.message(api_key=51, kind="response", versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(s.Message):
    class AlterUserScramCredentialsResult(s.Struct):
        user: str = s.string("0+", default="")
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")

    throttle_time_ms: int = s.int32("0+", default=0)
    results: tuple[AlterUserScramCredentialsResult, ...] = s.array(
        "AlterUserScramCredentialsResult", "0+", default=()
    )


API = api(
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    forwardable=True,
    error=ErrorShape(
        {"results": Each(("deletions", "upsertions"), copies={"user": "name"}, distinct=True)}
    ),
)
