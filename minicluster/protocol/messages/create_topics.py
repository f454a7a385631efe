"""CreateTopics (api key 19): a client creates topics at the controller.

Versions: 0-7, flexible from 5.
    1: validate_only; response error_message.
    2: response throttle_time_ms.
    3: on a quota violation the broker responds before it throttles (KIP-219).
    4: -1 for the broker's default of partitions and replicas (KIP-464).
    5: flexible; response topic_config_error_code, num_partitions, replication_factor, configs,
        ….
    6: THROTTLING_QUOTA_EXCEEDED is a possible error (KIP-599).
    7: response topic_id.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=19, kind="request", versions="0-7", flexible="5+")
class CreateTopicsRequest(s.Message):
    class CreatableReplicaAssignment(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        broker_ids: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")

    class CreatableTopicConfig(s.Struct):
        name: str = s.string("0+", default="")
        value: str | None = s.string("0+", default="", nullable="0+")

    class CreatableTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        num_partitions: int = s.int32("0+", default=0)
        replication_factor: int = s.int16("0+", default=0)
        assignments: tuple[CreateTopicsRequest.CreatableReplicaAssignment, ...] = s.array(
            "CreatableReplicaAssignment", "0+", default=()
        )
        configs: tuple[CreateTopicsRequest.CreatableTopicConfig, ...] = s.array(
            "CreatableTopicConfig", "0+", default=()
        )

    topics: tuple[CreatableTopic, ...] = s.array("CreatableTopic", "0+", default=())
    timeout_ms: int = s.int32("0+", default=60000)
    validate_only: bool = s.boolean("1+", default=False)


@s.message(api_key=19, kind="response", versions="0-7", flexible="5+")
class CreateTopicsResponse(s.Message):
    class CreatableTopicConfigs(s.Struct):
        name: str = s.string("5+", default="")
        value: str | None = s.string("5+", default="", nullable="5+")
        read_only: bool = s.boolean("5+", default=False)
        config_source: int = s.int8("5+", default=-1, ignorable=True)
        is_sensitive: bool = s.boolean("5+", default=False)

    class CreatableTopicResult(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        topic_id: UUID = s.uuid("7+", default=ZERO_UUID, ignorable=True)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("1+", default="", nullable="0+", ignorable=True)
        topic_config_error_code: int = s.int16("5+", default=0, tag=0, ignorable=True)
        num_partitions: int = s.int32("5+", default=-1, ignorable=True)
        replication_factor: int = s.int16("5+", default=-1, ignorable=True)
        configs: tuple[CreateTopicsResponse.CreatableTopicConfigs, ...] | None = s.array(
            "CreatableTopicConfigs", "5+", default=(), nullable="5+", ignorable=True
        )

    throttle_time_ms: int = s.int32("2+", default=0, ignorable=True)
    topics: tuple[CreatableTopicResult, ...] = s.array("CreatableTopicResult", "0+", default=())


API = api(
    CreateTopicsRequest,
    CreateTopicsResponse,
    kafka_3_9="0-7",
    kafka_4_3="2-7",
    forwardable=True,
    error=ErrorShape({"topics": Each(("topics",))}),
)
