"""DescribeTopicPartitions (api key 75): topics and partitions, page by page.

KIP-966.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=75, kind="request", versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(s.Message):
    class TopicRequest(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")

    class Cursor(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partition_index: int = s.int32("0+", default=0)

    topics: tuple[TopicRequest, ...] = s.array("TopicRequest", "0+", default=(), is_set=True)
    response_partition_limit: int = s.int32("0+", default=2000)
    cursor: Cursor | None = s.nested("Cursor", "0+", default=None, nullable="0+")


@s.message(api_key=75, kind="response", versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(s.Message):
    class DescribeTopicPartitionsResponsePartition(s.Struct):
        error_code: int = s.int16("0+", default=0)
        partition_index: int = s.int32("0+", default=0)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=-1, ignorable=True)
        replica_nodes: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        isr_nodes: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        eligible_leader_replicas: tuple[int, ...] | None = s.array(
            "int32", "0+", default=None, nullable="0+", entity="brokerId"
        )
        last_known_elr: tuple[int, ...] | None = s.array(
            "int32", "0+", default=None, nullable="0+", entity="brokerId"
        )
        offline_replicas: tuple[int, ...] = s.array(
            "int32", "0+", default=(), ignorable=True, entity="brokerId"
        )

    class DescribeTopicPartitionsResponseTopic(s.Struct):
        error_code: int = s.int16("0+", default=0)
        name: str | None = s.string("0+", default="", nullable="0+", entity="topicName")
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID, ignorable=True)
        is_internal: bool = s.boolean("0+", default=False, ignorable=True)
        partitions: tuple[
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition, ...
        ] = s.array("DescribeTopicPartitionsResponsePartition", "0+", default=())
        topic_authorized_operations: int = s.int32("0+", default=-2147483648)

    class Cursor(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partition_index: int = s.int32("0+", default=0)

    throttle_time_ms: int = s.int32("0+", default=0, ignorable=True)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = s.array(
        "DescribeTopicPartitionsResponseTopic", "0+", default=()
    )
    next_cursor: Cursor | None = s.nested("Cursor", "0+", default=None, nullable="0+")


API = api(
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    error=ErrorShape({"topics": Each(("topics",))}),
)
