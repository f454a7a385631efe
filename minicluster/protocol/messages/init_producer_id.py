"""InitProducerId (api key 22): an id and an epoch for a producer.

Versions: 0-6, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
    3: producer_id, producer_epoch.
    4: PRODUCER_FENCED is a possible error (KIP-588).
    5: TRANSACTION_ABORTABLE is a possible error (KIP-890).
    6: enable2_pc, keep_prepared_txn; response ongoing_txn_producer_id,
        ongoing_txn_producer_epoch.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import ErrorShape


@s.message(api_key=22, kind="request", versions="0-6", flexible="2+")
class InitProducerIdRequest(s.Message):
    transactional_id: str | None = s.string(
        "0+", default="", nullable="0+", entity="transactionalId"
    )
    transaction_timeout_ms: int = s.int32("0+", default=0)
    producer_id: int = s.int64("3+", default=-1, entity="producerId")
    producer_epoch: int = s.int16("3+", default=-1)
    enable2_pc: bool = s.boolean("6+", default=False)
    keep_prepared_txn: bool = s.boolean("6+", default=False)


@s.message(api_key=22, kind="response", versions="0-6", flexible="2+")
class InitProducerIdResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0, ignorable=True)
    error_code: int = s.int16("0+", default=0)
    producer_id: int = s.int64("0+", default=-1, entity="producerId")
    producer_epoch: int = s.int16("0+", default=0)
    ongoing_txn_producer_id: int = s.int64("6+", default=-1, entity="producerId")
    ongoing_txn_producer_epoch: int = s.int16("6+", default=-1)


API = api(
    InitProducerIdRequest,
    InitProducerIdResponse,
    kafka_3_9="0-5",
    # 4.3 has version 6 (KIP-939), which is unstable: a broker does not advertise it.
    kafka_4_3="0-5",
    error=ErrorShape(values={"producer_id": -1, "producer_epoch": -1}),
)
