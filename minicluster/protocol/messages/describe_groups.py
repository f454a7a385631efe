"""DescribeGroups (api key 15): the state and the members of classic groups.

Versions: 0-6, flexible from 5.
    1: response throttle_time_ms.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: include_authorized_operations; response authorized_operations.
    4: response group_instance_id.
    5: flexible.
    6: response error_message.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import described


@s.message(api_key=15, kind="request", versions="0-6", flexible="5+")
class DescribeGroupsRequest(s.Message):
    groups: tuple[str, ...] = s.array("string", "0+", default=(), entity="groupId")
    include_authorized_operations: bool = s.boolean("3+", default=False)


@s.message(api_key=15, kind="response", versions="0-6", flexible="5+")
class DescribeGroupsResponse(s.Message):
    class DescribedGroupMember(s.Struct):
        member_id: str = s.string("0+", default="")
        group_instance_id: str | None = s.string("4+", default=None, nullable="4+", ignorable=True)
        client_id: str = s.string("0+", default="")
        client_host: str = s.string("0+", default="")
        member_metadata: bytes = s.bytes_("0+", default=b"")
        member_assignment: bytes = s.bytes_("0+", default=b"")

    class DescribedGroup(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("6+", default=None, nullable="6+")
        group_id: str = s.string("0+", default="", entity="groupId")
        group_state: str = s.string("0+", default="")
        protocol_type: str = s.string("0+", default="")
        protocol_data: str = s.string("0+", default="")
        members: tuple[DescribeGroupsResponse.DescribedGroupMember, ...] = s.array(
            "DescribedGroupMember", "0+", default=()
        )
        authorized_operations: int = s.int32("3+", default=-2147483648)

    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    groups: tuple[DescribedGroup, ...] = s.array("DescribedGroup", "0+", default=())


API = api(
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    kafka_3_9="0-5",
    kafka_4_3="0-6",
    error=described("groups", "group_id", "groups"),
)
