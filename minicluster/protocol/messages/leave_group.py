"""LeaveGroup (api key 13): members leave a classic group.

Versions: 0-5, flexible from 4.
    1: response throttle_time_ms.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: members, group_instance_id; response members, member_id, group_instance_id.
    4: flexible.
    5: reason.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=13, kind="request", versions="0-5", flexible="4+")
class LeaveGroupRequest(s.Message):
    class MemberIdentity(s.Struct):
        member_id: str = s.string("3+", default="")
        group_instance_id: str | None = s.string("3+", default=None, nullable="3+")
        reason: str | None = s.string("5+", default=None, nullable="5+", ignorable=True)

    group_id: str = s.string("0+", default="", entity="groupId")
    member_id: str = s.string("0-2", default="")
    members: tuple[MemberIdentity, ...] = s.array("MemberIdentity", "3+", default=())


@s.message(api_key=13, kind="response", versions="0-5", flexible="4+")
class LeaveGroupResponse(s.Message):
    class MemberResponse(s.Struct):
        member_id: str = s.string("3+", default="")
        group_instance_id: str | None = s.string("3+", default="", nullable="3+")
        error_code: int = s.int16("3+", default=0)

    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    error_code: int = s.int16("0+", default=0)
    members: tuple[MemberResponse, ...] = s.array("MemberResponse", "3+", default=())


API = api(
    LeaveGroupRequest,
    LeaveGroupResponse,
    kafka_3_9="0-5",
    kafka_4_3="0-5",
)
