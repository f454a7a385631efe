"""OffsetForLeaderEpoch (api key 23).

The end offset of a leader epoch, for a follower or a consumer.

KIP-101, KIP-279, KIP-320.

Versions: 0-4, flexible from 4.
    1: response leader_epoch.
    2: current_leader_epoch; response throttle_time_ms.
    3: replica_id.
    4: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import OF_TOPICS


@s.message(api_key=23, kind="request", versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest(s.Message):
    class OffsetForLeaderPartition(s.Struct):
        partition: int = s.int32("0+", default=0)
        current_leader_epoch: int = s.int32("2+", default=-1, ignorable=True)
        leader_epoch: int = s.int32("0+", default=0)

    class OffsetForLeaderTopic(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[OffsetForLeaderEpochRequest.OffsetForLeaderPartition, ...] = s.array(
            "OffsetForLeaderPartition", "0+", default=()
        )

    replica_id: int = s.int32("3+", default=-2, ignorable=True, entity="brokerId")
    topics: tuple[OffsetForLeaderTopic, ...] = s.array("OffsetForLeaderTopic", "0+", default=())


@s.message(api_key=23, kind="response", versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse(s.Message):
    class EpochEndOffset(s.Struct):
        error_code: int = s.int16("0+", default=0)
        partition: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("1+", default=-1, ignorable=True)
        end_offset: int = s.int64("0+", default=-1)

    class OffsetForLeaderTopicResult(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[OffsetForLeaderEpochResponse.EpochEndOffset, ...] = s.array(
            "EpochEndOffset", "0+", default=()
        )

    throttle_time_ms: int = s.int32("2+", default=0, ignorable=True)
    topics: tuple[OffsetForLeaderTopicResult, ...] = s.array(
        "OffsetForLeaderTopicResult", "0+", default=()
    )


API = api(
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    kafka_3_9="0-4",
    kafka_4_3="2-4",
    error=OF_TOPICS,
)
