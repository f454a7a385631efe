"""Fetch (api key 1): a consumer or a follower reads record batches of partitions.

KIP-595 (v12) adds the last fetched epoch and diverging epochs, KIP-516 (v13) names topics by id,
KIP-903 (v15) the replica state with its broker epoch, KIP-853 (v17) the directory id, KIP-1166
(v18) the follower's high watermark.

Versions: 0-18, flexible from 12.
    1: response throttle_time_ms.
    2: fields as in version 1.
    3: max_bytes.
    4: isolation_level; response last_stable_offset, aborted_transactions, producer_id,
        first_offset.
    5: log_start_offset; response log_start_offset.
    6: KAFKA_STORAGE_ERROR is a possible error.
    7: session_id, session_epoch, forgotten_topics_data; response session_id.
    8: on a quota violation the broker responds before it throttles (KIP-219).
    9: current_leader_epoch.
    10: zstd (KIP-110).
    11: rack_id; response preferred_read_replica.
    12: cluster_id, last_fetched_epoch; flexible; response diverging_epoch, epoch, end_offset,
        current_leader, ….
    13: topic_id; without topic; response topic_id; response without topic.
    14: OFFSET_MOVED_TO_TIERED_STORAGE is a possible error (KIP-405).
    15: replica_state, replica_epoch.
    16: response node_endpoints, node_id, host, port, rack.
    17: replica_directory_id.
    18: high_watermark.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=1, kind="request", versions="0-18", flexible="12+")
class FetchRequest(s.Message):
    class ReplicaState(s.Struct):
        replica_id: int = s.int32("15+", default=-1, entity="brokerId")
        replica_epoch: int = s.int64("15+", default=-1)

    class FetchPartition(s.Struct):
        partition: int = s.int32("0+", default=0)
        current_leader_epoch: int = s.int32("9+", default=-1, ignorable=True)
        fetch_offset: int = s.int64("0+", default=0)
        last_fetched_epoch: int = s.int32("12+", default=-1)
        log_start_offset: int = s.int64("5+", default=-1, ignorable=True)
        partition_max_bytes: int = s.int32("0+", default=0)
        replica_directory_id: UUID = s.uuid("17+", default=ZERO_UUID, tag=0, ignorable=True)
        high_watermark: int = s.int64("18+", default=0x7FFF_FFFF_FFFF_FFFF, tag=1, ignorable=True)

    class FetchTopic(s.Struct):
        topic: str = s.string("0-12", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("13+", default=ZERO_UUID, ignorable=True)
        partitions: tuple[FetchRequest.FetchPartition, ...] = s.array(
            "FetchPartition", "0+", default=()
        )

    class ForgottenTopic(s.Struct):
        topic: str = s.string("7-12", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("13+", default=ZERO_UUID, ignorable=True)
        partitions: tuple[int, ...] = s.array("int32", "7+", default=())

    cluster_id: str | None = s.string("12+", default=None, nullable="12+", tag=0, ignorable=True)
    replica_id: int = s.int32("0-14", default=-1, entity="brokerId")
    replica_state: ReplicaState = s.nested("ReplicaState", "15+", tag=1)
    max_wait_ms: int = s.int32("0+", default=0)
    min_bytes: int = s.int32("0+", default=0)
    max_bytes: int = s.int32("3+", default=0x7FFF_FFFF, ignorable=True)
    isolation_level: int = s.int8("4+", default=0, ignorable=True)
    session_id: int = s.int32("7+", default=0, ignorable=True)
    session_epoch: int = s.int32("7+", default=-1, ignorable=True)
    topics: tuple[FetchTopic, ...] = s.array("FetchTopic", "0+", default=())
    forgotten_topics_data: tuple[ForgottenTopic, ...] = s.array("ForgottenTopic", "7+", default=())
    rack_id: str = s.string("11+", default="", ignorable=True)


@s.message(api_key=1, kind="response", versions="0-18", flexible="12+")
class FetchResponse(s.Message):
    class EpochEndOffset(s.Struct):
        epoch: int = s.int32("12+", default=-1)
        end_offset: int = s.int64("12+", default=-1)

    class LeaderIdAndEpoch(s.Struct):
        leader_id: int = s.int32("12+", default=-1, entity="brokerId")
        leader_epoch: int = s.int32("12+", default=-1)

    class SnapshotId(s.Struct):
        end_offset: int = s.int64("0+", default=-1)
        epoch: int = s.int32("0+", default=-1)

    class AbortedTransaction(s.Struct):
        producer_id: int = s.int64("4+", default=0, entity="producerId")
        first_offset: int = s.int64("4+", default=0)

    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        high_watermark: int = s.int64("0+", default=0)
        last_stable_offset: int = s.int64("4+", default=-1, ignorable=True)
        log_start_offset: int = s.int64("5+", default=-1, ignorable=True)
        diverging_epoch: FetchResponse.EpochEndOffset = s.nested("EpochEndOffset", "12+", tag=0)
        current_leader: FetchResponse.LeaderIdAndEpoch = s.nested("LeaderIdAndEpoch", "12+", tag=1)
        snapshot_id: FetchResponse.SnapshotId = s.nested("SnapshotId", "12+", tag=2)
        aborted_transactions: tuple[FetchResponse.AbortedTransaction, ...] | None = s.array(
            "AbortedTransaction", "4+", default=(), nullable="4+", ignorable=True
        )
        preferred_read_replica: int = s.int32("11+", default=-1, entity="brokerId")
        records: Any = s.records("0+", default=None, nullable="0+")

    class FetchableTopicResponse(s.Struct):
        topic: str = s.string("0-12", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("13+", default=ZERO_UUID, ignorable=True)
        partitions: tuple[FetchResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    class NodeEndpoint(s.Struct):
        node_id: int = s.int32("16+", default=0, entity="brokerId")
        host: str = s.string("16+", default="")
        port: int = s.int32("16+", default=0)
        rack: str | None = s.string("16+", default=None, nullable="16+")

    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    error_code: int = s.int16("7+", default=0, ignorable=True)
    session_id: int = s.int32("7+", default=0)
    responses: tuple[FetchableTopicResponse, ...] = s.array(
        "FetchableTopicResponse", "0+", default=()
    )
    node_endpoints: tuple[NodeEndpoint, ...] = s.array("NodeEndpoint", "16+", default=(), tag=0)


@lru_cache(maxsize=256)
def replica_state(replica_id: int, replica_epoch: int = -1) -> FetchRequest.ReplicaState:
    """The sender of a Fetch: one object for all of its requests."""
    return FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=replica_epoch)


API = api(
    FetchRequest,
    FetchResponse,
    kafka_3_9="0-17",
    kafka_4_3="4-18",
    error=ErrorShape(
        {
            "responses": Each(
                ("topics",),
                inside={
                    "partitions": Each(
                        ("partitions",),
                        copies={"partition_index": "partition"},
                        values={"high_watermark": -1, "records": b""},
                    )
                },
                versions="0-12",
            )
        },
        copies={"session_id": "session_id"},
    ),
)
