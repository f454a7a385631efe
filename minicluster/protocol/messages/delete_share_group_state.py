"""DeleteShareGroupState (api key 86): a share group's state of partitions is deleted.

KIP-932.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Text, share_states
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=86, kind="request", versions="0", flexible="0+")
class DeleteShareGroupStateRequest(s.Message):
    class PartitionData(s.Struct):
        partition: int = s.int32("0+", default=0)

    class DeleteStateData(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[DeleteShareGroupStateRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    group_id: str = s.string("0+", default="")
    topics: tuple[DeleteStateData, ...] = s.array("DeleteStateData", "0+", default=())


@s.message(api_key=86, kind="response", versions="0", flexible="0+")
class DeleteShareGroupStateResponse(s.Message):
    class PartitionResult(s.Struct):
        partition: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")

    class DeleteStateResult(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[DeleteShareGroupStateResponse.PartitionResult, ...] = s.array(
            "PartitionResult", "0+", default=()
        )

    results: tuple[DeleteStateResult, ...] = s.array("DeleteStateResult", "0+", default=())


API = api(
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    error=share_states(Text.DEFAULT),
)
