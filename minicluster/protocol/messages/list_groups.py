"""ListGroups (api key 16): the groups that a broker coordinates.

Versions: 0-5, flexible from 3.
    1: response throttle_time_ms.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: flexible.
    4: states_filter; response group_state.
    5: types_filter; response group_type.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=16, kind="request", versions="0-5", flexible="3+")
class ListGroupsRequest(s.Message):
    states_filter: tuple[str, ...] = s.array("string", "4+", default=())
    types_filter: tuple[str, ...] = s.array("string", "5+", default=())


@s.message(api_key=16, kind="response", versions="0-5", flexible="3+")
class ListGroupsResponse(s.Message):
    class ListedGroup(s.Struct):
        group_id: str = s.string("0+", default="", entity="groupId")
        protocol_type: str = s.string("0+", default="")
        group_state: str = s.string("4+", default="", ignorable=True)
        group_type: str = s.string("5+", default="", ignorable=True)

    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    error_code: int = s.int16("0+", default=0)
    groups: tuple[ListedGroup, ...] = s.array("ListedGroup", "0+", default=())


API = api(
    ListGroupsRequest,
    ListGroupsResponse,
    kafka_3_9="0-5",
    kafka_4_3="0-5",
)
