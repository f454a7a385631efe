"""The checks of one batch against its producer's state, in Kafka's order.

Batches of clients are checked in full. Those of a coordinator have no sequence numbers. Those that
come by replication were checked by the leader.

Source:  KIP-98, KIP-360, KIP-890, KIP-1228; UnifiedLog.analyzeAndValidateProducerState,
         ProducerAppendInfo.
"""

from __future__ import annotations

import enum

from minicluster.log import RecordBatch
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError
from minicluster.replica.producers.entry import ProducerStateEntry
from minicluster.replica.producers.markers import EndTransactionMarker
from minicluster.replica.producers.verification import VerificationStateEntry

_LAST_SEQUENCE = 0x7FFFFFFF
_LAST_EPOCH = 0x7FFF
_EPOCH_BUMPED_FROM = 2  # the transaction version whose markers have the next epoch


class AppendOrigin(enum.Enum):
    """The sender of a batch to a leader.

    Source:  AppendOrigin.
    """

    CLIENT = enum.auto()
    COORDINATOR = enum.auto()


def check_data_batch(
    entry: ProducerStateEntry,
    batch: RecordBatch,
    origin: AppendOrigin,
    verification: VerificationStateEntry | None,
) -> None:
    """Refuse a data batch that its producer may not append now.

    Errors:  INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE.
    Source:  ProducerAppendInfo.appendDataBatch.
    """
    check_epoch(entry, batch.producer_epoch)
    if origin is AppendOrigin.CLIENT:
        _check_sequence(entry, batch, verification)
    if entry.current_txn_first_offset is not None and not batch.is_transactional:
        raise ReplicaError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {batch.producer_id} has an open transaction, and the batch is of none",
        )


def check_epoch(entry: ProducerStateEntry, epoch: int) -> None:
    """Refuse an epoch below that of the producer.

    INVALID_PRODUCER_EPOCH and not PRODUCER_FENCED: a producer can abort and go on (since 2.7).

    Errors:  INVALID_PRODUCER_EPOCH.
    """
    if epoch < entry.epoch:
        raise ReplicaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {entry.producer_id} is at epoch {entry.epoch}, not {epoch}",
        )


def _check_sequence(
    entry: ProducerStateEntry, batch: RecordBatch, verification: VerificationStateEntry | None
) -> None:
    """Refuse a sequence number that does not follow.

    A producer that is not known, or wrote without an epoch, may begin anywhere; by transaction
    version 2 it begins at 0.

    Errors:  OUT_OF_ORDER_SEQUENCE_NUMBER.
    Source:  ProducerAppendInfo.checkSequence.
    """
    first = batch.base_sequence
    if verification is not None:
        bumped = verification.supports_epoch_bump and not entry.batches
        if (bumped and first != 0) or first > verification.lowest_sequence:
            raise _out_of_order(batch, 0 if bumped else verification.lowest_sequence)
    if entry.epoch == NO_PRODUCER_EPOCH:
        return
    if batch.producer_epoch != entry.epoch or entry.last_sequence == NO_SEQUENCE:
        expected = 0
    else:
        expected = (entry.last_sequence + 1) & _LAST_SEQUENCE
    if first != expected:
        raise _out_of_order(batch, expected)


def _out_of_order(batch: RecordBatch, expected: int) -> ReplicaError:
    return ReplicaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {batch.producer_id} should send {expected}, not {batch.base_sequence}",
    )


def check_marker(
    entry: ProducerStateEntry,
    marker: EndTransactionMarker,
    epoch: int,
    transaction_version: int,
) -> None:
    """Refuse a marker of an old transaction or of a coordinator that another one has replaced.

    By transaction version 2 the marker has an epoch above that of its transaction. One of the same
    epoch is a repeat, unless a transaction is open (KIP-1228).

    Errors:  INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
    Source:  ProducerAppendInfo.checkProducerEpoch, checkCoordinatorEpoch.
    """
    if transaction_version >= _EPOCH_BUMPED_FROM and epoch == entry.epoch:
        if entry.current_txn_first_offset is not None and epoch != _LAST_EPOCH:
            raise ReplicaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"the transaction of producer {entry.producer_id} is of epoch {epoch}, "
                "and its marker needs the next one",
            )
    else:
        check_epoch(entry, epoch)
    if entry.coordinator_epoch > marker.coordinator_epoch:
        raise ReplicaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"the coordinator epoch is {entry.coordinator_epoch}, not {marker.coordinator_epoch}",
        )
