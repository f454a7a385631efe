"""OffsetDelete (api key 47): a client deletes offsets of a group.

Versions: 0, none flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=47, kind="request", versions="0", flexible="none")
class OffsetDeleteRequest(s.Message):
    class OffsetDeleteRequestPartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)

    class OffsetDeleteRequestTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[OffsetDeleteRequest.OffsetDeleteRequestPartition, ...] = s.array(
            "OffsetDeleteRequestPartition", "0+", default=()
        )

    group_id: str = s.string("0+", default="", entity="groupId")
    topics: tuple[OffsetDeleteRequestTopic, ...] = s.array(
        "OffsetDeleteRequestTopic", "0+", default=()
    )


@s.message(api_key=47, kind="response", versions="0", flexible="none")
class OffsetDeleteResponse(s.Message):
    class OffsetDeleteResponsePartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class OffsetDeleteResponseTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[OffsetDeleteResponse.OffsetDeleteResponsePartition, ...] = s.array(
            "OffsetDeleteResponsePartition", "0+", default=()
        )

    error_code: int = s.int16("0+", default=0)
    throttle_time_ms: int = s.int32("0+", default=0, ignorable=True)
    topics: tuple[OffsetDeleteResponseTopic, ...] = s.array(
        "OffsetDeleteResponseTopic", "0+", default=()
    )


API = api(
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    kafka_3_9="0",
    kafka_4_3="0",
)
