"""DeleteRecords (api key 21): leaders delete the records below an offset.

Versions: 0-2, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=21, kind="request", versions="0-2", flexible="2+")
class DeleteRecordsRequest(s.Message):
    class DeleteRecordsPartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        offset: int = s.int64("0+", default=0)

    class DeleteRecordsTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[DeleteRecordsRequest.DeleteRecordsPartition, ...] = s.array(
            "DeleteRecordsPartition", "0+", default=()
        )

    topics: tuple[DeleteRecordsTopic, ...] = s.array("DeleteRecordsTopic", "0+", default=())
    timeout_ms: int = s.int32("0+", default=0)


@s.message(api_key=21, kind="response", versions="0-2", flexible="2+")
class DeleteRecordsResponse(s.Message):
    class DeleteRecordsPartitionResult(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        low_watermark: int = s.int64("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class DeleteRecordsTopicResult(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[DeleteRecordsResponse.DeleteRecordsPartitionResult, ...] = s.array(
            "DeleteRecordsPartitionResult", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    topics: tuple[DeleteRecordsTopicResult, ...] = s.array(
        "DeleteRecordsTopicResult", "0+", default=()
    )


API = api(
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    kafka_3_9="0-2",
    kafka_4_3="0-2",
    error=ErrorShape(
        {
            "topics": Each(
                ("topics",),
                inside={"partitions": Each(("partitions",), values={"low_watermark": -1})},
            )
        }
    ),
)
