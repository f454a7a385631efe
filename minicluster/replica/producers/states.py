"""The producers of one log: sequences by which it detects duplicates, and open transactions.

**Idempotence** (KIP-98). A producer numbers the records of each partition and has no more than five
batches in flight. So the log keeps its last five: a batch with the sequences of one of them is a
retry whose response was lost, and gets the response of the first time; one that follows the last is
new; any other has overtaken, or lost, one before it (OUT_OF_ORDER_SEQUENCE_NUMBER). A higher
producer epoch starts at 0 and fences the lower one, that of an earlier instance of the producer.

**Transactions.** In each partition the first batch opens the transaction, a marker of the
coordinator ends it.

    append ──▶ ongoing ──marker──▶ unreplicated ──high watermark past the marker──▶ gone

The first unstable offset is the lowest one of a transaction that is ongoing or unreplicated: what
lies above it is not decided yet, or its decision could still be lost. The last stable offset, up to
which read_committed reads, is that or the high watermark, the lower one. It is why a transaction
that nobody ends ("hanging") stops all such consumers, and why a batch must not open one that the
coordinator does not know (``verification``, KIP-890).

Batches of clients are checked in full. Those of a coordinator have no sequence numbers. Those that
come by replication were checked by the leader: a follower only updates its states, and so can lead
at any time.

Source:  KIP-98, KIP-360, KIP-890, KIP-1228; ProducerStateManager, ProducerStateEntry,
         ProducerAppendInfo, TxnMetadata, CompletedTxn; UnifiedLog.analyzeAndValidateProducerState.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from minicluster.log import RecordBatch
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from minicluster.log.indexes import AbortedTransaction, TransactionIndex
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError
from minicluster.replica.producers.markers import EndTransactionMarker, read_marker
from minicluster.replica.producers.verification import VerificationGuard, VerificationStateEntry
from minicluster.values import Value, replace

BATCHES_REMEMBERED = 5
NO_COORDINATOR_EPOCH = -1
_LAST_SEQUENCE = 0x7FFFFFFF
_LAST_EPOCH = 0x7FFF
_EPOCH_BUMPED_FROM = 2  # the transaction version whose markers have the next epoch


# --- one producer (ProducerStateEntry) ----------------------------------------------------------


class BatchMetadata(Value):
    """One batch of a producer; its timestamp is its greatest one."""

    base_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int

    @classmethod
    def of(cls, batch: RecordBatch) -> BatchMetadata:
        """The metadata of a batch in the log."""
        return cls(
            batch.base_sequence,
            batch.last_sequence,
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
        )


class ProducerStateEntry(Value):
    """The epoch of a producer, its last batches in that epoch, and its transaction.

    Shapes:  batches: the oldest first. current_txn_first_offset: None while no transaction is open
             in this log. coordinator_epoch: that of the last marker.
    """

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    batches: tuple[BatchMetadata, ...] = ()
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    current_txn_first_offset: int | None = None

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record, -1 without one."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """The offset of its last record, -1 without one."""
        return self.batches[-1].last_offset if self.batches else -1

    def find_duplicate(self, batch: RecordBatch) -> BatchMetadata | None:
        """The same batch, if it is among the last five of this epoch."""
        if batch.producer_epoch != self.epoch:
            return None
        sequences = (batch.base_sequence, batch.last_sequence)
        for earlier in self.batches:
            if (earlier.base_sequence, earlier.last_sequence) == sequences:
                return earlier
        return None

    def with_batch(self, batch: RecordBatch) -> ProducerStateEntry:
        """The state after a data batch; a transactional one may begin a transaction."""
        before = self.batches if batch.producer_epoch == self.epoch else ()
        first_offset = self.current_txn_first_offset
        if first_offset is None and batch.is_transactional:
            first_offset = batch.base_offset
        return ProducerStateEntry(
            self.producer_id,
            batch.producer_epoch,
            (*before, BatchMetadata.of(batch))[-BATCHES_REMEMBERED:],
            self.coordinator_epoch,
            batch.max_timestamp,
            first_offset,
        )

    def with_marker(self, epoch: int, coordinator_epoch: int, timestamp: int) -> ProducerStateEntry:
        """The state after the marker that ends its transaction."""
        return ProducerStateEntry(
            self.producer_id,
            epoch,
            self.batches if epoch == self.epoch else (),
            coordinator_epoch,
            timestamp,
        )

    def in_snapshot(self) -> ProducerStateEntry:
        """The part that a snapshot keeps: of its batches the last one.

        Source:  ProducerStateManager.writeSnapshot.
        """
        return replace(self, batches=self.batches[-1:])

    def at(self, timestamp: int) -> ProducerStateEntry:
        """The same state on another clock; one of a snapshot has one batch at most."""
        batches = tuple(replace(batch, timestamp=timestamp) for batch in self.batches)
        return replace(self, batches=batches, last_timestamp=timestamp)


# --- the checks of one batch, in Kafka's order (ProducerAppendInfo) -----------------------------


class AppendOrigin(enum.Enum):
    """The sender of a batch to a leader.

    Source:  AppendOrigin.
    """

    CLIENT = enum.auto()
    COORDINATOR = enum.auto()


class AppendCheck(Value, kw_only=True):
    """The way by which a batch has come to a leader.

    Shapes:  guard: that of its verification, None without one. verifies: the broker appends no
             transactional batch without a verification (transaction.partition.verification.enable).
             transaction_version: of a marker.
    """

    origin: AppendOrigin = AppendOrigin.CLIENT
    guard: VerificationGuard | None = None
    verifies: bool = True
    transaction_version: int = 0


def check_data_batch(
    entry: ProducerStateEntry,
    batch: RecordBatch,
    origin: AppendOrigin,
    verification: VerificationStateEntry | None,
) -> None:
    """Reject a data batch that its producer may not append now.

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
    """Reject an epoch below that of the producer.

    INVALID_PRODUCER_EPOCH and not PRODUCER_FENCED: after the latter a producer is of no use any
    more, after the former it can abort and continue (since 2.7).

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
    """Reject a sequence number that does not follow.

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
    """Reject a marker of an old transaction or of a coordinator that another one has replaced.

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


# --- the producers of a log (ProducerStateManager) ----------------------------------------------


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
        """Reject a batch that its producer, or its coordinator, may not append.

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
            # The epoch first: after this error a producer can abort and continue, after
            # INVALID_TXN_STATE it cannot.
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
        """Begin or continue a verification; None where the transaction is open already.

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

        By version 2 a marker has the epoch of the next transaction. The verification of that one
        may be under way already: without its guard the first batch of it would be rejected.
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
