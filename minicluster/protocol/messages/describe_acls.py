"""DescribeAcls (api key 29): the ACLs that a filter matches.

Versions: 0-3, flexible from 2.
    1: pattern_type_filter; response pattern_type.
    2: flexible.
    3: resource type user (KIP-373).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=29, kind="request", versions="0-3", flexible="2+")
class DescribeAclsRequest(s.Message):
    resource_type_filter: int = s.int8("0+", default=0)
    resource_name_filter: str | None = s.string("0+", default="", nullable="0+")
    pattern_type_filter: int = s.int8("1+", default=3)
    principal_filter: str | None = s.string("0+", default="", nullable="0+")
    host_filter: str | None = s.string("0+", default="", nullable="0+")
    operation: int = s.int8("0+", default=0)
    permission_type: int = s.int8("0+", default=0)


@s.message(api_key=29, kind="response", versions="0-3", flexible="2+")
class DescribeAclsResponse(s.Message):
    class AclDescription(s.Struct):
        principal: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        operation: int = s.int8("0+", default=0)
        permission_type: int = s.int8("0+", default=0)

    class DescribeAclsResource(s.Struct):
        resource_type: int = s.int8("0+", default=0)
        resource_name: str = s.string("0+", default="")
        pattern_type: int = s.int8("1+", default=3)
        acls: tuple[DescribeAclsResponse.AclDescription, ...] = s.array(
            "AclDescription", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")
    resources: tuple[DescribeAclsResource, ...] = s.array("DescribeAclsResource", "0+", default=())


API = api(
    DescribeAclsRequest,
    DescribeAclsResponse,
    kafka_3_9="0-3",
    kafka_4_3="1-3",
)
