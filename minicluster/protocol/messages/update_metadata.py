"""UpdateMetadata (api key 6): a ZooKeeper controller sends brokers the metadata of the cluster.

Gone in Kafka 4.0.

Versions: 0-8, flexible from 6.
    1: endpoints, port, host, security_protocol; without v0_host, v0_port.
    2: rack.
    3: listener.
    4: offline_replicas.
    5: broker_epoch, topic_states, partition_states; without ungrouped_partition_states.
    6: flexible.
    7: topic_id.
    8: is_kraft_controller, type.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=6, kind="request", versions="0-8", flexible="6+")
class UpdateMetadataRequest(s.Message):
    class UpdateMetadataPartitionState(s.Struct):
        topic_name: str = s.string("0-4", default="", ignorable=True, entity="topicName")
        partition_index: int = s.int32("0+", default=0)
        controller_epoch: int = s.int32("0+", default=0)
        leader: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)
        isr: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        zk_version: int = s.int32("0+", default=0)
        replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        offline_replicas: tuple[int, ...] = s.array(
            "int32", "4+", default=(), ignorable=True, entity="brokerId"
        )

    class UpdateMetadataTopicState(s.Struct):
        topic_name: str = s.string("5+", default="", entity="topicName")
        topic_id: UUID = s.uuid("7+", default=ZERO_UUID, ignorable=True)
        partition_states: tuple[UpdateMetadataRequest.UpdateMetadataPartitionState, ...] = s.array(
            "UpdateMetadataPartitionState", "5+", default=()
        )

    class UpdateMetadataEndpoint(s.Struct):
        port: int = s.int32("1+", default=0)
        host: str = s.string("1+", default="")
        listener: str = s.string("3+", default="", ignorable=True)
        security_protocol: int = s.int16("1+", default=0)

    class UpdateMetadataBroker(s.Struct):
        id: int = s.int32("0+", default=0, entity="brokerId")
        v0_host: str = s.string("0", default="", ignorable=True)
        v0_port: int = s.int32("0", default=0, ignorable=True)
        endpoints: tuple[UpdateMetadataRequest.UpdateMetadataEndpoint, ...] = s.array(
            "UpdateMetadataEndpoint", "1+", default=(), ignorable=True
        )
        rack: str | None = s.string("2+", default="", nullable="0+", ignorable=True)

    controller_id: int = s.int32("0+", default=0, entity="brokerId")
    is_kraft_controller: bool = s.boolean("8+", default=False, json="isKRaftController")
    type: int = s.int8("8+", default=0, tag=0)
    controller_epoch: int = s.int32("0+", default=0)
    broker_epoch: int = s.int64("5+", default=-1, ignorable=True)
    ungrouped_partition_states: tuple[UpdateMetadataPartitionState, ...] = s.array(
        "UpdateMetadataPartitionState", "0-4", default=()
    )
    topic_states: tuple[UpdateMetadataTopicState, ...] = s.array(
        "UpdateMetadataTopicState", "5+", default=()
    )
    live_brokers: tuple[UpdateMetadataBroker, ...] = s.array(
        "UpdateMetadataBroker", "0+", default=()
    )


@s.message(api_key=6, kind="response", versions="0-8", flexible="6+")
class UpdateMetadataResponse(s.Message):
    error_code: int = s.int16("0+", default=0)


API = api(
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    kafka_3_9="0-8",
    kafka_4_3="none",
)
