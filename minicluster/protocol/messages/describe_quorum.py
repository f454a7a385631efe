"""DescribeQuorum (api key 55): the state of the quorum.

KIP-595, KIP-836, KIP-853.

Versions: 0-2, all flexible.
    1: response last_fetch_timestamp, last_caught_up_timestamp.
    2: response error_message, replica_directory_id, nodes, node_id, ….
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import TEXT_OF_CODE
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=55, kind="request", versions="0-2", flexible="0+")
class DescribeQuorumRequest(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[DescribeQuorumRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())


@s.message(api_key=55, kind="response", versions="0-2", flexible="0+")
class DescribeQuorumResponse(s.Message):
    class ReplicaState(s.Struct):
        replica_id: int = s.int32("0+", default=0, entity="brokerId")
        replica_directory_id: UUID = s.uuid("2+", default=ZERO_UUID)
        log_end_offset: int = s.int64("0+", default=0)
        last_fetch_timestamp: int = s.int64("1+", default=-1, ignorable=True)
        last_caught_up_timestamp: int = s.int64("1+", default=-1, ignorable=True)

    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("2+", default="", nullable="2+", ignorable=True)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)
        high_watermark: int = s.int64("0+", default=0)
        current_voters: tuple[DescribeQuorumResponse.ReplicaState, ...] = s.array(
            "ReplicaState", "0+", default=()
        )
        observers: tuple[DescribeQuorumResponse.ReplicaState, ...] = s.array(
            "ReplicaState", "0+", default=()
        )

    class TopicData(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[DescribeQuorumResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    class Listener(s.Struct):
        name: str = s.string("2+", default="")
        host: str = s.string("2+", default="")
        port: int = s.uint16("2+", default=0)

    class Node(s.Struct):
        node_id: int = s.int32("2+", default=0, entity="brokerId")
        listeners: tuple[DescribeQuorumResponse.Listener, ...] = s.array(
            "Listener", "2+", default=()
        )

    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("2+", default="", nullable="2+", ignorable=True)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())
    nodes: tuple[Node, ...] = s.array("Node", "2+", default=())


API = api(
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    kafka_3_9="0-2",
    kafka_4_3="0-2",
    forwardable=True,
    error=TEXT_OF_CODE,
)
