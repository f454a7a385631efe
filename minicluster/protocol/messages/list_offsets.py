"""ListOffsets (api key 2): the offsets that belong to timestamps.

Versions: 0-11, flexible from 6.
    1: without max_num_offsets; response timestamp, offset; response without old_style_offsets.
    2: isolation_level; response throttle_time_ms.
    3: on a quota violation the broker responds before it throttles (KIP-219).
    4: current_leader_epoch; response leader_epoch.
    5: OFFSET_NOT_AVAILABLE is a possible error (KIP-207).
    6: flexible.
    7: timestamp -3 for the offset of the largest one (KIP-734).
    8: timestamp -4 for the local start of the log (KIP-405).
    9: timestamp -5 for the last offset in tiered storage (KIP-1005).
    10: timeout_ms.
    11: timestamp -6 for the first offset not yet uploaded (KIP-1023).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import OF_TOPICS


@s.message(api_key=2, kind="request", versions="0-11", flexible="6+")
class ListOffsetsRequest(s.Message):
    class ListOffsetsPartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        current_leader_epoch: int = s.int32("4+", default=-1, ignorable=True)
        timestamp: int = s.int64("0+", default=0)
        max_num_offsets: int = s.int32("0", default=1)

    class ListOffsetsTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[ListOffsetsRequest.ListOffsetsPartition, ...] = s.array(
            "ListOffsetsPartition", "0+", default=()
        )

    replica_id: int = s.int32("0+", default=0, entity="brokerId")
    isolation_level: int = s.int8("2+", default=0)
    topics: tuple[ListOffsetsTopic, ...] = s.array("ListOffsetsTopic", "0+", default=())
    timeout_ms: int = s.int32("10+", default=0, ignorable=True)


@s.message(api_key=2, kind="response", versions="0-11", flexible="6+")
class ListOffsetsResponse(s.Message):
    class ListOffsetsPartitionResponse(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        old_style_offsets: tuple[int, ...] = s.array("int64", "0", default=())
        timestamp: int = s.int64("1+", default=-1)
        offset: int = s.int64("1+", default=-1)
        leader_epoch: int = s.int32("4+", default=-1)

    class ListOffsetsTopicResponse(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[ListOffsetsResponse.ListOffsetsPartitionResponse, ...] = s.array(
            "ListOffsetsPartitionResponse", "0+", default=()
        )

    throttle_time_ms: int = s.int32("2+", default=0, ignorable=True)
    topics: tuple[ListOffsetsTopicResponse, ...] = s.array(
        "ListOffsetsTopicResponse", "0+", default=()
    )


API = api(
    ListOffsetsRequest,
    ListOffsetsResponse,
    kafka_3_9="0-9",
    kafka_4_3="1-11",
    error=OF_TOPICS,
)
