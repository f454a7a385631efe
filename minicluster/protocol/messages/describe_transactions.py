"""DescribeTransactions (api key 65): the state of transactions.

Versions: 0, all flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import described


@s.message(api_key=65, kind="request", versions="0", flexible="0+")
class DescribeTransactionsRequest(s.Message):
    transactional_ids: tuple[str, ...] = s.array(
        "string", "0+", default=(), entity="transactionalId"
    )


@s.message(api_key=65, kind="response", versions="0", flexible="0+")
class DescribeTransactionsResponse(s.Message):
    class TopicData(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class TransactionState(s.Struct):
        error_code: int = s.int16("0+", default=0)
        transactional_id: str = s.string("0+", default="", entity="transactionalId")
        transaction_state: str = s.string("0+", default="")
        transaction_timeout_ms: int = s.int32("0+", default=0)
        transaction_start_time_ms: int = s.int64("0+", default=0)
        producer_id: int = s.int64("0+", default=0, entity="producerId")
        producer_epoch: int = s.int16("0+", default=0)
        topics: tuple[DescribeTransactionsResponse.TopicData, ...] = s.array(
            "TopicData", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    transaction_states: tuple[TransactionState, ...] = s.array("TransactionState", "0+", default=())


API = api(
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    error=described("transactional_ids", "transactional_id", "transaction_states"),
)
