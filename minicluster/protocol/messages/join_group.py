"""JoinGroup (api key 11): a member joins a classic group.

Versions: 0-9, flexible from 6.
    1: rebalance_timeout_ms.
    2: response throttle_time_ms.
    3: on a quota violation the broker responds before it throttles (KIP-219).
    4: MEMBER_ID_REQUIRED is a possible error (KIP-394).
    5: group_instance_id; response group_instance_id.
    6: flexible.
    7: response protocol_type; response protocol_name may be null.
    8: reason.
    9: response skip_assignment.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import ErrorShape


@s.message(api_key=11, kind="request", versions="0-9", flexible="6+")
class JoinGroupRequest(s.Message):
    class JoinGroupRequestProtocol(s.Struct):
        name: str = s.string("0+", default="")
        metadata: bytes = s.bytes_("0+", default=b"")

    group_id: str = s.string("0+", default="", entity="groupId")
    session_timeout_ms: int = s.int32("0+", default=0)
    rebalance_timeout_ms: int = s.int32("1+", default=-1, ignorable=True)
    member_id: str = s.string("0+", default="")
    group_instance_id: str | None = s.string("5+", default=None, nullable="5+")
    protocol_type: str = s.string("0+", default="")
    protocols: tuple[JoinGroupRequestProtocol, ...] = s.array(
        "JoinGroupRequestProtocol", "0+", default=()
    )
    reason: str | None = s.string("8+", default=None, nullable="8+", ignorable=True)


@s.message(api_key=11, kind="response", versions="0-9", flexible="6+")
class JoinGroupResponse(s.Message):
    class JoinGroupResponseMember(s.Struct):
        member_id: str = s.string("0+", default="")
        group_instance_id: str | None = s.string("5+", default=None, nullable="5+", ignorable=True)
        metadata: bytes = s.bytes_("0+", default=b"")

    throttle_time_ms: int = s.int32("2+", default=0, ignorable=True)
    error_code: int = s.int16("0+", default=0)
    generation_id: int = s.int32("0+", default=-1)
    protocol_type: str | None = s.string("7+", default=None, nullable="7+", ignorable=True)
    protocol_name: str | None = s.string("0+", default="", nullable="7+")
    leader: str = s.string("0+", default="")
    skip_assignment: bool = s.boolean("9+", default=False)
    member_id: str = s.string("0+", default="")
    members: tuple[JoinGroupResponseMember, ...] = s.array(
        "JoinGroupResponseMember", "0+", default=()
    )


API = api(
    JoinGroupRequest,
    JoinGroupResponse,
    kafka_3_9="0-9",
    kafka_4_3="0-9",
    error=ErrorShape(values={"protocol_name": None}),
)
