"""ListPartitionReassignments (api key 46): the reassignments in progress.

KIP-455.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, partition_indexes


@s.message(api_key=46, kind="request", versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(s.Message):
    class ListPartitionReassignmentsTopics(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partition_indexes: tuple[int, ...] = s.array("int32", "0+", default=())

    timeout_ms: int = s.int32("0+", default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = s.array(
        "ListPartitionReassignmentsTopics", "0+", default=None, nullable="0+"
    )


@s.message(api_key=46, kind="response", versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(s.Message):
    class OngoingPartitionReassignment(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        adding_replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        removing_replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")

    class OngoingTopicReassignment(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[ListPartitionReassignmentsResponse.OngoingPartitionReassignment, ...] = (
            s.array("OngoingPartitionReassignment", "0+", default=())
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")
    topics: tuple[OngoingTopicReassignment, ...] = s.array(
        "OngoingTopicReassignment", "0+", default=()
    )


API = api(
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    forwardable=True,
    error=ErrorShape(
        {"topics": Each(("topics",), inside={"partitions": partition_indexes("partition_indexes")})}
    ),
)
