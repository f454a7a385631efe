"""ReadShareGroupState (api key 84): a share group's state of partitions is read.

KIP-932.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Text, share_states
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=84, kind="request", versions="0", flexible="0+")
class ReadShareGroupStateRequest(s.Message):
    class PartitionData(s.Struct):
        partition: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)

    class ReadStateData(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[ReadShareGroupStateRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    group_id: str = s.string("0+", default="")
    topics: tuple[ReadStateData, ...] = s.array("ReadStateData", "0+", default=())


@s.message(api_key=84, kind="response", versions="0", flexible="0+")
class ReadShareGroupStateResponse(s.Message):
    class StateBatch(s.Struct):
        first_offset: int = s.int64("0+", default=0)
        last_offset: int = s.int64("0+", default=0)
        delivery_state: int = s.int8("0+", default=0)
        delivery_count: int = s.int16("0+", default=0)

    class PartitionResult(s.Struct):
        partition: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")
        state_epoch: int = s.int32("0+", default=0)
        start_offset: int = s.int64("0+", default=0)
        state_batches: tuple[ReadShareGroupStateResponse.StateBatch, ...] = s.array(
            "StateBatch", "0+", default=()
        )

    class ReadStateResult(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[ReadShareGroupStateResponse.PartitionResult, ...] = s.array(
            "PartitionResult", "0+", default=()
        )

    results: tuple[ReadStateResult, ...] = s.array("ReadStateResult", "0+", default=())


API = api(
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    error=share_states(Text.OF_CODE),
)
