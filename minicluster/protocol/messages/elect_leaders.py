"""ElectLeaders (api key 43): preferred or unclean elections by the controller.

KIP-183, KIP-460.

Versions: 0-2, flexible from 2.
    1: election_type.
    2: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=43, kind="request", versions="0-2", flexible="2+")
class ElectLeadersRequest(s.Message):
    class TopicPartitions(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    election_type: int = s.int8("1+", default=0)
    topic_partitions: tuple[TopicPartitions, ...] | None = s.array(
        "TopicPartitions", "0+", default=(), nullable="0+"
    )
    timeout_ms: int = s.int32("0+", default=60000)


@s.message(api_key=43, kind="response", versions="0-2", flexible="2+")
class ElectLeadersResponse(s.Message):
    class PartitionResult(s.Struct):
        partition_id: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default="", nullable="0+")

    class ReplicaElectionResult(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partition_result: tuple[ElectLeadersResponse.PartitionResult, ...] = s.array(
            "PartitionResult", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("1+", default=0)
    replica_election_results: tuple[ReplicaElectionResult, ...] = s.array(
        "ReplicaElectionResult", "0+", default=()
    )


API = api(
    ElectLeadersRequest,
    ElectLeadersResponse,
    kafka_3_9="0-2",
    kafka_4_3="0-2",
    forwardable=True,
    error=ErrorShape(
        {
            "replica_election_results": Each(
                ("topic_partitions",),
                inside={"partition_result": Each(("partitions",), plain="partition_id")},
            )
        }
    ),
)
