"""AlterShareGroupOffsets (api key 91): a client sets the start offsets of a share group.

KIP-932.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import TEXT_OF_CODE
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=91, kind="request", versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest(s.Message):
    class AlterShareGroupOffsetsRequestPartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        start_offset: int = s.int64("0+", default=0)

    class AlterShareGroupOffsetsRequestTopic(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[
            AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition, ...
        ] = s.array("AlterShareGroupOffsetsRequestPartition", "0+", default=())

    group_id: str = s.string("0+", default="", entity="groupId")
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...] = s.array(
        "AlterShareGroupOffsetsRequestTopic", "0+", default=()
    )


@s.message(api_key=91, kind="response", versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(s.Message):
    class AlterShareGroupOffsetsResponsePartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")

    class AlterShareGroupOffsetsResponseTopic(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[
            AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition, ...
        ] = s.array("AlterShareGroupOffsetsResponsePartition", "0+", default=())

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default=None, nullable="0+")
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...] = s.array(
        "AlterShareGroupOffsetsResponseTopic", "0+", default=()
    )


API = api(
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    kafka_3_9="none",
    kafka_4_3="0",
    error=TEXT_OF_CODE,
)
