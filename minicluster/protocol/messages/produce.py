"""Produce (api key 0): a client writes record batches to partitions.

KIP-951 (v10) adds current leaders to the response, KIP-516 (v13) names topics by id.

Versions: 0-13, flexible from 9.
    1: response throttle_time_ms.
    2: response log_append_time_ms.
    3: transactional_id.
    4: KAFKA_STORAGE_ERROR is a possible error.
    5: response log_start_offset.
    6: on a quota violation the broker responds before it throttles (KIP-219).
    7: zstd (KIP-110).
    8: response record_errors, batch_index, batch_index_error_message, error_message.
    9: flexible.
    10: response current_leader, leader_id, leader_epoch, node_endpoints, ….
    11: TRANSACTION_ABORTABLE is a possible error (KIP-890).
    12: adds partitions to the transaction itself (KIP-890).
    13: topic_id; without name; response topic_id; response without name.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=0, kind="request", versions="0-13", flexible="9+")
class ProduceRequest(s.Message):
    class PartitionProduceData(s.Struct):
        index: int = s.int32("0+", default=0)
        records: Any = s.records("0+", default=None, nullable="0+")

    class TopicProduceData(s.Struct):
        name: str = s.string("0-12", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("13+", default=ZERO_UUID, ignorable=True)
        partition_data: tuple[ProduceRequest.PartitionProduceData, ...] = s.array(
            "PartitionProduceData", "0+", default=()
        )

    transactional_id: str | None = s.string(
        "3+", default=None, nullable="3+", entity="transactionalId"
    )
    acks: int = s.int16("0+", default=0)
    timeout_ms: int = s.int32("0+", default=0)
    topic_data: tuple[TopicProduceData, ...] = s.array("TopicProduceData", "0+", default=())


@s.message(api_key=0, kind="response", versions="0-13", flexible="9+")
class ProduceResponse(s.Message):
    class BatchIndexAndErrorMessage(s.Struct):
        batch_index: int = s.int32("8+", default=0)
        batch_index_error_message: str | None = s.string("8+", default=None, nullable="8+")

    class LeaderIdAndEpoch(s.Struct):
        leader_id: int = s.int32("10+", default=-1, entity="brokerId")
        leader_epoch: int = s.int32("10+", default=-1)

    class PartitionProduceResponse(s.Struct):
        index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        base_offset: int = s.int64("0+", default=0)
        log_append_time_ms: int = s.int64("2+", default=-1, ignorable=True)
        log_start_offset: int = s.int64("5+", default=-1, ignorable=True)
        record_errors: tuple[ProduceResponse.BatchIndexAndErrorMessage, ...] = s.array(
            "BatchIndexAndErrorMessage", "8+", default=(), ignorable=True
        )
        error_message: str | None = s.string("8+", default=None, nullable="8+", ignorable=True)
        current_leader: ProduceResponse.LeaderIdAndEpoch = s.nested(
            "LeaderIdAndEpoch", "10+", tag=0
        )

    class TopicProduceResponse(s.Struct):
        name: str = s.string("0-12", default="", ignorable=True, entity="topicName")
        topic_id: UUID = s.uuid("13+", default=ZERO_UUID, ignorable=True)
        partition_responses: tuple[ProduceResponse.PartitionProduceResponse, ...] = s.array(
            "PartitionProduceResponse", "0+", default=()
        )

    class NodeEndpoint(s.Struct):
        node_id: int = s.int32("10+", default=0, entity="brokerId")
        host: str = s.string("10+", default="")
        port: int = s.int32("10+", default=0)
        rack: str | None = s.string("10+", default=None, nullable="10+")

    responses: tuple[TopicProduceResponse, ...] = s.array("TopicProduceResponse", "0+", default=())
    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    node_endpoints: tuple[NodeEndpoint, ...] = s.array("NodeEndpoint", "10+", default=(), tag=0)


API = api(
    ProduceRequest,
    ProduceResponse,
    kafka_3_9="0-11",
    # Advertised from 0 on, handled from 3 on: ``enabled_versions``.
    kafka_4_3="0-13",
    error=ErrorShape(
        {
            "responses": Each(
                ("topic_data",),
                inside={
                    "partition_responses": Each(("partition_data",), values={"base_offset": -1})
                },
                filled=True,
            )
        }
    ),
)
