"""EndQuorumEpoch (api key 54): a leader that resigns names its preferred successors.

KIP-595; KIP-853 (v1).

Versions: 0-1, flexible from 1.
    1: preferred_candidates, candidate_id, candidate_directory_id, leader_endpoints, …; without
        preferred_successors; flexible; response node_endpoints, node_id, host, port.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=54, kind="request", versions="0-1", flexible="1+")
class EndQuorumEpochRequest(s.Message):
    class ReplicaInfo(s.Struct):
        candidate_id: int = s.int32("1+", default=0, entity="brokerId")
        candidate_directory_id: UUID = s.uuid("1+", default=ZERO_UUID)

    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)
        preferred_successors: tuple[int, ...] = s.array("int32", "0", default=(), ignorable=True)
        preferred_candidates: tuple[EndQuorumEpochRequest.ReplicaInfo, ...] = s.array(
            "ReplicaInfo", "1+", default=(), ignorable=True
        )

    class TopicData(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[EndQuorumEpochRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    class LeaderEndpoint(s.Struct):
        name: str = s.string("1+", default="")
        host: str = s.string("1+", default="")
        port: int = s.uint16("1+", default=0)

    cluster_id: str | None = s.string("0+", default=None, nullable="0+")
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())
    leader_endpoints: tuple[LeaderEndpoint, ...] = s.array(
        "LeaderEndpoint", "1+", default=(), ignorable=True
    )


@s.message(api_key=54, kind="response", versions="0-1", flexible="1+")
class EndQuorumEpochResponse(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[EndQuorumEpochResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    class NodeEndpoint(s.Struct):
        node_id: int = s.int32("1+", default=0, entity="brokerId")
        host: str = s.string("1+", default="")
        port: int = s.uint16("1+", default=0)

    error_code: int = s.int16("0+", default=0)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())
    node_endpoints: tuple[NodeEndpoint, ...] = s.array("NodeEndpoint", "1+", default=(), tag=0)


API = api(
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-1",
)
