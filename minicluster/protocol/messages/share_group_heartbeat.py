"""ShareGroupHeartbeat (api key 76).

A member of a share group keeps its session and receives its assignment.

KIP-932; v0 was early access and is not compatible.

Versions: 0-1, all flexible.
    1: fields as in version 0.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import NO_TEXT
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=76, kind="request", versions="0-1", flexible="0+")
class ShareGroupHeartbeatRequest(s.Message):
    group_id: str = s.string("0+", default="", entity="groupId")
    member_id: str = s.string("0+", default="")
    member_epoch: int = s.int32("0+", default=0)
    rack_id: str | None = s.string("0+", default=None, nullable="0+")
    subscribed_topic_names: tuple[str, ...] | None = s.array(
        "string", "0+", default=None, nullable="0+", entity="topicName"
    )


@s.message(api_key=76, kind="response", versions="0-1", flexible="0+")
class ShareGroupHeartbeatResponse(s.Message):
    class TopicPartitions(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class Assignment(s.Struct):
        topic_partitions: tuple[ShareGroupHeartbeatResponse.TopicPartitions, ...] = s.array(
            "TopicPartitions", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default=None, nullable="0+")
    member_id: str | None = s.string("0+", default=None, nullable="0+")
    member_epoch: int = s.int32("0+", default=0)
    heartbeat_interval_ms: int = s.int32("0+", default=0)
    assignment: Assignment | None = s.nested("Assignment", "0+", default=None, nullable="0+")


API = api(
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    kafka_3_9="0",
    kafka_4_3="1",
    error=NO_TEXT,
)
