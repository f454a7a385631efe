"""InitializeShareGroupState (api key 83): the state of a share group's partitions is initialized.

KIP-932.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Text, share_states
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=83, kind="request", versions="0", flexible="0+")
class InitializeShareGroupStateRequest(s.Message):
    class PartitionData(s.Struct):
        partition: int = s.int32("0+", default=0)
        state_epoch: int = s.int32("0+", default=0)
        start_offset: int = s.int64("0+", default=0)

    class InitializeStateData(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[InitializeShareGroupStateRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    group_id: str = s.string("0+", default="")
    topics: tuple[InitializeStateData, ...] = s.array("InitializeStateData", "0+", default=())


@s.message(api_key=83, kind="response", versions="0", flexible="0+")
class InitializeShareGroupStateResponse(s.Message):
    class PartitionResult(s.Struct):
        partition: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")

    class InitializeStateResult(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[InitializeShareGroupStateResponse.PartitionResult, ...] = s.array(
            "PartitionResult", "0+", default=()
        )

    results: tuple[InitializeStateResult, ...] = s.array("InitializeStateResult", "0+", default=())


API = api(
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    error=share_states(Text.DEFAULT),
)
