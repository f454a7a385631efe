"""SyncGroup (api key 14).

The leader of a classic group distributes the assignment, and members fetch theirs.

Versions: 0-5, flexible from 4.
    1: response throttle_time_ms.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: group_instance_id.
    4: flexible.
    5: protocol_type, protocol_name; response protocol_type, protocol_name.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=14, kind="request", versions="0-5", flexible="4+")
class SyncGroupRequest(s.Message):
    class SyncGroupRequestAssignment(s.Struct):
        member_id: str = s.string("0+", default="")
        assignment: bytes = s.bytes_("0+", default=b"")

    group_id: str = s.string("0+", default="", entity="groupId")
    generation_id: int = s.int32("0+", default=0)
    member_id: str = s.string("0+", default="")
    group_instance_id: str | None = s.string("3+", default=None, nullable="3+")
    protocol_type: str | None = s.string("5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = s.string("5+", default=None, nullable="5+", ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...] = s.array(
        "SyncGroupRequestAssignment", "0+", default=()
    )


@s.message(api_key=14, kind="response", versions="0-5", flexible="4+")
class SyncGroupResponse(s.Message):
    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    error_code: int = s.int16("0+", default=0)
    protocol_type: str | None = s.string("5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = s.string("5+", default=None, nullable="5+", ignorable=True)
    assignment: bytes = s.bytes_("0+", default=b"")


API = api(
    SyncGroupRequest,
    SyncGroupResponse,
    kafka_3_9="0-5",
    kafka_4_3="0-5",
)
