"""AssignReplicasToDirs (api key 73).

A broker reports the directories of its replicas to the controller.

KIP-858.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=73, kind="request", versions="0", flexible="0+")
class AssignReplicasToDirsRequest(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[AssignReplicasToDirsRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    class DirectoryData(s.Struct):
        id: UUID = s.uuid("0+", default=ZERO_UUID)
        topics: tuple[AssignReplicasToDirsRequest.TopicData, ...] = s.array(
            "TopicData", "0+", default=()
        )

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=-1)
    directories: tuple[DirectoryData, ...] = s.array("DirectoryData", "0+", default=())


@s.message(api_key=73, kind="response", versions="0", flexible="0+")
class AssignReplicasToDirsResponse(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class TopicData(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[AssignReplicasToDirsResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    class DirectoryData(s.Struct):
        id: UUID = s.uuid("0+", default=ZERO_UUID)
        topics: tuple[AssignReplicasToDirsResponse.TopicData, ...] = s.array(
            "TopicData", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    directories: tuple[DirectoryData, ...] = s.array("DirectoryData", "0+", default=())


API = api(
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    kafka_3_9="0",
    kafka_4_3="0",
)
