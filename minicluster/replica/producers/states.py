"""The producers of one log: sequences by which it detects duplicates, and open transactions.

    append ──▶ ongoing ──marker──▶ unreplicated ──high watermark past the marker──▶ gone

The first unstable offset is the lowest one of a transaction that is ongoing or unreplicated: what
lies above it is not decided yet, or its decision could still be lost.

Source:  KIP-98; ProducerStateManager, TxnMetadata, CompletedTxn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from minicluster.log import RecordBatch
from minicluster.log.indexes.transaction_index import AbortedTransaction, TransactionIndex
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError
from minicluster.replica.producers.append_checks import (
    AppendOrigin,
    check_data_batch,
    check_epoch,
    check_marker,
)
from minicluster.replica.producers.entry import BatchMetadata, ProducerStateEntry
from minicluster.replica.producers.markers import read_marker
from minicluster.replica.producers.verification import VerificationGuard, VerificationStateEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendCheck:
    """The way by which a batch has come to a leader.

    Shapes:  guard: that of its verification, None without one. verifies: the broker appends no
             transactional batch without a verification (transaction.partition.verification.enable).
             transaction_version: of a marker.
    """

    origin: AppendOrigin = AppendOrigin.CLIENT
    guard: VerificationGuard | None = None
    verifies: bool = True
    transaction_version: int = 0


class ProducerStates:
    """The producers of one log, by producer id.

    Shapes:  the index gets the aborted transactions of the batches that are appended.
    """

    __slots__ = ("_index", "_ongoing", "_producers", "_unreplicated", "_verifications")

    def __init__(self, index: TransactionIndex) -> None:
        self._index = index
        self._producers: dict[int, ProducerStateEntry] = {}
        self._ongoing: dict[int, int] = {}  # first offset: producer id
        self._unreplicated: dict[int, int] = {}  # first offset: that of the marker
        self._verifications: dict[int, VerificationStateEntry] = {}

    def __iter__(self) -> Iterator[ProducerStateEntry]:
        return iter(self._producers.values())

    # --- appending ----------------------------------------------------------------------------

    def find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        """The same batch, if it is among the producer's last five."""
        entry = self._producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        return None if entry is None else entry.find_duplicate(batch)

    def check(self, batch: RecordBatch, how: AppendCheck) -> None:
        """Refuse a batch that its producer, or the coordinator of it, may not append.

        Errors:  ReplicaError: INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
                 OUT_OF_ORDER_SEQUENCE_NUMBER, TRANSACTION_COORDINATOR_FENCED.
        Source:  UnifiedLog.analyzeAndValidateProducerState.
        """
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        if producer_id < 0:
            return
        entry = self._entry(producer_id)
        verification = self._verifications.get(producer_id)
        if batch.is_transactional and not self.has_ongoing_transaction(producer_id, epoch):
            # The epoch first: after this error a producer can abort and go on.
            check_epoch(entry, epoch)
            is_verified = verification is not None and verification.guard is how.guard
            if how.verifies and not batch.is_control and not is_verified:
                raise ReplicaError(
                    ErrorCode.INVALID_TXN_STATE, "the record is not part of an open transaction"
                )
        marker = read_marker(batch) if batch.is_control else None
        if marker is not None:
            check_marker(entry, marker, epoch, how.transaction_version)
        elif not batch.is_control:
            check_data_batch(entry, batch, how.origin, verification)

    def update(self, batch: RecordBatch) -> None:
        """Take a batch that was appended.

        Source:  UnifiedLog.updateProducers, ProducerAppendInfo.append, completeTxn.
        """
        producer_id = batch.producer_id
        if producer_id < 0:
            return
        entry = self._entry(producer_id)
        marker = read_marker(batch) if batch.is_control else None
        if not batch.is_control:
            after = entry.with_batch(batch)
            if batch.is_transactional and entry.current_txn_first_offset is None:
                self._ongoing[batch.base_offset] = producer_id
        elif marker is None:
            after = entry
        else:
            timestamp = batch.records[0].timestamp
            after = entry.with_marker(batch.producer_epoch, marker.coordinator_epoch, timestamp)
            if entry.current_txn_first_offset is not None:
                self._complete(entry, batch.base_offset, is_aborted=not marker.committed)
        self._producers[producer_id] = after
        if batch.is_transactional and self._verifications:
            self._end_verification(batch)

    def _complete(self, entry: ProducerStateEntry, marker_offset: int, *, is_aborted: bool) -> None:
        """End the transaction of a producer.

        The last stable offset of the index is that of the log's end, not of the high watermark.
        """
        first_offset = entry.current_txn_first_offset
        assert first_offset is not None
        self._ongoing.pop(first_offset, None)
        self._unreplicated[first_offset] = marker_offset
        if is_aborted:
            next_open = min(self._ongoing, default=marker_offset + 1)
            self._index.append(
                AbortedTransaction(entry.producer_id, first_offset, marker_offset, next_open)
            )

    def _entry(self, producer_id: int) -> ProducerStateEntry:
        return self._producers.get(producer_id) or ProducerStateEntry(producer_id)

    # --- verification -------------------------------------------------------------------------

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        """A transaction of this epoch is open: its coordinator has this partition already."""
        entry = self._producers.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset is not None
            and entry.epoch == epoch
        )

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """Begin or go on with a verification; None where the transaction is open already.

        Errors:  INVALID_PRODUCER_EPOCH.
        Source:  UnifiedLog.maybeStartTransactionVerification.
        """
        check_epoch(self._entry(producer_id), epoch)
        if self.has_ongoing_transaction(producer_id, epoch):
            return None
        entry = self._verifications.get(producer_id) or VerificationStateEntry(
            now_ms, sequence, epoch, supports_epoch_bump
        )
        self._verifications[producer_id] = entry.with_batch(sequence, epoch)
        return entry.guard

    def _end_verification(self, batch: RecordBatch) -> None:
        """The transaction is open now, or has ended.

        With version 2 a marker has the epoch of the next transaction, whose verification goes on.
        """
        entry = self._verifications.get(batch.producer_id)
        is_of_next = (
            entry is not None
            and entry.supports_epoch_bump
            and batch.is_control
            and batch.producer_epoch == entry.epoch
        )
        if not is_of_next:
            self._verifications.pop(batch.producer_id, None)

    @property
    def open_transactions(self) -> tuple[ProducerStateEntry, ...]:
        """The producers whose transaction no marker has ended, in the order of first batches."""
        return tuple(self._producers[self._ongoing[first]] for first in sorted(self._ongoing))

    # --- offsets ------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """The lowest offset of a transaction that is not decided, or not for good; None: of none.

        Source:  ProducerStateManager.firstUnstableOffset.
        """
        if not self._ongoing and not self._unreplicated:
            return None
        return min((*self._ongoing, *self._unreplicated))

    def on_offset_passed(self, offset: int) -> None:
        """The high watermark or the log start has risen: markers below it are there for good."""
        if self._unreplicated:
            passed = [first for first, marker in self._unreplicated.items() if marker < offset]
            for first in passed:
                del self._unreplicated[first]

    # --- snapshots, expiry --------------------------------------------------------------------

    def rebuild(
        self, snapshot: Iterable[ProducerStateEntry], batches: Iterable[RecordBatch]
    ) -> None:
        """Take the producers of a snapshot, and those of the batches after it.

        Source:  ProducerStateManager.loadFromSnapshot, UnifiedLog.rebuildProducerState.
        """
        self._producers = {entry.producer_id: entry for entry in snapshot}
        self._unreplicated = {}
        self._ongoing = {
            entry.current_txn_first_offset: entry.producer_id
            for entry in self
            if entry.current_txn_first_offset is not None
        }
        for batch in batches:
            self.update(batch)

    def snapshot(self) -> tuple[ProducerStateEntry, ...]:
        """The content of a snapshot."""
        return tuple(entry.in_snapshot() for entry in self)

    def remove_expired(self, lowest_timestamp: int) -> None:
        """Forget the producers without a transaction, and verifications, that are older.

        Source:  ProducerStateManager.removeExpiredProducers.
        """
        for entry in tuple(self):
            if entry.current_txn_first_offset is None and entry.last_timestamp <= lowest_timestamp:
                del self._producers[entry.producer_id]
        old = [i for i, v in self._verifications.items() if v.created_ms <= lowest_timestamp]
        for producer_id in old:
            del self._verifications[producer_id]

    @property
    def is_empty(self) -> bool:
        """No producer with an id has written."""
        return not self._producers and not self._unreplicated
