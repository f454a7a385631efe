"""ShareGroupDescribe (api key 77): the state and the members of share groups.

KIP-932; v0 was early access and is not compatible.

Versions: 0-1, all flexible.
    1: fields as in version 0.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import described
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=77, kind="request", versions="0-1", flexible="0+")
class ShareGroupDescribeRequest(s.Message):
    group_ids: tuple[str, ...] = s.array("string", "0+", default=(), entity="groupId")
    include_authorized_operations: bool = s.boolean("0+", default=False)


@s.message(api_key=77, kind="response", versions="0-1", flexible="0+")
class ShareGroupDescribeResponse(s.Message):
    class TopicPartitions(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class Assignment(s.Struct):
        topic_partitions: tuple[ShareGroupDescribeResponse.TopicPartitions, ...] = s.array(
            "TopicPartitions", "0+", default=()
        )

    class Member(s.Struct):
        member_id: str = s.string("0+", default="")
        rack_id: str | None = s.string("0+", default=None, nullable="0+")
        member_epoch: int = s.int32("0+", default=0)
        client_id: str = s.string("0+", default="")
        client_host: str = s.string("0+", default="")
        subscribed_topic_names: tuple[str, ...] = s.array(
            "string", "0+", default=(), entity="topicName"
        )
        assignment: ShareGroupDescribeResponse.Assignment = s.nested("Assignment", "0+")

    class DescribedGroup(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")
        group_id: str = s.string("0+", default="", entity="groupId")
        group_state: str = s.string("0+", default="")
        group_epoch: int = s.int32("0+", default=0)
        assignment_epoch: int = s.int32("0+", default=0)
        assignor_name: str = s.string("0+", default="")
        members: tuple[ShareGroupDescribeResponse.Member, ...] = s.array("Member", "0+", default=())
        authorized_operations: int = s.int32("0+", default=-2147483648)

    throttle_time_ms: int = s.int32("0+", default=0)
    groups: tuple[DescribedGroup, ...] = s.array("DescribedGroup", "0+", default=())


API = api(
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    kafka_3_9="0",
    kafka_4_3="1",
    error=described("group_ids", "group_id", "groups"),
)
