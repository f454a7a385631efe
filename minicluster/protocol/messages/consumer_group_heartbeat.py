"""ConsumerGroupHeartbeat (api key 68).

A member of a consumer group keeps its session and receives its assignment.

KIP-848.

Versions: 0-1, all flexible.
    1: subscribed_topic_regex.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import NO_TEXT
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=68, kind="request", versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(s.Message):
    class TopicPartitions(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    group_id: str = s.string("0+", default="", entity="groupId")
    member_id: str = s.string("0+", default="")
    member_epoch: int = s.int32("0+", default=0)
    instance_id: str | None = s.string("0+", default=None, nullable="0+")
    rack_id: str | None = s.string("0+", default=None, nullable="0+")
    rebalance_timeout_ms: int = s.int32("0+", default=-1)
    subscribed_topic_names: tuple[str, ...] | None = s.array(
        "string", "0+", default=None, nullable="0+", entity="topicName"
    )
    subscribed_topic_regex: str | None = s.string("1+", default=None, nullable="1+")
    server_assignor: str | None = s.string("0+", default=None, nullable="0+")
    topic_partitions: tuple[TopicPartitions, ...] | None = s.array(
        "TopicPartitions", "0+", default=None, nullable="0+"
    )


@s.message(api_key=68, kind="response", versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(s.Message):
    class TopicPartitions(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class Assignment(s.Struct):
        topic_partitions: tuple[ConsumerGroupHeartbeatResponse.TopicPartitions, ...] = s.array(
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
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    kafka_3_9="0",
    kafka_4_3="0-1",
    error=NO_TEXT,
)
