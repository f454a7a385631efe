"""BeginQuorumEpoch (api key 53): a new leader announces itself to the voters.

KIP-595; KIP-853 (v1).

Versions: 0-1, flexible from 1.
    1: voter_id, voter_directory_id, leader_endpoints, name, …; flexible; response
        node_endpoints, node_id, host, port.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=53, kind="request", versions="0-1", flexible="1+")
class BeginQuorumEpochRequest(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        voter_directory_id: UUID = s.uuid("1+", default=ZERO_UUID, ignorable=True)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[BeginQuorumEpochRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    class LeaderEndpoint(s.Struct):
        name: str = s.string("1+", default="")
        host: str = s.string("1+", default="")
        port: int = s.uint16("1+", default=0)

    cluster_id: str | None = s.string("0+", default=None, nullable="0+")
    voter_id: int = s.int32("1+", default=-1, ignorable=True, entity="brokerId")
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())
    leader_endpoints: tuple[LeaderEndpoint, ...] = s.array(
        "LeaderEndpoint", "1+", default=(), ignorable=True
    )


@s.message(api_key=53, kind="response", versions="0-1", flexible="1+")
class BeginQuorumEpochResponse(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[BeginQuorumEpochResponse.PartitionData, ...] = s.array(
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
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-1",
)
