"""AddPartitionsToTxn (24): a transaction takes in partitions, or a broker verifies them.

Versions:  0-5. 2: PRODUCER_FENCED for INVALID_PRODUCER_EPOCH (KIP-588). 4: brokers' requests, with
           several transactions, which verify or add on behalf of a producer (KIP-890); clients have
           0-3. 5: TRANSACTION_ABORTABLE.
Source:    KafkaApis.handleAddPartitionsToTxnRequest, AddPartitionsToTxnResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from minicluster.coordinator.transaction.requests.add_partitions import (
    add_partitions_to_transaction,
    verify_partitions_in_transaction,
)
from minicluster.coordinator.transaction.state.coordinator_state import CoordinatorState
from minicluster.coordinator.transaction.state.transaction_metadata import (
    TopicPartition,
    by_topic,
)
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_PRODUCER_FENCED_FROM = 2
_BROKERS_FROM = 4
_EPOCH_BUMP_LEVEL = 2  # of transaction.version: brokers add for clients that have it

Request = AddPartitionsToTxnRequest
Response = AddPartitionsToTxnResponse
Transaction = Request.AddPartitionsToTxnTransaction
Topic = Request.AddPartitionsToTxnTopic
TopicResults = tuple[Response.AddPartitionsToTxnTopicResult, ...]


def handle_add_partitions_to_txn(
    state: CoordinatorState, token: Any, request: Request, version: int, now_ms: int
) -> None:
    """Add or verify the partitions of each transaction; the response waits for all of them.

    The last result sends the response, so a request without transactions never gets one.

    Errors:  by partition UNKNOWN_TOPIC_OR_PARTITION, and OPERATION_NOT_ATTEMPTED for the others of
             the same transaction; those of ``add_partitions``.
    """
    transactions = request.transactions if version >= _BROKERS_FROM else (_of_client(request),)
    results: list[Response.AddPartitionsToTxnResult] = []

    def add_result(transaction: Transaction, topics: TopicResults) -> None:
        results.append(
            Response.AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=topics
            )
        )
        if len(results) == len(transactions):
            state.respond(token, _response(results, version))

    # Of a transactional id that comes twice, the last topics count for both.
    topics = {transaction.transactional_id: transaction.topics for transaction in transactions}
    first = {t.transactional_id: t.topics for t in reversed(transactions)}
    for transaction in transactions:
        transactional_id = transaction.transactional_id
        _add_or_verify(
            state,
            replace(transaction, topics=topics[transactional_id]),
            first[transactional_id],
            version,
            partial(add_result, transaction),
            now_ms,
        )


def _of_client(request: Request) -> Transaction:
    """The one transaction of a client's request."""
    return Transaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _response(results: Sequence[Response.AddPartitionsToTxnResult], version: int) -> Response:
    if version >= _BROKERS_FROM:
        return Response(results_by_transaction=tuple(results))
    return Response(results_by_topic_v3_and_below=results[0].topic_results)


def _add_or_verify(
    state: CoordinatorState,
    transaction: Transaction,
    shown: Sequence[Topic],
    version: int,
    add_result: Callable[[TopicResults], None],
    now_ms: int,
) -> None:
    partitions = [(t.name, index) for t in transaction.topics for index in t.partitions]
    unknown = [p for p in partitions if not _exists(state, p)]
    producer = transaction.producer_id, transaction.producer_epoch
    if unknown:
        missing, rest = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
        add_result(_by_partition({p: missing if p in unknown else rest for p in partitions}))
    elif transaction.verify_only:
        errors = verify_partitions_in_transaction(
            state, transaction.transactional_id, producer, partitions
        )
        add_result(_by_partition(errors))
    else:

        def done(error: ErrorCode) -> None:
            if error == ErrorCode.PRODUCER_FENCED and version < _PRODUCER_FENCED_FROM:
                error = ErrorCode.INVALID_PRODUCER_EPOCH
            add_result(_with_one_error(shown, error))

        add_partitions_to_transaction(
            state,
            transaction.transactional_id,
            producer,
            partitions,
            _EPOCH_BUMP_LEVEL if version >= _BROKERS_FROM else 0,
            done,
            now_ms,
        )


def _exists(state: CoordinatorState, partition: TopicPartition) -> bool:
    topic = state.image.topics.named(partition[0])
    return topic is not None and partition[1] in topic.partitions


def _by_partition(errors: Mapping[TopicPartition, ErrorCode]) -> TopicResults:
    """Errors of their own, in the order of Java's maps."""
    topics = by_topic(errors)
    return tuple(
        _topic_result(name, [(index, errors[name, index]) for index in topics[name]])
        for name in hash_map_order(topics, string_hash)
    )


def _with_one_error(topics: Sequence[Topic], error: ErrorCode) -> TopicResults:
    """The same error for all partitions as the request lists them, repeated ones as well."""
    return tuple(
        _topic_result(topic.name, [(index, error) for index in topic.partitions])
        for topic in topics
    )


def _topic_result(
    name: str, errors: Iterable[tuple[int, ErrorCode]]
) -> Response.AddPartitionsToTxnTopicResult:
    return Response.AddPartitionsToTxnTopicResult(
        name=name,
        results_by_partition=tuple(
            Response.AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=error
            )
            for index, error in errors
        ),
    )
