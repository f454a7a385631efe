"""WriteShareGroupState (api key 85): a share group's state of partitions is written.

KIP-932.

Versions: 0-1, all flexible.
    1: delivery_complete_count.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Text, share_states
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=85, kind="request", versions="0-1", flexible="0+")
class WriteShareGroupStateRequest(s.Message):
    class StateBatch(s.Struct):
        first_offset: int = s.int64("0+", default=0)
        last_offset: int = s.int64("0+", default=0)
        delivery_state: int = s.int8("0+", default=0)
        delivery_count: int = s.int16("0+", default=0)

    class PartitionData(s.Struct):
        partition: int = s.int32("0+", default=0)
        state_epoch: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)
        start_offset: int = s.int64("0+", default=0)
        delivery_complete_count: int = s.int32("1+", default=-1, ignorable=True)
        state_batches: tuple[WriteShareGroupStateRequest.StateBatch, ...] = s.array(
            "StateBatch", "0+", default=()
        )

    class WriteStateData(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[WriteShareGroupStateRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    group_id: str = s.string("0+", default="")
    topics: tuple[WriteStateData, ...] = s.array("WriteStateData", "0+", default=())


@s.message(api_key=85, kind="response", versions="0-1", flexible="0+")
class WriteShareGroupStateResponse(s.Message):
    class PartitionResult(s.Struct):
        partition: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")

    class WriteStateResult(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[WriteShareGroupStateResponse.PartitionResult, ...] = s.array(
            "PartitionResult", "0+", default=()
        )

    results: tuple[WriteStateResult, ...] = s.array("WriteStateResult", "0+", default=())


API = api(
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    kafka_3_9="0",
    kafka_4_3="0-1",
    error=share_states(Text.OF_CODE),
)
