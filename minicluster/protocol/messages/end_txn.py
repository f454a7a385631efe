"""EndTxn (api key 26): a producer commits or aborts its transaction.

Versions: 0-5, flexible from 3.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: PRODUCER_FENCED is a possible error (KIP-588).
    3: flexible.
    4: TRANSACTION_ABORTABLE is a possible error (KIP-890).
    5: response producer_id, producer_epoch.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=26, kind="request", versions="0-5", flexible="3+")
class EndTxnRequest(s.Message):
    transactional_id: str = s.string("0+", default="", entity="transactionalId")
    producer_id: int = s.int64("0+", default=0, entity="producerId")
    producer_epoch: int = s.int16("0+", default=0)
    committed: bool = s.boolean("0+", default=False)


@s.message(api_key=26, kind="response", versions="0-5", flexible="3+")
class EndTxnResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    producer_id: int = s.int64("5+", default=-1, ignorable=True, entity="producerId")
    producer_epoch: int = s.int16("5+", default=-1, ignorable=True)


API = api(
    EndTxnRequest,
    EndTxnResponse,
    kafka_3_9="0-4",
    kafka_4_3="0-5",
)
