"""Vote (api key 52): a candidate requests the votes of the voters.

KIP-595; KIP-853 (v1) adds directory ids, KIP-996 (v2) the pre-vote.

Versions: 0-2, all flexible.
    1: voter_id, replica_directory_id, voter_directory_id; response node_endpoints, node_id,
        host, port.
    2: pre_vote.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=52, kind="request", versions="0-2", flexible="0+")
class VoteRequest(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        replica_epoch: int = s.int32("0+", default=0, former="candidateEpoch")
        replica_id: int = s.int32("0+", default=0, entity="brokerId", former="candidateId")
        replica_directory_id: UUID = s.uuid(
            "1+", default=ZERO_UUID, ignorable=True, former="candidateDirectoryId"
        )
        voter_directory_id: UUID = s.uuid("1+", default=ZERO_UUID, ignorable=True)
        last_offset_epoch: int = s.int32("0+", default=0)
        last_offset: int = s.int64("0+", default=0)
        pre_vote: bool = s.boolean("2+", default=False)

    class TopicData(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[VoteRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    cluster_id: str | None = s.string("0+", default=None, nullable="0+")
    voter_id: int = s.int32("1+", default=-1, ignorable=True, entity="brokerId")
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())


@s.message(api_key=52, kind="response", versions="0-2", flexible="0+")
class VoteResponse(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)
        vote_granted: bool = s.boolean("0+", default=False)

    class TopicData(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[VoteResponse.PartitionData, ...] = s.array(
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
    VoteRequest,
    VoteResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-2",
)
