"""The decision on the end of a transaction that bumps the epoch of its producer.

Source:  KIP-890; TransactionCoordinator.endTransaction.
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.state.transaction import Transaction
from minicluster.coordinator.transaction.state.transaction_metadata import (
    MAX_EPOCH,
    PREPARED,
    TransactionMetadata,
    TransactionState,
)
from minicluster.log.batch import NO_PRODUCER_ID
from minicluster.protocol import ErrorCode

S = TransactionState


def prepare_end_with_epoch_bump(
    transaction: Transaction,
    producer: tuple[int, int],
    commit: bool,
    from_client: bool,
    transaction_version: int,
    generate_producer_id: Callable[[], int],
    now_ms: int,
) -> TransactionMetadata | None:
    """The metadata to write; None for a repeated end of a transaction that is complete.

    A pending transition comes before all other checks: the producer may have the id already that
    this transition is to give it.

    Errors:  OperationError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS,
             INVALID_TXN_STATE; COORDINATOR_LOAD_IN_PROGRESS while no producer id is at hand.
    """
    current = transaction.metadata
    producer_id, epoch = producer
    is_fence = transaction.pending_state is S.PREPARE_EPOCH_FENCE
    if transaction.pending_state is not None and not is_fence:
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    on_bump = not is_fence and current.producer_epoch == epoch + 1
    on_overflow = (
        not is_fence
        and current.prev_producer_id == producer_id
        and epoch == MAX_EPOCH - 1
        and current.producer_epoch == 0
    )
    if current.producer_id != producer_id and not on_overflow:
        raise OperationError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_repeated = on_bump or on_overflow
    if not _is_valid_epoch(transaction, epoch, from_client, on_bump, on_overflow):
        raise OperationError(ErrorCode.PRODUCER_FENCED)
    if current.state in PREPARED:
        _refuse_unless(current.state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT))
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is not S.ONGOING:
        if is_repeated:
            _refuse_unless(current.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT))
            return None
        _refuse_unless(not commit)  # there is nothing to commit, and an abort is always safe
    if is_fence and not commit:
        transaction.pending_state = None
    next_producer_id = generate_producer_id() if current.is_epoch_exhausted else NO_PRODUCER_ID
    return transaction.prepare_abort_or_commit(
        S.PREPARE_COMMIT if commit else S.PREPARE_ABORT,
        transaction_version,
        next_producer_id,
        now_ms,
        no_partition_added=current.state is not S.ONGOING,
    )


def _is_valid_epoch(
    transaction: Transaction, epoch: int, from_client: bool, on_bump: bool, on_overflow: bool
) -> bool:
    current = transaction.metadata
    if transaction.pending_state is S.PREPARE_EPOCH_FENCE:
        is_own = epoch == current.producer_epoch
        return (is_own or not from_client) and epoch >= current.producer_epoch
    if current.state in PREPARED:
        return on_bump
    if current.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
        return on_bump or on_overflow or epoch == current.producer_epoch
    return epoch == current.producer_epoch


def _refuse_unless(is_valid: bool) -> None:
    if not is_valid:
        raise OperationError(ErrorCode.INVALID_TXN_STATE)
