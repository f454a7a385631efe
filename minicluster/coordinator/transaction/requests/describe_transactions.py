"""DescribeTransactions (65): the state of transactional ids.

Versions:  0 (KIP-664).
Source:    KafkaApis.handleDescribeTransactionsRequest,
           TransactionCoordinator.handleDescribeTransactions.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.coordinator_state import CoordinatorState
from minicluster.coordinator.transaction.transaction import by_topic
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

Described = DescribeTransactionsResponse.TransactionState


def handle_describe_transactions(
    state: CoordinatorState,
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


def _describe(state: CoordinatorState, transactional_id: str) -> Described:
    try:
        if not transactional_id:
            raise OperationError(ErrorCode.INVALID_REQUEST)
        transaction = state.shard_of(transactional_id).transactions.get(transactional_id)
        if transaction is None:
            raise OperationError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    except OperationError as refusal:
        return Described(transactional_id=transactional_id, error_code=refusal.error)
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
