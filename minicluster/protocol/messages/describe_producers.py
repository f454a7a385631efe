"""DescribeProducers (api key 61): the producers that are active on partitions.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, Text, partition_indexes


@s.message(api_key=61, kind="request", versions="0", flexible="0+")
class DescribeProducersRequest(s.Message):
    class TopicRequest(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partition_indexes: tuple[int, ...] = s.array("int32", "0+", default=())

    topics: tuple[TopicRequest, ...] = s.array("TopicRequest", "0+", default=())


@s.message(api_key=61, kind="response", versions="0", flexible="0+")
class DescribeProducersResponse(s.Message):
    class ProducerState(s.Struct):
        producer_id: int = s.int64("0+", default=0, entity="producerId")
        producer_epoch: int = s.int32("0+", default=0)
        last_sequence: int = s.int32("0+", default=-1)
        last_timestamp: int = s.int64("0+", default=-1)
        coordinator_epoch: int = s.int32("0+", default=0)
        current_txn_start_offset: int = s.int64("0+", default=-1)

    class PartitionResponse(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")
        active_producers: tuple[DescribeProducersResponse.ProducerState, ...] = s.array(
            "ProducerState", "0+", default=()
        )

    class TopicResponse(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[DescribeProducersResponse.PartitionResponse, ...] = s.array(
            "PartitionResponse", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    topics: tuple[TopicResponse, ...] = s.array("TopicResponse", "0+", default=())


API = api(
    DescribeProducersRequest,
    DescribeProducersResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    error=ErrorShape(
        {
            "topics": Each(
                ("topics",),
                inside={"partitions": partition_indexes("partition_indexes", text=Text.DEFAULT)},
            )
        }
    ),
)
