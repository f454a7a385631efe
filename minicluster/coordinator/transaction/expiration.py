"""The end of transactional ids that are not used any more.

Source:  TransactionStateManager.removeExpiredTransactionalIds.
"""

from __future__ import annotations

from minicluster.coordinator.runtime.shard import Result
from minicluster.coordinator.transaction.coordinator_state import CoordinatorState
from minicluster.coordinator.transaction.transaction import (
    COMPLETED,
    Transaction,
    TransactionShard,
    tombstone,
)
from minicluster.protocol import ErrorCode


def remove_expired_transactional_ids(state: CoordinatorState, now_ms: int) -> None:
    """Write a tombstone for each transactional id without transaction that was unused for long."""
    last_used_ms = now_ms - state.config.transactional_id_expiration_ms
    for shard in state.runtime.shards:
        expired = [
            transaction
            for transaction in shard.transactions.values()
            if transaction.pending_state is None
            and transaction.metadata.state in COMPLETED
            and transaction.metadata.last_update_ms <= last_used_ms
        ]
        if expired:
            _remove(state, shard, expired, now_ms)


def _remove(
    state: CoordinatorState, shard: TransactionShard, expired: list[Transaction], now_ms: int
) -> None:
    for transaction in expired:
        transaction.prepare_dead()
    ids = [transaction.metadata.transactional_id for transaction in expired]
    result = Result(records=tuple(tombstone(i) for i in ids), is_applied=True)

    def done(_: None, error: ErrorCode | None, __: str | None) -> None:
        for transactional_id, transaction in zip(ids, expired, strict=True):
            if error is None:
                del shard.transactions[transactional_id]
            else:
                transaction.pending_state = None

    state.runtime.write(shard.partition, lambda *_: result, done, now_ms)
