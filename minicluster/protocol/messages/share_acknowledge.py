"""ShareAcknowledge (api key 79): a share consumer acknowledges records.

KIP-932; v0 was early access and is not compatible.

Versions: 0-2, all flexible.
    1: fields as in version 0.
    2: is_renew_ack; response acquisition_lock_timeout_ms.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import NO_TEXT
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=79, kind="request", versions="0-2", flexible="0+")
class ShareAcknowledgeRequest(s.Message):
    class AcknowledgementBatch(s.Struct):
        first_offset: int = s.int64("0+", default=0)
        last_offset: int = s.int64("0+", default=0)
        acknowledge_types: tuple[int, ...] = s.array("int8", "0+", default=())

    class AcknowledgePartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        acknowledgement_batches: tuple[ShareAcknowledgeRequest.AcknowledgementBatch, ...] = s.array(
            "AcknowledgementBatch", "0+", default=()
        )

    class AcknowledgeTopic(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[ShareAcknowledgeRequest.AcknowledgePartition, ...] = s.array(
            "AcknowledgePartition", "0+", default=()
        )

    group_id: str | None = s.string("0+", default=None, nullable="0+", entity="groupId")
    member_id: str | None = s.string("0+", default="", nullable="0+")
    share_session_epoch: int = s.int32("0+", default=0)
    is_renew_ack: bool = s.boolean("2+", default=False)
    topics: tuple[AcknowledgeTopic, ...] = s.array("AcknowledgeTopic", "0+", default=())


@s.message(api_key=79, kind="response", versions="0-2", flexible="0+")
class ShareAcknowledgeResponse(s.Message):
    class LeaderIdAndEpoch(s.Struct):
        leader_id: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)

    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = s.nested(
            "LeaderIdAndEpoch", "0+"
        )

    class ShareAcknowledgeTopicResponse(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[ShareAcknowledgeResponse.PartitionData, ...] = s.array(
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
    acquisition_lock_timeout_ms: int = s.int32("2+", default=0, ignorable=True)
    responses: tuple[ShareAcknowledgeTopicResponse, ...] = s.array(
        "ShareAcknowledgeTopicResponse", "0+", default=()
    )
    node_endpoints: tuple[NodeEndpoint, ...] = s.array("NodeEndpoint", "0+", default=())


API = api(
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    kafka_3_9="0",
    kafka_4_3="1-2",
    error=NO_TEXT,
)
