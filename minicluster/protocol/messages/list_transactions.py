"""ListTransactions (api key 66): the transactions that a broker coordinates.

Versions: 0-2, all flexible.
    1: duration_filter.
    2: transactional_id_pattern.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=66, kind="request", versions="0-2", flexible="0+")
class ListTransactionsRequest(s.Message):
    state_filters: tuple[str, ...] = s.array("string", "0+", default=())
    producer_id_filters: tuple[int, ...] = s.array("int64", "0+", default=(), entity="producerId")
    duration_filter: int = s.int64("1+", default=-1)
    transactional_id_pattern: str | None = s.string("2+", default=None, nullable="2+")


@s.message(api_key=66, kind="response", versions="0-2", flexible="0+")
class ListTransactionsResponse(s.Message):
    class TransactionState(s.Struct):
        transactional_id: str = s.string("0+", default="", entity="transactionalId")
        producer_id: int = s.int64("0+", default=0, entity="producerId")
        transaction_state: str = s.string("0+", default="")

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    unknown_state_filters: tuple[str, ...] = s.array("string", "0+", default=())
    transaction_states: tuple[TransactionState, ...] = s.array("TransactionState", "0+", default=())


API = api(
    ListTransactionsRequest,
    ListTransactionsResponse,
    kafka_3_9="0-1",
    kafka_4_3="0-2",
)
