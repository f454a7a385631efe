"""DeleteGroups (api key 42): a client deletes groups.

Versions: 0-2, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import described


@s.message(api_key=42, kind="request", versions="0-2", flexible="2+")
class DeleteGroupsRequest(s.Message):
    groups_names: tuple[str, ...] = s.array("string", "0+", default=(), entity="groupId")


@s.message(api_key=42, kind="response", versions="0-2", flexible="2+")
class DeleteGroupsResponse(s.Message):
    class DeletableGroupResult(s.Struct):
        group_id: str = s.string("0+", default="", entity="groupId")
        error_code: int = s.int16("0+", default=0)

    throttle_time_ms: int = s.int32("0+", default=0)
    results: tuple[DeletableGroupResult, ...] = s.array("DeletableGroupResult", "0+", default=())


API = api(
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    kafka_3_9="0-2",
    kafka_4_3="0-2",
    error=described("groups_names", "group_id", "results"),
)
