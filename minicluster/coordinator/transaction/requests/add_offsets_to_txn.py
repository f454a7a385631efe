"""AddOffsetsToTxn (25): a transaction takes in the offsets of a group, by their partition.

Versions:  0-4. 2: PRODUCER_FENCED for INVALID_PRODUCER_EPOCH (KIP-588). 4: TRANSACTION_ABORTABLE
           (KIP-890). A producer of transaction.version 2 does not send it: TxnOffsetCommit adds.
Source:    KafkaApis.handleAddOffsetsToTxnRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.transaction.requests.add_partitions import (
    add_partitions_to_transaction,
)
from minicluster.coordinator.transaction.state.coordinator_state import CoordinatorState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from minicluster.protocol.topics import GROUP_METADATA_TOPIC

_PRODUCER_FENCED_FROM = 2


def handle_add_offsets_to_txn(
    state: CoordinatorState, token: Any, request: AddOffsetsToTxnRequest, version: int, now_ms: int
) -> None:
    """Add the partition of ``__consumer_offsets`` that holds the group.

    Errors:  those of ``add_partitions_to_transaction``.
    """

    def done(error: ErrorCode) -> None:
        if error == ErrorCode.PRODUCER_FENCED and version < _PRODUCER_FENCED_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        state.respond(token, AddOffsetsToTxnResponse(error_code=error))

    add_partitions_to_transaction(
        state,
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        [(GROUP_METADATA_TOPIC, state.offsets_partition_of(request.group_id))],
        0,
        done,
        now_ms,
    )
