"""CreateAcls (api key 30): a client adds ACLs.

Versions: 0-3, flexible from 2.
    1: resource_pattern_type.
    2: flexible.
    3: resource type user (KIP-373).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=30, kind="request", versions="0-3", flexible="2+")
class CreateAclsRequest(s.Message):
    class AclCreation(s.Struct):
        resource_type: int = s.int8("0+", default=0)
        resource_name: str = s.string("0+", default="")
        resource_pattern_type: int = s.int8("1+", default=3)
        principal: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        operation: int = s.int8("0+", default=0)
        permission_type: int = s.int8("0+", default=0)

    creations: tuple[AclCreation, ...] = s.array("AclCreation", "0+", default=())


@s.message(api_key=30, kind="response", versions="0-3", flexible="2+")
class CreateAclsResponse(s.Message):
    class AclCreationResult(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")

    throttle_time_ms: int = s.int32("0+", default=0)
    results: tuple[AclCreationResult, ...] = s.array("AclCreationResult", "0+", default=())


API = api(
    CreateAclsRequest,
    CreateAclsResponse,
    kafka_3_9="0-3",
    kafka_4_3="1-3",
    forwardable=True,
    error=ErrorShape({"results": Each(("creations",))}),
)
