"""StreamsGroupHeartbeat (api key 88).

A member of a streams group keeps its session and receives its tasks.

KIP-1071.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import NO_TEXT


@s.message(api_key=88, kind="request", versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest(s.Message):
    class KeyValue(s.Struct):
        key: str = s.string("0+", default="")
        value: str = s.string("0+", default="")

    class TopicInfo(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: int = s.int32("0+", default=0)
        replication_factor: int = s.int16("0+", default=0)
        topic_configs: tuple[StreamsGroupHeartbeatRequest.KeyValue, ...] = s.array(
            "KeyValue", "0+", default=()
        )

    class CopartitionGroup(s.Struct):
        source_topics: tuple[int, ...] = s.array("int16", "0+", default=())
        source_topic_regex: tuple[int, ...] = s.array("int16", "0+", default=())
        repartition_source_topics: tuple[int, ...] = s.array("int16", "0+", default=())

    class Subtopology(s.Struct):
        subtopology_id: str = s.string("0+", default="")
        source_topics: tuple[str, ...] = s.array("string", "0+", default=(), entity="topicName")
        source_topic_regex: tuple[str, ...] = s.array("string", "0+", default=())
        state_changelog_topics: tuple[StreamsGroupHeartbeatRequest.TopicInfo, ...] = s.array(
            "TopicInfo", "0+", default=()
        )
        repartition_sink_topics: tuple[str, ...] = s.array(
            "string", "0+", default=(), entity="topicName"
        )
        repartition_source_topics: tuple[StreamsGroupHeartbeatRequest.TopicInfo, ...] = s.array(
            "TopicInfo", "0+", default=()
        )
        copartition_groups: tuple[StreamsGroupHeartbeatRequest.CopartitionGroup, ...] = s.array(
            "CopartitionGroup", "0+", default=()
        )

    class Topology(s.Struct):
        epoch: int = s.int32("0+", default=0)
        subtopologies: tuple[StreamsGroupHeartbeatRequest.Subtopology, ...] = s.array(
            "Subtopology", "0+", default=()
        )

    class TaskIds(s.Struct):
        subtopology_id: str = s.string("0+", default="")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class Endpoint(s.Struct):
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)

    class TaskOffset(s.Struct):
        subtopology_id: str = s.string("0+", default="")
        partition: int = s.int32("0+", default=0)
        offset: int = s.int64("0+", default=0)

    group_id: str = s.string("0+", default="", entity="groupId")
    member_id: str = s.string("0+", default="")
    member_epoch: int = s.int32("0+", default=0)
    endpoint_information_epoch: int = s.int32("0+", default=0)
    instance_id: str | None = s.string("0+", default=None, nullable="0+")
    rack_id: str | None = s.string("0+", default=None, nullable="0+")
    rebalance_timeout_ms: int = s.int32("0+", default=-1)
    topology: Topology | None = s.nested("Topology", "0+", default=None, nullable="0+")
    active_tasks: tuple[TaskIds, ...] | None = s.array("TaskIds", "0+", default=None, nullable="0+")
    standby_tasks: tuple[TaskIds, ...] | None = s.array(
        "TaskIds", "0+", default=None, nullable="0+"
    )
    warmup_tasks: tuple[TaskIds, ...] | None = s.array("TaskIds", "0+", default=None, nullable="0+")
    process_id: str | None = s.string("0+", default=None, nullable="0+")
    user_endpoint: Endpoint | None = s.nested("Endpoint", "0+", default=None, nullable="0+")
    client_tags: tuple[KeyValue, ...] | None = s.array(
        "KeyValue", "0+", default=None, nullable="0+"
    )
    task_offsets: tuple[TaskOffset, ...] | None = s.array(
        "TaskOffset", "0+", default=None, nullable="0+"
    )
    task_end_offsets: tuple[TaskOffset, ...] | None = s.array(
        "TaskOffset", "0+", default=None, nullable="0+"
    )
    shutdown_application: bool = s.boolean("0+", default=False)


@s.message(api_key=88, kind="response", versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse(s.Message):
    class Status(s.Struct):
        status_code: int = s.int8("0+", default=0)
        status_detail: str = s.string("0+", default="")

    class TaskIds(s.Struct):
        subtopology_id: str = s.string("0+", default="")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class Endpoint(s.Struct):
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)

    class TopicPartition(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class EndpointToPartitions(s.Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = s.nested("Endpoint", "0+")
        active_partitions: tuple[StreamsGroupHeartbeatResponse.TopicPartition, ...] = s.array(
            "TopicPartition", "0+", default=()
        )
        standby_partitions: tuple[StreamsGroupHeartbeatResponse.TopicPartition, ...] = s.array(
            "TopicPartition", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default=None, nullable="0+")
    member_id: str = s.string("0+", default="")
    member_epoch: int = s.int32("0+", default=0)
    heartbeat_interval_ms: int = s.int32("0+", default=0)
    acceptable_recovery_lag: int = s.int32("0+", default=0)
    task_offset_interval_ms: int = s.int32("0+", default=0)
    status: tuple[Status, ...] | None = s.array("Status", "0+", default=(), nullable="0+")
    active_tasks: tuple[TaskIds, ...] | None = s.array("TaskIds", "0+", default=None, nullable="0+")
    standby_tasks: tuple[TaskIds, ...] | None = s.array(
        "TaskIds", "0+", default=None, nullable="0+"
    )
    warmup_tasks: tuple[TaskIds, ...] | None = s.array("TaskIds", "0+", default=None, nullable="0+")
    endpoint_information_epoch: int = s.int32("0+", default=0)
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = s.array(
        "EndpointToPartitions", "0+", default=None, nullable="0+"
    )


API = api(
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    kafka_3_9="none",
    kafka_4_3="0",
    error=NO_TEXT,
)
