"""TxnOffsetCommit (api key 28): a transaction commits the offsets of a group.

Versions: 0-5, flexible from 3.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: committed_leader_epoch.
    3: generation_id, member_id, group_instance_id; flexible.
    4: TRANSACTION_ABORTABLE is a possible error (KIP-890).
    5: adds the group's offsets to the transaction itself (KIP-890).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import OF_TOPICS


@s.message(api_key=28, kind="request", versions="0-5", flexible="3+")
class TxnOffsetCommitRequest(s.Message):
    class TxnOffsetCommitRequestPartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        committed_offset: int = s.int64("0+", default=0)
        committed_leader_epoch: int = s.int32("2+", default=-1, ignorable=True)
        committed_metadata: str | None = s.string("0+", default="", nullable="0+")

    class TxnOffsetCommitRequestTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition, ...] = s.array(
            "TxnOffsetCommitRequestPartition", "0+", default=()
        )

    transactional_id: str = s.string("0+", default="", entity="transactionalId")
    group_id: str = s.string("0+", default="", entity="groupId")
    producer_id: int = s.int64("0+", default=0, entity="producerId")
    producer_epoch: int = s.int16("0+", default=0)
    generation_id: int = s.int32("3+", default=-1)
    member_id: str = s.string("3+", default="")
    group_instance_id: str | None = s.string("3+", default=None, nullable="3+")
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = s.array(
        "TxnOffsetCommitRequestTopic", "0+", default=()
    )


@s.message(api_key=28, kind="response", versions="0-5", flexible="3+")
class TxnOffsetCommitResponse(s.Message):
    class TxnOffsetCommitResponsePartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class TxnOffsetCommitResponseTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition, ...] = s.array(
            "TxnOffsetCommitResponsePartition", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = s.array(
        "TxnOffsetCommitResponseTopic", "0+", default=()
    )


API = api(
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    kafka_3_9="0-4",
    kafka_4_3="0-5",
    error=OF_TOPICS,
)
