"""OffsetCommit (api key 8): a member of a group commits its offsets.

Versions: 0-10, flexible from 8.
    1: generation_id_or_member_epoch, member_id, commit_timestamp.
    2: retention_time_ms; without commit_timestamp.
    3: response throttle_time_ms.
    4: on a quota violation the broker responds before it throttles (KIP-219).
    5: without retention_time_ms.
    6: committed_leader_epoch.
    7: group_instance_id.
    8: flexible.
    9: for the consumer group protocol as well (KIP-848).
    10: topic_id; without name; response topic_id; response without name.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import OF_TOPICS
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=8, kind="request", versions="0-10", flexible="8+")
class OffsetCommitRequest(s.Message):
    class OffsetCommitRequestPartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        committed_offset: int = s.int64("0+", default=0)
        committed_leader_epoch: int = s.int32("6+", default=-1, ignorable=True)
        commit_timestamp: int = s.int64("1", default=-1)
        committed_metadata: str | None = s.string("0+", default="", nullable="0+")

    class OffsetCommitRequestTopic(s.Struct):
        name: str = s.string("0-9", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("10+", default=ZERO_UUID, ignorable=True)
        partitions: tuple[OffsetCommitRequest.OffsetCommitRequestPartition, ...] = s.array(
            "OffsetCommitRequestPartition", "0+", default=()
        )

    group_id: str = s.string("0+", default="", entity="groupId")
    generation_id_or_member_epoch: int = s.int32("1+", default=-1, ignorable=True)
    member_id: str = s.string("1+", default="", ignorable=True)
    group_instance_id: str | None = s.string("7+", default=None, nullable="7+")
    retention_time_ms: int = s.int64("2-4", default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...] = s.array(
        "OffsetCommitRequestTopic", "0+", default=()
    )


@s.message(api_key=8, kind="response", versions="0-10", flexible="8+")
class OffsetCommitResponse(s.Message):
    class OffsetCommitResponsePartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class OffsetCommitResponseTopic(s.Struct):
        name: str = s.string("0-9", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("10+", default=ZERO_UUID, ignorable=True)
        partitions: tuple[OffsetCommitResponse.OffsetCommitResponsePartition, ...] = s.array(
            "OffsetCommitResponsePartition", "0+", default=()
        )

    throttle_time_ms: int = s.int32("3+", default=0, ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...] = s.array(
        "OffsetCommitResponseTopic", "0+", default=()
    )


API = api(
    OffsetCommitRequest,
    OffsetCommitResponse,
    kafka_3_9="0-9",
    kafka_4_3="2-10",
    error=OF_TOPICS,
)
