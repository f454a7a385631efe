"""BrokerHeartbeat (api key 63).

A broker keeps its session and requests to be unfenced, fenced or shut down.

KIP-631; KIP-858 (v1) adds offline directories, KIP-1066 (v2) cordoned ones.

Versions: 0-2, all flexible.
    1: offline_log_dirs.
    2: cordoned_log_dirs.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=63, kind="request", versions="0-2", flexible="0+")
class BrokerHeartbeatRequest(s.Message):
    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=-1)
    current_metadata_offset: int = s.int64("0+", default=0)
    want_fence: bool = s.boolean("0+", default=False)
    want_shut_down: bool = s.boolean("0+", default=False)
    offline_log_dirs: tuple[UUID, ...] = s.array("uuid", "1+", default=(), tag=0)
    cordoned_log_dirs: tuple[UUID, ...] | None = s.array(
        "uuid", "2+", default=None, nullable="2+", tag=1
    )


@s.message(api_key=63, kind="response", versions="0-2", flexible="0+")
class BrokerHeartbeatResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    is_caught_up: bool = s.boolean("0+", default=False)
    is_fenced: bool = s.boolean("0+", default=True)
    should_shut_down: bool = s.boolean("0+", default=False)


API = api(
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-2",
)
