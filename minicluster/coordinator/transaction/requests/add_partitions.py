"""The rule by which partitions come into a transaction, or are found in it.

Source:  TransactionCoordinator.handleAddPartitionsToTransaction,
         handleVerifyPartitionsInTransaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.state.coordinator_state import CoordinatorState
from minicluster.coordinator.transaction.state.transaction_metadata import (
    PREPARED,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from minicluster.protocol import ErrorCode

Producer = tuple[int, int]
"""A producer id and an epoch."""


def add_partitions_to_transaction(
    state: CoordinatorState,
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
    except OperationError as refusal:
        done(refusal.error)
        return
    if current.state is TransactionState.ONGOING and set(partitions) <= set(current.partitions):
        done(ErrorCode.NONE)
        return
    new = transaction.prepare_add_partitions(partitions, now_ms, client_transaction_version)
    state.append(shard, transaction, new, lambda error, _: done(error), now_ms)


def verify_partitions_in_transaction(
    state: CoordinatorState,
    transactional_id: str,
    producer: Producer,
    partitions: Sequence[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """The error of each partition: TRANSACTION_ABORTABLE for one that is not in the transaction.

    A pending transition is no obstacle: the append to the partition checks the producer once more.
    """
    try:
        if not transactional_id:
            raise OperationError(ErrorCode.INVALID_REQUEST)
        _, transaction = state.transaction_of(transactional_id)
        current = transaction.metadata
        _require_producer(current, producer)
    except OperationError as refusal:
        return dict.fromkeys(partitions, refusal.error)
    added = set(current.partitions)
    abortable = ErrorCode.TRANSACTION_ABORTABLE
    return {p: ErrorCode.NONE if p in added else abortable for p in partitions}


def _require_producer(current: TransactionMetadata, producer: Producer) -> None:
    """Refuse a producer other than the current one, and any while markers are written."""
    if current.producer_id != producer[0]:
        raise OperationError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != producer[1]:
        raise OperationError(ErrorCode.PRODUCER_FENCED)
    if current.state in PREPARED:
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
