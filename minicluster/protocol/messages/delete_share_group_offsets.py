"""DeleteShareGroupOffsets (api key 92): a client deletes a share group's offsets of topics.

KIP-932.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import TEXT_OF_CODE
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=92, kind="request", versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest(s.Message):
    class DeleteShareGroupOffsetsRequestTopic(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")

    group_id: str = s.string("0+", default="", entity="groupId")
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...] = s.array(
        "DeleteShareGroupOffsetsRequestTopic", "0+", default=()
    )


@s.message(api_key=92, kind="response", versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(s.Message):
    class DeleteShareGroupOffsetsResponseTopic(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default=None, nullable="0+")
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...] = s.array(
        "DeleteShareGroupOffsetsResponseTopic", "0+", default=()
    )


API = api(
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    kafka_3_9="none",
    kafka_4_3="0",
    error=TEXT_OF_CODE,
)
