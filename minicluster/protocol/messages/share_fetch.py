"""ShareFetch (api key 78): a share consumer acquires and acknowledges records.

KIP-932; v0 was early access and is not compatible.

Versions: 0-2, all flexible.
    1: max_records, batch_size; without partition_max_bytes; response
        acquisition_lock_timeout_ms.
    2: share_acquire_mode, is_renew_ack.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import NO_TEXT
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=78, kind="request", versions="0-2", flexible="0+")
class ShareFetchRequest(s.Message):
    class AcknowledgementBatch(s.Struct):
        first_offset: int = s.int64("0+", default=0)
        last_offset: int = s.int64("0+", default=0)
        acknowledge_types: tuple[int, ...] = s.array("int8", "0+", default=())

    class FetchPartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        partition_max_bytes: int = s.int32("0", default=0)
        acknowledgement_batches: tuple[ShareFetchRequest.AcknowledgementBatch, ...] = s.array(
            "AcknowledgementBatch", "0+", default=()
        )

    class FetchTopic(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[ShareFetchRequest.FetchPartition, ...] = s.array(
            "FetchPartition", "0+", default=()
        )

    class ForgottenTopic(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    group_id: str | None = s.string("0+", default=None, nullable="0+", entity="groupId")
    member_id: str | None = s.string("0+", default="", nullable="0+")
    share_session_epoch: int = s.int32("0+", default=0)
    max_wait_ms: int = s.int32("0+", default=0)
    min_bytes: int = s.int32("0+", default=0)
    max_bytes: int = s.int32("0+", default=0x7FFF_FFFF)
    max_records: int = s.int32("1+", default=0)
    batch_size: int = s.int32("1+", default=0)
    share_acquire_mode: int = s.int8("2+", default=0, ignorable=True)
    is_renew_ack: bool = s.boolean("2+", default=False)
    topics: tuple[FetchTopic, ...] = s.array("FetchTopic", "0+", default=())
    forgotten_topics_data: tuple[ForgottenTopic, ...] = s.array("ForgottenTopic", "0+", default=())


@s.message(api_key=78, kind="response", versions="0-2", flexible="0+")
class ShareFetchResponse(s.Message):
    class LeaderIdAndEpoch(s.Struct):
        leader_id: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)

    class AcquiredRecords(s.Struct):
        first_offset: int = s.int64("0+", default=0)
        last_offset: int = s.int64("0+", default=0)
        delivery_count: int = s.int16("0+", default=0)

    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")
        acknowledge_error_code: int = s.int16("0+", default=0)
        acknowledge_error_message: str | None = s.string("0+", default=None, nullable="0+")
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = s.nested("LeaderIdAndEpoch", "0+")
        records: Any = s.records("0+", default=None, nullable="0")
        acquired_records: tuple[ShareFetchResponse.AcquiredRecords, ...] = s.array(
            "AcquiredRecords", "0+", default=()
        )

    class ShareFetchableTopicResponse(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[ShareFetchResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    class NodeEndpoint(s.Struct):
        node_id: int = s.int32("0+", default=0, entity="brokerId")
        host: str = s.string("0+", default="")
        port: int = s.int32("0+", default=0)
        rack: str | None = s.string("0+", default=None, nullable="0+")

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = s.int32("1+", default=0)
    responses: tuple[ShareFetchableTopicResponse, ...] = s.array(
        "ShareFetchableTopicResponse", "0+", default=()
    )
    node_endpoints: tuple[NodeEndpoint, ...] = s.array("NodeEndpoint", "0+", default=())


API = api(
    ShareFetchRequest,
    ShareFetchResponse,
    kafka_3_9="0",
    kafka_4_3="1-2",
    error=NO_TEXT,
)
