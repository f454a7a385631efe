"""The decision on the end of a transaction whose producer keeps its epoch.

Source:  KIP-98, KIP-588; TransactionCoordinator.endTransactionWithTV1.
"""

from __future__ import annotations

from dataclasses import replace

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.state.transaction import Transaction
from minicluster.coordinator.transaction.state.transaction_metadata import (
    TransactionMetadata,
    TransactionState,
)
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from minicluster.protocol import ErrorCode

S = TransactionState
_LEVEL = 0  # of transaction.version; the marker's epoch is that of the records


def prepare_end(
    transaction: Transaction,
    producer: tuple[int, int],
    commit: bool,
    from_client: bool,
    now_ms: int,
) -> TransactionMetadata | None:
    """The metadata to write; None where the transaction has ended in this way already.

    Errors:  OperationError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS,
             INVALID_TXN_STATE.
    """
    current = transaction.metadata
    producer_id, epoch = producer
    is_fence = transaction.pending_state is S.PREPARE_EPOCH_FENCE
    if current.producer_id != producer_id:
        raise OperationError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    # A fence has the next epoch; a client never bumps its own.
    if epoch < current.producer_epoch or (from_client and epoch != current.producer_epoch):
        raise OperationError(ErrorCode.PRODUCER_FENCED)
    if transaction.pending_state is not None and not is_fence:
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is S.ONGOING:
        if is_fence and not commit:
            transaction.pending_state = None
            transaction.metadata = replace(
                current, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH
            )
        state = S.PREPARE_COMMIT if commit else S.PREPARE_ABORT
        return transaction.prepare_abort_or_commit(state, _LEVEL, NO_PRODUCER_ID, now_ms)
    if current.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT):
        return None
    if current.state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT):
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    raise OperationError(ErrorCode.INVALID_TXN_STATE)
