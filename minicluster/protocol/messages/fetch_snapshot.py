"""FetchSnapshot (api key 59): a follower of the quorum reads some bytes of a snapshot.

KIP-630.

Versions: 0-1, all flexible.
    1: replica_directory_id; response node_endpoints, node_id, host, port.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=59, kind="request", versions="0-1", flexible="0+")
class FetchSnapshotRequest(s.Message):
    class SnapshotId(s.Struct):
        end_offset: int = s.int64("0+", default=0)
        epoch: int = s.int32("0+", default=0)

    class PartitionSnapshot(s.Struct):
        partition: int = s.int32("0+", default=0)
        current_leader_epoch: int = s.int32("0+", default=0)
        snapshot_id: FetchSnapshotRequest.SnapshotId = s.nested("SnapshotId", "0+")
        position: int = s.int64("0+", default=0)
        replica_directory_id: UUID = s.uuid("1+", default=ZERO_UUID, tag=0, ignorable=True)

    class TopicSnapshot(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[FetchSnapshotRequest.PartitionSnapshot, ...] = s.array(
            "PartitionSnapshot", "0+", default=()
        )

    cluster_id: str | None = s.string("0+", default=None, nullable="0+", tag=0)
    replica_id: int = s.int32("0+", default=-1, entity="brokerId")
    max_bytes: int = s.int32("0+", default=0x7FFF_FFFF)
    topics: tuple[TopicSnapshot, ...] = s.array("TopicSnapshot", "0+", default=())


@s.message(api_key=59, kind="response", versions="0-1", flexible="0+")
class FetchSnapshotResponse(s.Message):
    class SnapshotId(s.Struct):
        end_offset: int = s.int64("0+", default=0)
        epoch: int = s.int32("0+", default=0)

    class LeaderIdAndEpoch(s.Struct):
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)

    class PartitionSnapshot(s.Struct):
        index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        snapshot_id: FetchSnapshotResponse.SnapshotId = s.nested("SnapshotId", "0+")
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = s.nested(
            "LeaderIdAndEpoch", "0+", tag=0
        )
        size: int = s.int64("0+", default=0)
        position: int = s.int64("0+", default=0)
        unaligned_records: Any = s.records("0+", default=b"")

    class TopicSnapshot(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[FetchSnapshotResponse.PartitionSnapshot, ...] = s.array(
            "PartitionSnapshot", "0+", default=()
        )

    class NodeEndpoint(s.Struct):
        node_id: int = s.int32("1+", default=0, entity="brokerId")
        host: str = s.string("1+", default="")
        port: int = s.uint16("1+", default=0)

    throttle_time_ms: int = s.int32("0+", default=0, ignorable=True)
    error_code: int = s.int16("0+", default=0)
    topics: tuple[TopicSnapshot, ...] = s.array("TopicSnapshot", "0+", default=())
    node_endpoints: tuple[NodeEndpoint, ...] = s.array("NodeEndpoint", "1+", default=(), tag=0)


API = api(
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-1",
)
