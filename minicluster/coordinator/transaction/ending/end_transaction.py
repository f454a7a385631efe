"""The end of a transaction: the outcome is written to the log, then markers to its partitions.

    Ongoing --> PrepareCommit, PrepareAbort --all partitions have their marker--> Complete...

With KIP-98 (transaction.version 0 and 1) a producer keeps its epoch, and a repeated end is known by
the state. With KIP-890 (2) each end bumps the epoch, so that a late record of the transaction
cannot get into the next one. A repeated end has the epoch before the current one, and one with the
current epoch belongs to the next transaction:

    state            abort: repeated, current     commit: repeated, current
    Empty            PRODUCER_FENCED, bump        PRODUCER_FENCED, INVALID_TXN_STATE
    CompleteAbort    NONE, bump                   INVALID_TXN_STATE, INVALID_TXN_STATE
    CompleteCommit   INVALID_TXN_STATE, bump      NONE, INVALID_TXN_STATE

Source:  KIP-98, KIP-890; TransactionCoordinator.endTransaction, endTransactionWithTV1.
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.ending.kip_98 import prepare_end
from minicluster.coordinator.transaction.ending.kip_890 import prepare_end_with_epoch_bump
from minicluster.coordinator.transaction.state.coordinator_state import CoordinatorState
from minicluster.coordinator.transaction.state.transaction_metadata import (
    TransactionState,
    supports_epoch_bump,
)
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from minicluster.protocol import ErrorCode

_NOBODY = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
Ended = Callable[[ErrorCode, int, int], None]
"""Takes the error, and the producer id and the epoch to go on with; -1 where there are none."""


def end_transaction(
    state: CoordinatorState,
    transactional_id: str,
    producer: tuple[int, int],
    transaction_version: int,
    done: Ended,
    now_ms: int,
    *,
    commit: bool,
    from_client: bool,
) -> None:
    """Commit or abort; the end is given once the outcome is in the log, before the markers are.

    Errors:  by ``done``: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
             CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, and those of the log.
    """
    bumps = supports_epoch_bump(transaction_version)
    is_fence = False
    try:
        if not transactional_id:
            raise OperationError(ErrorCode.INVALID_REQUEST)
        shard, transaction = state.transaction_of(transactional_id)
        is_fence = transaction.pending_state is TransactionState.PREPARE_EPOCH_FENCE
        current = transaction.metadata
        if bumps:
            new = prepare_end_with_epoch_bump(
                transaction,
                producer,
                commit,
                from_client,
                transaction_version,
                lambda: state.generate_producer_id(now_ms),
                now_ms,
            )
        else:
            new = prepare_end(transaction, producer, commit, from_client, now_ms)
    except OperationError as refusal:
        done(refusal.error, *_NOBODY)
        return
    if new is None:
        # A repeated end: the transaction is complete, or on its way.
        given = (current.producer_id, current.producer_epoch) if bumps else _NOBODY
        done(ErrorCode.NONE, *given)
        return

    def appended(error: ErrorCode, at_ms: int) -> None:
        if error != ErrorCode.NONE:
            # With KIP-890 the bump is not complete before the append, so it is made anew.
            if is_fence and not bumps:
                transaction.has_failed_epoch_fence = True
            done(error, *_NOBODY)
            return
        # The producer goes on at once; the markers follow.
        completed = state.send_markers(shard, transaction, at_ms)
        given = (completed.producer_id, completed.producer_epoch) if bumps else _NOBODY
        done(error, *given)

    state.append(shard, transaction, new, appended, now_ms)
