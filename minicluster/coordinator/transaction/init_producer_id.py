"""InitProducerId (22): an id and an epoch for a producer, which fences the one before it.

Versions:  0-6; 4.3 advertises 0-5. 3: the producer's own id and epoch, to continue after an error
           (KIP-360). 4: PRODUCER_FENCED for INVALID_PRODUCER_EPOCH (KIP-588). 5:
           TRANSACTION_ABORTABLE (KIP-890). 6: two-phase commit (KIP-939); keeping a prepared
           transaction is rejected, as in 4.3.
Source:    KafkaApis.handleInitProducerIdRequest, TransactionCoordinator.handleInitProducerId.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.coordinator_state import TransactionCoordinatorState
from minicluster.coordinator.transaction.end_txn import end_transaction
from minicluster.coordinator.transaction.transaction import (
    NO_TIMEOUT_MS,
    PREPARED,
    Transaction,
    TransactionMetadata,
    TransactionShard,
    TransactionState,
    is_epoch_exhausted,
)
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

_PRODUCER_FENCED_FROM = 4
Producer = tuple[int, int]
"""A producer id and an epoch."""


def handle_init_producer_id(
    state: TransactionCoordinatorState,
    token: Any,
    request: InitProducerIdRequest,
    version: int,
    now_ms: int,
) -> None:
    """Initialize a producer; a transaction that is open under its transactional id is aborted.

    Errors:  INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, TRANSACTIONAL_ID_AUTHORIZATION_FAILED
             (two-phase commit is off), UNSUPPORTED_VERSION; CONCURRENT_TRANSACTIONS: try again;
             PRODUCER_FENCED; COORDINATOR_LOAD_IN_PROGRESS while there is no producer id to give.
    """

    def respond(error: ErrorCode, producer: Producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)) -> None:
        if error == ErrorCode.PRODUCER_FENCED and version < _PRODUCER_FENCED_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        response = InitProducerIdResponse(
            error_code=error, producer_id=producer[0], producer_epoch=producer[1]
        )
        state.respond(token, response)

    try:
        expected = _expected_producer(request)
        if request.transactional_id is None:
            respond(ErrorCode.NONE, (state.generate_producer_id(now_ms), 0))
            return
        timeout_ms = _timeout_ms(state, request)
        shard, transaction = _transaction(state, request.transactional_id, timeout_ms, now_ms)
        new = _prepare(state, transaction, timeout_ms, expected, now_ms)
    except OperationError as rejection:
        respond(rejection.error)
        return

    def appended(error: ErrorCode, _: int) -> None:
        if error == ErrorCode.NONE:
            respond(error, (new.producer_id, new.producer_epoch))
        else:
            respond(error)

    def aborted(error: ErrorCode, _: int, __: int) -> None:
        # No client gets the epoch of the fence: this one tries again and gets the next one.
        respond(ErrorCode.CONCURRENT_TRANSACTIONS if error == ErrorCode.NONE else error)

    if new.state is TransactionState.PREPARE_EPOCH_FENCE:
        end_transaction(
            state,
            request.transactional_id,
            (new.producer_id, new.producer_epoch),
            state.transaction_version,
            aborted,
            now_ms,
            commit=False,
            from_client=False,
        )
    else:
        state.append(shard, transaction, new, appended, now_ms)


def _expected_producer(request: InitProducerIdRequest) -> Producer | None:
    """The producer that continues after an error; None: a new one."""
    named = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_PRODUCER_EPOCH
    if any(named) and not all(named):
        raise OperationError(ErrorCode.INVALID_REQUEST)
    return (request.producer_id, request.producer_epoch) if all(named) else None


def _timeout_ms(state: TransactionCoordinatorState, request: InitProducerIdRequest) -> int:
    config = state.config
    if not request.transactional_id:
        raise OperationError(ErrorCode.INVALID_REQUEST)
    if request.enable2_pc and not config.two_phase_commit_enabled:
        raise OperationError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise OperationError(ErrorCode.UNSUPPORTED_VERSION)
    if request.enable2_pc:
        return NO_TIMEOUT_MS
    if not 0 < request.transaction_timeout_ms <= config.max_timeout_ms:
        raise OperationError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return int(request.transaction_timeout_ms)


def _transaction(
    state: TransactionCoordinatorState, transactional_id: str, timeout_ms: int, now_ms: int
) -> tuple[TransactionShard, Transaction]:
    """The transaction of a transactional id; a new one has a producer id, and no epoch yet."""
    shard = state.shard_of(transactional_id)
    transaction = shard.transactions.get(transactional_id)
    if transaction is None:
        transaction = shard.transactions[transactional_id] = Transaction(
            TransactionMetadata(
                transactional_id=transactional_id,
                producer_id=state.generate_producer_id(now_ms),
                timeout_ms=timeout_ms,
                last_update_ms=now_ms,
            )
        )
    return shard, transaction


def _prepare(
    state: TransactionCoordinatorState,
    transaction: Transaction,
    timeout_ms: int,
    expected: Producer | None,
    now_ms: int,
) -> TransactionMetadata:
    """Source: TransactionCoordinator.prepareInitProducerIdTransit."""
    current = transaction.metadata
    if transaction.pending_state is not None:
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if expected is not None and not _may_continue(current, expected):
        raise OperationError(ErrorCode.PRODUCER_FENCED)
    if current.state in PREPARED:
        raise OperationError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is TransactionState.ONGOING:
        return transaction.prepare_fence_producer_epoch()
    if current.is_epoch_exhausted and (expected is None or expected[1] == current.producer_epoch):
        return transaction.prepare_producer_id_rotation(
            state.generate_producer_id(now_ms),
            timeout_ms,
            now_ms,
            record_last_epoch=expected is not None,
        )
    return transaction.prepare_increment_producer_epoch(
        timeout_ms, None if expected is None else expected[1], now_ms
    )


def _may_continue(current: TransactionMetadata, expected: Producer) -> bool:
    """The producer is the current one, or repeats the request that exhausted its last id."""
    producer_id, epoch = expected
    return (
        current.producer_epoch == NO_PRODUCER_EPOCH
        or producer_id == current.producer_id
        or (producer_id == current.prev_producer_id and is_epoch_exhausted(epoch))
    )
