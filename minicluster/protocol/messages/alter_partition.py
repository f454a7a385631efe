"""AlterPartition (api key 56).

A change of the ISR or the recovery state, from a leader to the controller.

KIP-497; KIP-704 (v1) adds the leader recovery state, KIP-841 (v2) names topics by id, KIP-903
(v3) carries broker epochs in the ISR.

Versions: 0-3, all flexible.
    1: leader_recovery_state; response leader_recovery_state.
    2: topic_id; without topic_name; response topic_id; response without topic_name.
    3: new_isr_with_epochs; without new_isr.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=56, kind="request", versions="0-3", flexible="0+")
class AlterPartitionRequest(s.Message):
    class BrokerState(s.Struct):
        broker_id: int = s.int32("3+", default=0, entity="brokerId")
        broker_epoch: int = s.int64("3+", default=-1)

    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)
        new_isr: tuple[int, ...] = s.array("int32", "0-2", default=(), entity="brokerId")
        new_isr_with_epochs: tuple[AlterPartitionRequest.BrokerState, ...] = s.array(
            "BrokerState", "3+", default=()
        )
        leader_recovery_state: int = s.int8("1+", default=0)
        partition_epoch: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic_name: str = s.string("0-1", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("2+", default=ZERO_UUID, ignorable=True)
        partitions: tuple[AlterPartitionRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=-1)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())


@s.message(api_key=56, kind="response", versions="0-3", flexible="0+")
class AlterPartitionResponse(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)
        isr: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        leader_recovery_state: int = s.int8("1+", default=0, ignorable=True)
        partition_epoch: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic_name: str = s.string("0-1", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("2+", default=ZERO_UUID, ignorable=True)
        partitions: tuple[AlterPartitionResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())


API = api(
    AlterPartitionRequest,
    AlterPartitionResponse,
    kafka_3_9="0-3",
    kafka_4_3="2-3",
)
