"""EndTxn (26): a producer commits or aborts its transaction.

Versions:  0-5. 2: PRODUCER_FENCED for INVALID_PRODUCER_EPOCH (KIP-588). 4: TRANSACTION_ABORTABLE
           (KIP-890). 5: each end bumps the epoch of the producer, which the response gives.
Source:    KafkaApis.handleEndTxnRequest, TransactionVersion.transactionVersionForEndTxn.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.transaction.ending.end_transaction import end_transaction
from minicluster.coordinator.transaction.state.coordinator_state import CoordinatorState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import EndTxnRequest, EndTxnResponse

_PRODUCER_FENCED_FROM = 2
_EPOCH_BUMP_FROM = 5


def handle_end_txn(
    state: CoordinatorState, token: Any, request: EndTxnRequest, version: int, now_ms: int
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
