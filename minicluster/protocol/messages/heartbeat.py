"""Heartbeat (api key 12): a member of a classic group keeps its session.

Versions: 0-4, flexible from 4.
    1: response throttle_time_ms.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: group_instance_id.
    4: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=12, kind="request", versions="0-4", flexible="4+")
class HeartbeatRequest(s.Message):
    group_id: str = s.string("0+", default="", entity="groupId")
    generation_id: int = s.int32("0+", default=0)
    member_id: str = s.string("0+", default="")
    group_instance_id: str | None = s.string("3+", default=None, nullable="3+")


@s.message(api_key=12, kind="response", versions="0-4", flexible="4+")
class HeartbeatResponse(s.Message):
    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    error_code: int = s.int16("0+", default=0)


API = api(
    HeartbeatRequest,
    HeartbeatResponse,
    kafka_3_9="0-4",
    kafka_4_3="0-4",
)
