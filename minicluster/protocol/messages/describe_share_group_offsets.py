"""DescribeShareGroupOffsets (api key 90): the start offsets of share groups.

KIP-932.

Versions: 0-1, all flexible.
    1: response lag.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, Text
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=90, kind="request", versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest(s.Message):
    class DescribeShareGroupOffsetsRequestTopic(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class DescribeShareGroupOffsetsRequestGroup(s.Struct):
        group_id: str = s.string("0+", default="", entity="groupId")
        topics: (
            tuple[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic, ...]
            | None
        ) = s.array("DescribeShareGroupOffsetsRequestTopic", "0+", default=(), nullable="0+")

    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...] = s.array(
        "DescribeShareGroupOffsetsRequestGroup", "0+", default=()
    )


@s.message(api_key=90, kind="response", versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(s.Message):
    class DescribeShareGroupOffsetsResponsePartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        start_offset: int = s.int64("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)
        lag: int = s.int64("1+", default=-1, ignorable=True)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")

    class DescribeShareGroupOffsetsResponseTopic(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[
            DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition, ...
        ] = s.array("DescribeShareGroupOffsetsResponsePartition", "0+", default=())

    class DescribeShareGroupOffsetsResponseGroup(s.Struct):
        group_id: str = s.string("0+", default="", entity="groupId")
        topics: tuple[
            DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic, ...
        ] = s.array("DescribeShareGroupOffsetsResponseTopic", "0+", default=())
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")

    throttle_time_ms: int = s.int32("0+", default=0)
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...] = s.array(
        "DescribeShareGroupOffsetsResponseGroup", "0+", default=()
    )


API = api(
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    kafka_3_9="none",
    kafka_4_3="0-1",
    error=ErrorShape({"groups": Each(("groups",), text=Text.OF_EXCEPTION)}),
)
