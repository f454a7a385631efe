"""The abort of transactions that are open for too long.

Source:  TransactionCoordinator.abortTimedOutTransactions,
         TransactionStateManager.timedOutTransactions.
"""

from __future__ import annotations

from minicluster.coordinator.transaction.ending.end_transaction import end_transaction
from minicluster.coordinator.transaction.state.coordinator_state import CoordinatorState
from minicluster.coordinator.transaction.state.transaction import Transaction
from minicluster.coordinator.transaction.state.transaction_metadata import TransactionState


def abort_timed_out_transactions(state: CoordinatorState, now_ms: int) -> None:
    """Fence the producers of transactions that have timed out; what fails is tried again later."""
    for transaction in list(state.transactions()):
        if not _is_timed_out(transaction, now_ms):
            continue
        fenced = transaction.prepare_fence_producer_epoch()
        end_transaction(
            state,
            fenced.transactional_id,
            (fenced.producer_id, fenced.producer_epoch),
            state.transaction_version,
            lambda *_: None,
            now_ms,
            commit=False,
            from_client=False,
        )


def _is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    metadata = transaction.metadata
    return (
        transaction.pending_state is None
        and metadata.state is TransactionState.ONGOING
        and not metadata.is_two_phase_commit
        and metadata.start_ms + metadata.timeout_ms < now_ms
    )
