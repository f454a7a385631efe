"""ReadShareGroupStateSummary (api key 87).

The start offsets of a share group's partitions are read.

KIP-932.

Versions: 0-1, all flexible.
    1: response delivery_complete_count.

Version 0 of the response has two forms: that of Kafka 3.9, which was early access, lacks the leader
epoch and has a class of its own.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Text, share_states
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=87, kind="request", versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest(s.Message):
    class PartitionData(s.Struct):
        partition: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)

    class ReadStateSummaryData(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[ReadShareGroupStateSummaryRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    group_id: str = s.string("0+", default="")
    topics: tuple[ReadStateSummaryData, ...] = s.array("ReadStateSummaryData", "0+", default=())


@s.message(api_key=87, kind="response", versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(s.Message):
    class PartitionResult(s.Struct):
        partition: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")
        state_epoch: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)
        start_offset: int = s.int64("0+", default=0)
        delivery_complete_count: int = s.int32("1+", default=-1, ignorable=True)

    class ReadStateSummaryResult(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[ReadShareGroupStateSummaryResponse.PartitionResult, ...] = s.array(
            "PartitionResult", "0+", default=()
        )

    results: tuple[ReadStateSummaryResult, ...] = s.array(
        "ReadStateSummaryResult", "0+", default=()
    )


@s.message(api_key=87, kind="response", versions="0", flexible="0+")
class EarlyReadShareGroupStateSummaryResponse(s.Message):
    """The response of Kafka 3.9."""

    class PartitionResult(s.Struct):
        partition: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")
        state_epoch: int = s.int32("0+", default=0)
        start_offset: int = s.int64("0+", default=0)

    class ReadStateSummaryResult(s.Struct):
        topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
        partitions: tuple[EarlyReadShareGroupStateSummaryResponse.PartitionResult, ...] = s.array(
            "PartitionResult", "0+", default=()
        )

    results: tuple[ReadStateSummaryResult, ...] = s.array(
        "ReadStateSummaryResult", "0+", default=()
    )


API = api(
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    kafka_3_9="0",
    kafka_4_3="0-1",
    error=share_states(Text.OF_CODE),
)
