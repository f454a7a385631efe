"""DeleteAcls (api key 31): a client removes the ACLs that filters match.

Versions: 0-3, flexible from 2.
    1: pattern_type_filter; response pattern_type.
    2: flexible.
    3: resource type user (KIP-373).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=31, kind="request", versions="0-3", flexible="2+")
class DeleteAclsRequest(s.Message):
    class DeleteAclsFilter(s.Struct):
        resource_type_filter: int = s.int8("0+", default=0)
        resource_name_filter: str | None = s.string("0+", default="", nullable="0+")
        pattern_type_filter: int = s.int8("1+", default=3)
        principal_filter: str | None = s.string("0+", default="", nullable="0+")
        host_filter: str | None = s.string("0+", default="", nullable="0+")
        operation: int = s.int8("0+", default=0)
        permission_type: int = s.int8("0+", default=0)

    filters: tuple[DeleteAclsFilter, ...] = s.array("DeleteAclsFilter", "0+", default=())


@s.message(api_key=31, kind="response", versions="0-3", flexible="2+")
class DeleteAclsResponse(s.Message):
    class DeleteAclsMatchingAcl(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")
        resource_type: int = s.int8("0+", default=0)
        resource_name: str = s.string("0+", default="")
        pattern_type: int = s.int8("1+", default=3)
        principal: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        operation: int = s.int8("0+", default=0)
        permission_type: int = s.int8("0+", default=0)

    class DeleteAclsFilterResult(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")
        matching_acls: tuple[DeleteAclsResponse.DeleteAclsMatchingAcl, ...] = s.array(
            "DeleteAclsMatchingAcl", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    filter_results: tuple[DeleteAclsFilterResult, ...] = s.array(
        "DeleteAclsFilterResult", "0+", default=()
    )


API = api(
    DeleteAclsRequest,
    DeleteAclsResponse,
    kafka_3_9="0-3",
    kafka_4_3="1-3",
    forwardable=True,
    error=ErrorShape({"filter_results": Each(("filters",))}),
)
