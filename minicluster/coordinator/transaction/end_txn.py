"""EndTxn (26) and every other end of a transaction: by a fence, by its time-out.

Versions:  0-5. 2: PRODUCER_FENCED for INVALID_PRODUCER_EPOCH (KIP-588). 4: TRANSACTION_ABORTABLE
           (KIP-890). 5: each end bumps the epoch of the producer, which the response gives.

The outcome is written to the log, then markers to the partitions of the transaction:

    Ongoing --> PrepareCommit, PrepareAbort --all partitions have their marker--> Complete...

With KIP-98 (transaction.version 0 and 1) a producer keeps its epoch, and a repeated end is known by
the state. With KIP-890 (2) each end bumps the epoch, so that no late record of the transaction gets
into the next one. A repeated end has the epoch before the current one, and one with the current
epoch belongs to the next transaction:

    state            abort: repeated, current     commit: repeated, current
    Empty            PRODUCER_FENCED, bump        PRODUCER_FENCED, INVALID_TXN_STATE
    CompleteAbort    NONE, bump                   INVALID_TXN_STATE, INVALID_TXN_STATE
    CompleteCommit   INVALID_TXN_STATE, bump      NONE, INVALID_TXN_STATE

Source:  KafkaApis.handleEndTxnRequest, TransactionVersion.transactionVersionForEndTxn;
         TransactionCoordinator.endTransaction, endTransactionWithTV1,
         abortTimedOutTransactions; TransactionStateManager.timedOutTransactions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.coordinator_state import TransactionCoordinatorState
from minicluster.coordinator.transaction.transaction import (
    MAX_EPOCH,
    PREPARED,
    Transaction,
    TransactionMetadata,
    TransactionState,
    supports_epoch_bump,
)
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import EndTxnRequest, EndTxnResponse
from minicluster.values import replace

_PRODUCER_FENCED_FROM = 2
_EPOCH_BUMP_FROM = 5


def handle_end_txn(
    state: TransactionCoordinatorState,
    token: Any,
    request: EndTxnRequest,
    version: int,
    now_ms: int,
) -> None:
    """End a transaction; the version of the request decides by which protocol.

    Errors:  those of ``end_transaction``.
    """

    def ended(error: ErrorCode, producer_id: int, producer_epoch: int) -> None:
        if error == ErrorCode.PRODUCER_FENCED and version < _PRODUCER_FENCED_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        response = EndTxnResponse(
            error_code=error, producer_id=producer_id, producer_epoch=producer_epoch
        )
        state.respond(token, response)

    end_transaction(
        state,
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        2 if version >= _EPOCH_BUMP_FROM else 0,
        ended,
        now_ms,
        commit=request.committed,
        from_client=True,
    )


# --- the end, of a client or a fence --------------------------------------------------------------

_NOBODY = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
Ended = Callable[[ErrorCode, int, int], None]
"""Takes the error, and the producer id and the epoch to continue with; -1 where there are none."""


def end_transaction(
    state: TransactionCoordinatorState,
    transactional_id: str,
    producer: tuple[int, int],
    transaction_version: int,
    done: Ended,
    now_ms: int,
    *,
    commit: bool,
    from_client: bool,
) -> None:
    """Commit or abort; ``done`` is called once the outcome is in the log, before the markers are.

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
    except OperationError as rejection:
        done(rejection.error, *_NOBODY)
        return
    if new is None:
        # A repeated end: the transaction is complete, or on its way.
        producer = (current.producer_id, current.producer_epoch) if bumps else _NOBODY
        done(ErrorCode.NONE, *producer)
        return

    def appended(error: ErrorCode, at_ms: int) -> None:
        if error != ErrorCode.NONE:
            # Each further try to abort a transaction whose end cannot be written must not use up an
            # epoch. With KIP-890 the record that has failed here was to bump it.
            if is_fence and not bumps:
                transaction.has_failed_epoch_fence = True
            done(error, *_NOBODY)
            return
        # The producer continues at once, and does not wait for the slowest leader; only its next
        # transaction has to wait until the markers are written.
        completed = state.send_markers(shard, transaction, at_ms)
        next_producer = completed.producer_id, completed.producer_epoch
        done(error, *(next_producer if bumps else _NOBODY))

    state.append(shard, transaction, new, appended, now_ms)


# --- the epoch of the producer is bumped: KIP-890, TransactionCoordinator.endTransaction ----------

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
             INVALID_TXN_STATE; COORDINATOR_LOAD_IN_PROGRESS while there is no producer id to give.
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
        _require_state(current.state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT))
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is not S.ONGOING:
        if is_repeated:
            _require_state(current.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT))
            return None
        _require_state(not commit)  # there is nothing to commit, and an abort is always safe
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


def _require_state(is_valid: bool) -> None:
    if not is_valid:
        raise OperationError(ErrorCode.INVALID_TXN_STATE)


# --- the producer keeps its epoch: KIP-98, KIP-588, TransactionCoordinator.endTransactionWithTV1 --

_KIP_98_LEVEL = 0  # of transaction.version; the marker's epoch is that of the records


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
        return transaction.prepare_abort_or_commit(state, _KIP_98_LEVEL, NO_PRODUCER_ID, now_ms)
    if current.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT):
        return None
    if current.state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT):
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    raise OperationError(ErrorCode.INVALID_TXN_STATE)


# --- transactions that are open for too long ------------------------------------------------------


def abort_timed_out_transactions(state: TransactionCoordinatorState, now_ms: int) -> None:
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
