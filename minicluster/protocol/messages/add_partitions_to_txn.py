"""AddPartitionsToTxn (api key 24): a transaction takes in partitions, or a broker verifies them.

Versions: 0-5, flexible from 3.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: PRODUCER_FENCED is a possible error (KIP-588).
    3: flexible.
    4: transactions, transactional_id, producer_id, producer_epoch, …; without
        v3_and_below_transactional_id, v3_and_below_producer_id, v3_and_below_producer_epoch,
        v3_and_below_topics; response error_code, results_by_transaction, transactional_id,
        topic_results; response without results_by_topic_v3_and_below.
    5: TRANSACTION_ABORTABLE is a possible error (KIP-890).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, partition_indexes


@s.message(api_key=24, kind="request", versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(s.Message):
    class AddPartitionsToTxnTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class AddPartitionsToTxnTransaction(s.Struct):
        transactional_id: str = s.string("4+", default="", entity="transactionalId")
        producer_id: int = s.int64("4+", default=0, entity="producerId")
        producer_epoch: int = s.int16("4+", default=0)
        verify_only: bool = s.boolean("4+", default=False)
        topics: tuple[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic, ...] = s.array(
            "AddPartitionsToTxnTopic", "4+", default=()
        )

    transactions: tuple[AddPartitionsToTxnTransaction, ...] = s.array(
        "AddPartitionsToTxnTransaction", "4+", default=()
    )
    v3_and_below_transactional_id: str = s.string("0-3", default="", entity="transactionalId")
    v3_and_below_producer_id: int = s.int64("0-3", default=0, entity="producerId")
    v3_and_below_producer_epoch: int = s.int16("0-3", default=0)
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = s.array(
        "AddPartitionsToTxnTopic", "0-3", default=()
    )


@s.message(api_key=24, kind="response", versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(s.Message):
    class AddPartitionsToTxnPartitionResult(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        partition_error_code: int = s.int16("0+", default=0)

    class AddPartitionsToTxnTopicResult(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        results_by_partition: tuple[
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult, ...
        ] = s.array("AddPartitionsToTxnPartitionResult", "0+", default=())

    class AddPartitionsToTxnResult(s.Struct):
        transactional_id: str = s.string("4+", default="", entity="transactionalId")
        topic_results: tuple[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult, ...] = (
            s.array("AddPartitionsToTxnTopicResult", "4+", default=())
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("4+", default=0, ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = s.array(
        "AddPartitionsToTxnResult", "4+", default=()
    )
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = s.array(
        "AddPartitionsToTxnTopicResult", "0-3", default=()
    )


API = api(
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    kafka_3_9="0-5",
    kafka_4_3="0-5",
    error=ErrorShape(
        {
            "results_by_topic_v3_and_below": Each(
                ("v3_and_below_topics",), inside={"results_by_partition": partition_indexes()}
            )
        }
    ),
)
