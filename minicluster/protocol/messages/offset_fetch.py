"""OffsetFetch (api key 9): the committed offsets of a group.

Versions: 0-10, flexible from 6.
    1: fields as in version 0.
    2: topics may be null.
    3: response throttle_time_ms.
    4: on a quota violation the broker responds before it throttles (KIP-219).
    5: response committed_leader_epoch.
    6: flexible.
    7: require_stable.
    8: groups; response groups, group_id.
    9: member_id, member_epoch.
    10: topic_id; without name; response topic_id; response without name.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, partition_indexes
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=9, kind="request", versions="0-10", flexible="6+")
class OffsetFetchRequest(s.Message):
    class OffsetFetchRequestTopic(s.Struct):
        name: str = s.string("0-7", default="", entity="topicName")
        partition_indexes: tuple[int, ...] = s.array("int32", "0-7", default=())

    class OffsetFetchRequestTopics(s.Struct):
        name: str = s.string("8-9", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("10+", default=ZERO_UUID, ignorable=True)
        partition_indexes: tuple[int, ...] = s.array("int32", "8+", default=())

    class OffsetFetchRequestGroup(s.Struct):
        group_id: str = s.string("8+", default="", entity="groupId")
        member_id: str | None = s.string("9+", default=None, nullable="9+", ignorable=True)
        member_epoch: int = s.int32("9+", default=-1, ignorable=True)
        topics: tuple[OffsetFetchRequest.OffsetFetchRequestTopics, ...] | None = s.array(
            "OffsetFetchRequestTopics", "8+", default=(), nullable="8+"
        )

    group_id: str = s.string("0-7", default="", entity="groupId")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = s.array(
        "OffsetFetchRequestTopic", "0-7", default=(), nullable="2-7"
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = s.array(
        "OffsetFetchRequestGroup", "8+", default=()
    )
    require_stable: bool = s.boolean("7+", default=False)


@s.message(api_key=9, kind="response", versions="0-10", flexible="6+")
class OffsetFetchResponse(s.Message):
    class OffsetFetchResponsePartition(s.Struct):
        partition_index: int = s.int32("0-7", default=0)
        committed_offset: int = s.int64("0-7", default=0)
        committed_leader_epoch: int = s.int32("5-7", default=-1, ignorable=True)
        metadata: str | None = s.string("0-7", default="", nullable="0-7")
        error_code: int = s.int16("0-7", default=0)

    class OffsetFetchResponseTopic(s.Struct):
        name: str = s.string("0-7", default="", entity="topicName")
        partitions: tuple[OffsetFetchResponse.OffsetFetchResponsePartition, ...] = s.array(
            "OffsetFetchResponsePartition", "0-7", default=()
        )

    class OffsetFetchResponsePartitions(s.Struct):
        partition_index: int = s.int32("8+", default=0)
        committed_offset: int = s.int64("8+", default=0)
        committed_leader_epoch: int = s.int32("8+", default=-1, ignorable=True)
        metadata: str | None = s.string("8+", default="", nullable="8+")
        error_code: int = s.int16("8+", default=0)

    class OffsetFetchResponseTopics(s.Struct):
        name: str = s.string("8-9", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("10+", default=ZERO_UUID, ignorable=True)
        partitions: tuple[OffsetFetchResponse.OffsetFetchResponsePartitions, ...] = s.array(
            "OffsetFetchResponsePartitions", "8+", default=()
        )

    class OffsetFetchResponseGroup(s.Struct):
        group_id: str = s.string("8+", default="", entity="groupId")
        topics: tuple[OffsetFetchResponse.OffsetFetchResponseTopics, ...] = s.array(
            "OffsetFetchResponseTopics", "8+", default=()
        )
        error_code: int = s.int16("8+", default=0)

    throttle_time_ms: int = s.int32("3+", default=0, ignorable=True)
    topics: tuple[OffsetFetchResponseTopic, ...] = s.array(
        "OffsetFetchResponseTopic", "0-7", default=()
    )
    error_code: int = s.int16("2-7", default=0, ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = s.array(
        "OffsetFetchResponseGroup", "8+", default=()
    )


API = api(
    OffsetFetchRequest,
    OffsetFetchResponse,
    kafka_3_9="0-9",
    kafka_4_3="1-10",
    error=ErrorShape(
        {
            "topics": Each(
                ("topics",),
                inside={
                    "partitions": partition_indexes(
                        "partition_indexes", values={"committed_offset": -1}
                    )
                },
                versions="0-1",
            ),
            "groups": Each(("groups",)),
        }
    ),
)
