"""StreamsGroupDescribe (api key 89): the state and the members of streams groups.

KIP-1071.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import described


@s.message(api_key=89, kind="request", versions="0", flexible="0+")
class StreamsGroupDescribeRequest(s.Message):
    group_ids: tuple[str, ...] = s.array("string", "0+", default=(), entity="groupId")
    include_authorized_operations: bool = s.boolean("0+", default=False)


@s.message(api_key=89, kind="response", versions="0", flexible="0+")
class StreamsGroupDescribeResponse(s.Message):
    class KeyValue(s.Struct):
        key: str = s.string("0+", default="")
        value: str = s.string("0+", default="")

    class TopicInfo(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: int = s.int32("0+", default=0)
        replication_factor: int = s.int16("0+", default=0)
        topic_configs: tuple[StreamsGroupDescribeResponse.KeyValue, ...] = s.array(
            "KeyValue", "0+", default=()
        )

    class Subtopology(s.Struct):
        subtopology_id: str = s.string("0+", default="")
        source_topics: tuple[str, ...] = s.array("string", "0+", default=(), entity="topicName")
        repartition_sink_topics: tuple[str, ...] = s.array(
            "string", "0+", default=(), entity="topicName"
        )
        state_changelog_topics: tuple[StreamsGroupDescribeResponse.TopicInfo, ...] = s.array(
            "TopicInfo", "0+", default=()
        )
        repartition_source_topics: tuple[StreamsGroupDescribeResponse.TopicInfo, ...] = s.array(
            "TopicInfo", "0+", default=()
        )

    class Topology(s.Struct):
        epoch: int = s.int32("0+", default=0)
        subtopologies: tuple[StreamsGroupDescribeResponse.Subtopology, ...] | None = s.array(
            "Subtopology", "0+", default=None, nullable="0+"
        )

    class Endpoint(s.Struct):
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)

    class TaskOffset(s.Struct):
        subtopology_id: str = s.string("0+", default="")
        partition: int = s.int32("0+", default=0)
        offset: int = s.int64("0+", default=0)

    class TaskIds(s.Struct):
        subtopology_id: str = s.string("0+", default="")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class Assignment(s.Struct):
        active_tasks: tuple[StreamsGroupDescribeResponse.TaskIds, ...] = s.array(
            "TaskIds", "0+", default=()
        )
        standby_tasks: tuple[StreamsGroupDescribeResponse.TaskIds, ...] = s.array(
            "TaskIds", "0+", default=()
        )
        warmup_tasks: tuple[StreamsGroupDescribeResponse.TaskIds, ...] = s.array(
            "TaskIds", "0+", default=()
        )

    class Member(s.Struct):
        member_id: str = s.string("0+", default="")
        member_epoch: int = s.int32("0+", default=0)
        instance_id: str | None = s.string("0+", default=None, nullable="0+")
        rack_id: str | None = s.string("0+", default=None, nullable="0+")
        client_id: str = s.string("0+", default="")
        client_host: str = s.string("0+", default="")
        topology_epoch: int = s.int32("0+", default=0)
        process_id: str = s.string("0+", default="")
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = s.nested(
            "Endpoint", "0+", default=None, nullable="0+"
        )
        client_tags: tuple[StreamsGroupDescribeResponse.KeyValue, ...] = s.array(
            "KeyValue", "0+", default=()
        )
        task_offsets: tuple[StreamsGroupDescribeResponse.TaskOffset, ...] = s.array(
            "TaskOffset", "0+", default=()
        )
        task_end_offsets: tuple[StreamsGroupDescribeResponse.TaskOffset, ...] = s.array(
            "TaskOffset", "0+", default=()
        )
        assignment: StreamsGroupDescribeResponse.Assignment = s.nested("Assignment", "0+")
        target_assignment: StreamsGroupDescribeResponse.Assignment = s.nested("Assignment", "0+")
        is_classic: bool = s.boolean("0+", default=False)

    class DescribedGroup(s.Struct):
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")
        group_id: str = s.string("0+", default="", entity="groupId")
        group_state: str = s.string("0+", default="")
        group_epoch: int = s.int32("0+", default=0)
        assignment_epoch: int = s.int32("0+", default=0)
        topology: StreamsGroupDescribeResponse.Topology | None = s.nested(
            "Topology", "0+", default=None, nullable="0+"
        )
        members: tuple[StreamsGroupDescribeResponse.Member, ...] = s.array(
            "Member", "0+", default=()
        )
        authorized_operations: int = s.int32("0+", default=-2147483648)

    throttle_time_ms: int = s.int32("0+", default=0)
    groups: tuple[DescribedGroup, ...] = s.array("DescribedGroup", "0+", default=())


API = api(
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    kafka_3_9="none",
    kafka_4_3="0",
    error=described("group_ids", "group_id", "groups"),
)
