"""AddPartitionsToTxn (24), AddOffsetsToTxn (25): a transaction takes in partitions.

A broker verifies by AddPartitionsToTxn as well that partitions are in a transaction (KIP-890).

Versions:  AddPartitionsToTxn 0-5. 2: PRODUCER_FENCED for INVALID_PRODUCER_EPOCH (KIP-588). 4:
           brokers' requests, with several transactions, which verify or add on behalf of a producer
           (KIP-890); clients have 0-3. 5: TRANSACTION_ABORTABLE.
           AddOffsetsToTxn 0-4. 2 and 4 as 2 and 5 above. A producer of transaction.version 2 does
           not send it: TxnOffsetCommit adds.
Source:    KafkaApis.handleAddPartitionsToTxnRequest, handleAddOffsetsToTxnRequest;
           TransactionCoordinator.handleAddPartitionsToTransaction,
           handleVerifyPartitionsInTransaction; AddPartitionsToTxnResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.coordinator_state import TransactionCoordinatorState
from minicluster.coordinator.transaction.transaction import (
    PREPARED,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
    by_topic,
)
from minicluster.java_order import hash_map_order, string_hash
from minicluster.metadata.image.topics import TopicsImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.values import replace

Producer = tuple[int, int]
"""A producer id and an epoch."""


def add_partitions_to_transaction(
    state: TransactionCoordinatorState,
    transactional_id: str,
    producer: Producer,
    partitions: Sequence[TopicPartition],
    client_transaction_version: int,
    done: Callable[[ErrorCode], None],
    now_ms: int,
) -> None:
    """Add partitions, which begins a transaction; partitions that are in it need no record.

    A pending transition comes before all other checks, but in 3.9: the producer may have the id
    already that this transition is to give it.

    Errors:  by ``done``: INVALID_REQUEST, CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING,
             PRODUCER_FENCED, and those of the log.
    """
    try:
        if not transactional_id:
            raise OperationError(ErrorCode.INVALID_REQUEST)
        shard, transaction = state.transaction_of(transactional_id)
        current = transaction.metadata
        is_pending = transaction.pending_state is not None
        if is_pending and state.rules.pending_transition_comes_first:
            raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
        _require_producer(current, producer)
        if is_pending:
            raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    except OperationError as rejection:
        done(rejection.error)
        return
    if current.state is TransactionState.ONGOING and set(partitions) <= set(current.partitions):
        done(ErrorCode.NONE)
        return
    new = transaction.prepare_add_partitions(partitions, now_ms, client_transaction_version)
    state.append(shard, transaction, new, lambda error, _: done(error), now_ms)


def verify_partitions_in_transaction(
    state: TransactionCoordinatorState,
    transactional_id: str,
    producer: Producer,
    partitions: Sequence[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """The error of each partition: TRANSACTION_ABORTABLE for one that is not in the transaction.

    A pending transition is not an obstacle: the append to the partition checks the producer again.
    """
    try:
        if not transactional_id:
            raise OperationError(ErrorCode.INVALID_REQUEST)
        _, transaction = state.transaction_of(transactional_id)
        current = transaction.metadata
        _require_producer(current, producer)
    except OperationError as rejection:
        return dict.fromkeys(partitions, rejection.error)
    added = set(current.partitions)
    abortable = ErrorCode.TRANSACTION_ABORTABLE
    return {p: ErrorCode.NONE if p in added else abortable for p in partitions}


def _require_producer(current: TransactionMetadata, producer: Producer) -> None:
    """Reject a producer other than the current one, and any while markers are written."""
    if current.producer_id != producer[0]:
        raise OperationError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != producer[1]:
        raise OperationError(ErrorCode.PRODUCER_FENCED)
    if current.state in PREPARED:
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)


# --- AddPartitionsToTxn ---------------------------------------------------------------------------

_PRODUCER_FENCED_FROM = 2
_BROKERS_FROM = 4
_EPOCH_BUMP_LEVEL = 2  # of transaction.version: brokers add for clients that have it

Request = AddPartitionsToTxnRequest
Response = AddPartitionsToTxnResponse
OneTransaction = Request.AddPartitionsToTxnTransaction
Topic = Request.AddPartitionsToTxnTopic
TopicResults = tuple[Response.AddPartitionsToTxnTopicResult, ...]


def handle_add_partitions_to_txn(
    state: TransactionCoordinatorState, token: Any, request: Request, version: int, now_ms: int
) -> None:
    """Add or verify the partitions of each transaction; the response waits for all of them.

    The last result sends the response, so a request without transactions never gets one.

    Errors:  by partition UNKNOWN_TOPIC_OR_PARTITION, and OPERATION_NOT_ATTEMPTED for the others of
             the same transaction; those of ``add_partitions``.
    """
    transactions = request.transactions if version >= _BROKERS_FROM else (_of_client(request),)
    results: list[Response.AddPartitionsToTxnResult] = []

    def add_result(transaction: OneTransaction, topics: TopicResults) -> None:
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


def _of_client(request: Request) -> OneTransaction:
    """The one transaction of a client's request."""
    return OneTransaction(
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
    state: TransactionCoordinatorState,
    transaction: OneTransaction,
    shown: Sequence[Topic],
    version: int,
    add_result: Callable[[TopicResults], None],
    now_ms: int,
) -> None:
    partitions = [(t.name, index) for t in transaction.topics for index in t.partitions]
    unknown = {p for p in partitions if not _exists(state.image.topics, p)}
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
            # All partitions have it as the request lists them, repeated ones as well.
            each = [(topic.name, topic.partitions) for topic in shown]
            add_result(_results(each, lambda *_: error))

        add_partitions_to_transaction(
            state,
            transaction.transactional_id,
            producer,
            partitions,
            _EPOCH_BUMP_LEVEL if version >= _BROKERS_FROM else 0,
            done,
            now_ms,
        )


def _exists(topics: TopicsImage, partition: TopicPartition) -> bool:
    topic = topics.named(partition[0])
    return topic is not None and partition[1] in topic.partitions


def _by_partition(errors: Mapping[TopicPartition, ErrorCode]) -> TopicResults:
    """Errors of their own, in the order of Java's maps."""
    topics = by_topic(errors)
    in_order = [(name, topics[name]) for name in hash_map_order(topics, string_hash)]
    return _results(in_order, lambda name, index: errors[name, index])


def _results(
    topics: Iterable[tuple[str, Sequence[int]]], error_of: Callable[[str, int], ErrorCode]
) -> TopicResults:
    return tuple(
        Response.AddPartitionsToTxnTopicResult(
            name=name,
            results_by_partition=tuple(
                Response.AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=error_of(name, index)
                )
                for index in indexes
            ),
        )
        for name, indexes in topics
    )


# --- AddOffsetsToTxn: the partition of a group's offsets ------------------------------------------


def handle_add_offsets_to_txn(
    state: TransactionCoordinatorState,
    token: Any,
    request: AddOffsetsToTxnRequest,
    version: int,
    now_ms: int,
) -> None:
    """Add the partition of ``__consumer_offsets`` that holds the group.

    Errors:  those of ``add_partitions_to_transaction``.
    """

    def done(error: ErrorCode) -> None:
        if error == ErrorCode.PRODUCER_FENCED and version < _PRODUCER_FENCED_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        state.respond(token, AddOffsetsToTxnResponse(error_code=error))

    add_partitions_to_transaction(
        state,
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        [(GROUP_METADATA_TOPIC, state.offsets_partition_of(request.group_id))],
        0,
        done,
        now_ms,
    )
