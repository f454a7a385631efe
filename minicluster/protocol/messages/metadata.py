"""Metadata (api key 3): brokers, topics and partitions, for clients.

KIP-516 (v10) adds topic ids.

Versions: 0-13, flexible from 9.
    1: topics may be null; response rack, controller_id, is_internal.
    2: response cluster_id.
    3: response throttle_time_ms.
    4: allow_auto_topic_creation.
    5: response offline_replicas.
    6: on a quota violation the broker responds before it throttles (KIP-219).
    7: response leader_epoch.
    8: include_cluster_authorized_operations, include_topic_authorized_operations; response
        topic_authorized_operations, cluster_authorized_operations.
    9: flexible.
    10: topic_id; name may be null; response topic_id.
    11: without include_cluster_authorized_operations; response without
        cluster_authorized_operations.
    12: response name may be null.
    13: fields as in version 12.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=3, kind="request", versions="0-13", flexible="9+")
class MetadataRequest(s.Message):
    class MetadataRequestTopic(s.Struct):
        topic_id: UUID = s.uuid("10+", default=ZERO_UUID, ignorable=True)
        name: str | None = s.string("0+", default="", nullable="10+", entity="topicName")

    topics: tuple[MetadataRequestTopic, ...] | None = s.array(
        "MetadataRequestTopic", "0+", default=(), nullable="1+", is_set=True
    )
    allow_auto_topic_creation: bool = s.boolean("4+", default=True)
    include_cluster_authorized_operations: bool = s.boolean("8-10", default=False)
    include_topic_authorized_operations: bool = s.boolean("8+", default=False)


@s.message(api_key=3, kind="response", versions="0-13", flexible="9+")
class MetadataResponse(s.Message):
    class MetadataResponseBroker(s.Struct):
        node_id: int = s.int32("0+", default=0, entity="brokerId")
        host: str = s.string("0+", default="")
        port: int = s.int32("0+", default=0)
        rack: str | None = s.string("1+", default=None, nullable="1+", ignorable=True)

    class MetadataResponsePartition(s.Struct):
        error_code: int = s.int16("0+", default=0)
        partition_index: int = s.int32("0+", default=0)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("7+", default=-1, ignorable=True)
        replica_nodes: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        isr_nodes: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        offline_replicas: tuple[int, ...] = s.array(
            "int32", "5+", default=(), ignorable=True, entity="brokerId"
        )

    class MetadataResponseTopic(s.Struct):
        error_code: int = s.int16("0+", default=0)
        name: str | None = s.string("0+", default="", nullable="12+", entity="topicName")
        topic_id: UUID = s.uuid("10+", default=ZERO_UUID, ignorable=True)
        is_internal: bool = s.boolean("1+", default=False, ignorable=True)
        partitions: tuple[MetadataResponse.MetadataResponsePartition, ...] = s.array(
            "MetadataResponsePartition", "0+", default=()
        )
        topic_authorized_operations: int = s.int32("8+", default=-2147483648)

    throttle_time_ms: int = s.int32("3+", default=0, ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...] = s.array(
        "MetadataResponseBroker", "0+", default=()
    )
    cluster_id: str | None = s.string("2+", default=None, nullable="2+", ignorable=True)
    controller_id: int = s.int32("1+", default=-1, ignorable=True, entity="brokerId")
    topics: tuple[MetadataResponseTopic, ...] = s.array("MetadataResponseTopic", "0+", default=())
    cluster_authorized_operations: int = s.int32("8-10", default=-2147483648)
    error_code: int = s.int16("13+", default=0, ignorable=True)


API = api(
    MetadataRequest,
    MetadataResponse,
    kafka_3_9="0-12",
    kafka_4_3="0-13",
    error=ErrorShape({"topics": Each(("topics",), nulls=False)}),
)
