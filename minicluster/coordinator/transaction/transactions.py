"""Transactions as administrators see them: ListTransactions, DescribeTransactions (KIP-664)."""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.regular_expressions import compiled
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.coordinator_state import TransactionCoordinatorState
from minicluster.coordinator.transaction.transaction import (
    TransactionMetadata,
    TransactionState,
    by_topic,
)
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

# ListTransactions (66): the transactional ids that this broker coordinates.
#
# Versions:  0-2. 1: filter by duration (KIP-994). 2: filter by a pattern of ids (KIP-1152).
# Source:    KafkaApis.handleListTransactionsRequest, TransactionStateManager.listTransactionStates.

_BY_NAME = {state.state_name: state for state in TransactionState}


def handle_list_transactions(
    state: TransactionCoordinatorState,
    token: Any,
    request: ListTransactionsRequest,
    version: int,
    now_ms: int,
) -> None:
    """List what all filters let pass; a filter without values lets everything pass.

    Errors:  COORDINATOR_LOAD_IN_PROGRESS while a partition is loaded; INVALID_REGULAR_EXPRESSION.
    """
    if state.runtime.is_loading:
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        state.respond(token, ListTransactionsResponse(error_code=error))
        return
    wanted = request.transactional_id_pattern
    try:
        pattern = compiled(wanted) if wanted else None
    except OperationError as rejection:
        state.respond(token, ListTransactionsResponse(error_code=rejection.error))
        return
    names = dict.fromkeys(request.state_filters)

    def passes(metadata: TransactionMetadata) -> bool:
        producers, duration_ms = request.producer_id_filters, request.duration_filter
        return (
            (not producers or metadata.producer_id in producers)
            and (not names or metadata.state.state_name in names)
            and (duration_ms < 0 or now_ms - metadata.start_ms > duration_ms)
            and (pattern is None or pattern.fullmatch(metadata.transactional_id) is not None)
        )

    listed = [
        shard.transactions[transactional_id].metadata
        for shard in state.runtime.shards
        for transactional_id in hash_map_order(shard.transactions, string_hash)
    ]
    state.respond(
        token,
        ListTransactionsResponse(
            unknown_state_filters=tuple(name for name in names if name not in _BY_NAME),
            transaction_states=tuple(
                ListTransactionsResponse.TransactionState(
                    transactional_id=metadata.transactional_id,
                    producer_id=metadata.producer_id,
                    transaction_state=metadata.state.state_name,
                )
                for metadata in listed
                if passes(metadata)
            ),
        ),
    )


# DescribeTransactions (65): the state of transactional ids.
#
# Versions:  0 (KIP-664).
# Source:    KafkaApis.handleDescribeTransactionsRequest,
#            TransactionCoordinator.handleDescribeTransactions.


Described = DescribeTransactionsResponse.TransactionState


def handle_describe_transactions(
    state: TransactionCoordinatorState,
    token: Any,
    request: DescribeTransactionsRequest,
    version: int,
    now_ms: int,
) -> None:
    """Describe each transactional id as it is now.

    Errors:  by id: INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR,
             COORDINATOR_LOAD_IN_PROGRESS.
    """
    described = tuple(_describe(state, i) for i in request.transactional_ids)
    state.respond(token, DescribeTransactionsResponse(transaction_states=described))


def _describe(state: TransactionCoordinatorState, transactional_id: str) -> Described:
    try:
        if not transactional_id:
            raise OperationError(ErrorCode.INVALID_REQUEST)
        transaction = state.shard_of(transactional_id).transactions.get(transactional_id)
        if transaction is None:
            raise OperationError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    except OperationError as rejection:
        return Described(transactional_id=transactional_id, error_code=rejection.error)
    metadata = transaction.metadata
    return Described(
        transactional_id=transactional_id,
        transaction_state=metadata.state.state_name,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=tuple(
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=tuple(partitions))
            for topic, partitions in by_topic(metadata.partitions).items()
        ),
    )
