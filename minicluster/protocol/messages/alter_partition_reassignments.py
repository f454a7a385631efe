"""AlterPartitionReassignments (api key 45): a client starts or cancels reassignments.

KIP-455.

Versions: 0-1, all flexible.
    1: allow_replication_factor_change; response allow_replication_factor_change.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=45, kind="request", versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(s.Message):
    class ReassignablePartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        replicas: tuple[int, ...] | None = s.array(
            "int32", "0+", default=None, nullable="0+", entity="brokerId"
        )

    class ReassignableTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[AlterPartitionReassignmentsRequest.ReassignablePartition, ...] = s.array(
            "ReassignablePartition", "0+", default=()
        )

    timeout_ms: int = s.int32("0+", default=60000)
    allow_replication_factor_change: bool = s.boolean("1+", default=True)
    topics: tuple[ReassignableTopic, ...] = s.array("ReassignableTopic", "0+", default=())


@s.message(api_key=45, kind="response", versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(s.Message):
    class ReassignablePartitionResponse(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")

    class ReassignableTopicResponse(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[
            AlterPartitionReassignmentsResponse.ReassignablePartitionResponse, ...
        ] = s.array("ReassignablePartitionResponse", "0+", default=())

    throttle_time_ms: int = s.int32("0+", default=0)
    allow_replication_factor_change: bool = s.boolean("1+", default=True, ignorable=True)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+")
    responses: tuple[ReassignableTopicResponse, ...] = s.array(
        "ReassignableTopicResponse", "0+", default=()
    )


API = api(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    kafka_3_9="0",
    kafka_4_3="0-1",
    forwardable=True,
    error=ErrorShape(
        {"responses": Each(("topics",), inside={"partitions": Each(("partitions",))})}
    ),
)
