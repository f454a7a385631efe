"""A transactional id: its states, the metadata that its records hold, its transitions.

    Empty ──────────▶ Ongoing ──▶ PrepareCommit ──▶ CompleteCommit ──▶ Empty, Ongoing, Dead
      ▲                  │
      └─ InitProducerId  └──────▶ PrepareAbort ───▶ CompleteAbort ───▶ Empty, Ongoing, Dead

``VALID_PREVIOUS_STATES`` is this picture as the code reads it. With KIP-890 a producer without a
known outcome may abort without a transaction: PrepareAbort then follows Empty, CompleteCommit and
CompleteAbort as well. PrepareEpochFence is in no record: it fences the producer of an open
transaction, which is aborted next.

A transition is prepared (``pending_state``), written to the log, then completed.

**Invariant:** one transition at a time: until its record is committed, or has failed, all others
are rejected with CONCURRENT_TRANSACTIONS. Otherwise, a producer could continue with an epoch that
the log, and so the next coordinator, never has.

The record of a Prepare state is the decision: from then on the outcome cannot change, and whatever
happens to the coordinator, it is carried out. What the next one does with the state that it loads:

====================  ==============================================================================
Empty, Complete...    nothing
Ongoing               waits for the producer; aborts once the transaction times out
PrepareCommit, Abort  sends the markers to all partitions in the record, those that have theirs
                      already as well, then writes the Complete state
====================  ==============================================================================

Not in the log are the pending state and the last epoch of the producer. A producer that repeats a
request because its response was lost with the coordinator is known by the state and the epoch
(``requests/end_txn``), but for an InitProducerId that continues with an epoch: the repeated one
has neither the current epoch nor a known last one, and gets PRODUCER_FENCED.

Who may write is decided by producer id and epoch. The epoch rises:

* with each InitProducerId: another instance with the transactional id fences the one before it; a
  producer that continues after an error sends the epoch that it has (KIP-360);
* with the fence of a transaction that another InitProducerId has met, or that has timed out;
* with each end of a transaction in KIP-890: the markers carry the next epoch, so that no late
  record of the old one can get into the next transaction.

The greatest epoch is never given to a client, so that a fence can always be one above. Before it,
the producer gets another id with epoch 0.

Source:  KIP-98, KIP-360, KIP-890; TransactionMetadata, TransactionState, TransactionLog,
         TransactionStateManager.TxnMetadataCacheEntry, loadTransactionMetadata.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.runtime.timeline import Timeline
from minicluster.coordinator.runtime.timers import ShardTimers
from minicluster.java_order import hash_map_order, topic_partition_hash
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import TRANSACTION_RECORDS, CoordinatorRecord
from minicluster.protocol.coordinator_records.transaction import (
    TransactionLogKey,
    TransactionLogValue,
)
from minicluster.values import Value, replace

TopicPartition = tuple[str, int]
MAX_EPOCH = (1 << 15) - 1
NO_TIMEOUT_MS = (1 << 31) - 1  # of a transaction in two-phase commit
NOT_STARTED_MS = -1
_TAGS_FROM_LEVEL = 1
_EPOCH_BUMP_FROM_LEVEL = 2


class TransactionState(enum.Enum):
    """Shapes: values are the numbers in the log.

    Source:  TransactionState.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def state_name(self) -> str:
        """The name that DescribeTransactions and ListTransactions have."""
        return self.name.title().replace("_", "")


S = TransactionState
COMPLETED = frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT})
"""No transaction is open: another may begin, and the transactional id may expire."""
PREPARED = frozenset({S.PREPARE_COMMIT, S.PREPARE_ABORT})
"""The outcome is decided, and markers are on their way."""
VALID_PREVIOUS_STATES: Mapping[TransactionState, frozenset[TransactionState]] = {
    S.EMPTY: COMPLETED,
    S.ONGOING: COMPLETED | {S.ONGOING},
    S.PREPARE_COMMIT: frozenset({S.ONGOING}),
    S.PREPARE_ABORT: COMPLETED | {S.ONGOING, S.PREPARE_EPOCH_FENCE},
    S.COMPLETE_COMMIT: frozenset({S.PREPARE_COMMIT}),
    S.COMPLETE_ABORT: frozenset({S.PREPARE_ABORT}),
    S.DEAD: COMPLETED,
    S.PREPARE_EPOCH_FENCE: frozenset({S.ONGOING}),
}


class TransactionMetadata(Value, kw_only=True):
    """One transactional id.

    Shapes:  partitions in the order of their arrival; client_transaction_version: the
             transaction.version that the client's requests imply, 2 is KIP-890's.
    Units:   *_ms milliseconds since the epoch, but timeout_ms; start_ms is -1 where no transaction
             has begun.
    """

    transactional_id: str
    producer_id: int
    prev_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    start_ms: int = NOT_STARTED_MS
    last_update_ms: int
    client_transaction_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """No client gets the greatest epoch, so that every producer can be fenced."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def is_two_phase_commit(self) -> bool:
        """An external coordinator decides the transaction, which never times out (KIP-939)."""
        return self.timeout_ms == NO_TIMEOUT_MS


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """The next epoch is the greatest one."""
    return producer_epoch >= MAX_EPOCH - 1


def supports_epoch_bump(transaction_version: int) -> bool:
    """The end of a transaction bumps the epoch (KIP-890, transaction.version 2)."""
    return transaction_version >= _EPOCH_BUMP_FROM_LEVEL


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions by topic, both in the order in which Java walks over a set of partitions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in hash_map_order(partitions, topic_partition_hash):
        topics.setdefault(topic, []).append(partition)
    return topics


def transaction_record(
    metadata: TransactionMetadata, transaction_version: int
) -> CoordinatorRecord:
    """The record of a transactional id, at a level of transaction.version.

    Source:  TransactionLog.valueToBytes.
    """
    partitions = None
    if metadata.state is not TransactionState.EMPTY:
        partitions = tuple(
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=tuple(ids))
            for topic, ids in by_topic(metadata.partitions).items()
        )
    has_tags = transaction_version >= _TAGS_FROM_LEVEL
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.prev_producer_id if has_tags else NO_PRODUCER_ID,
        next_producer_id=metadata.next_producer_id if has_tags else NO_PRODUCER_ID,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.value,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_transaction_version if has_tags else 0,
    )
    key = TransactionLogKey(transactional_id=metadata.transactional_id)
    return CoordinatorRecord(key, value, 1 if has_tags else 0)


def transaction_of(key: TransactionLogKey, value: TransactionLogValue) -> TransactionMetadata:
    """The metadata that a record holds; the last epoch of the producer is in none.

    Source:  TransactionLog.read.
    """
    state = TransactionState(value.transaction_status)
    partitions = value.transaction_partitions or ()
    return TransactionMetadata(
        transactional_id=key.transactional_id,
        producer_id=value.producer_id,
        prev_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=tuple((p.topic, index) for p in partitions for index in p.partition_ids),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
    )


def tombstone(transactional_id: str) -> CoordinatorRecord:
    """The record that deletes a transactional id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id))


# --- transitions ----------------------------------------------------------------------------------


class IllegalTransition(RuntimeError):
    """A transition that no rule of the coordinator may attempt."""


class Transaction:
    """The newest metadata of a transactional id, and the transition that is in progress.

    Shapes:  ``has_failed_epoch_fence``: a bumped epoch may not be in the log, and no client has it,
             so the next fence does not bump it again.
    """

    __slots__ = ("has_failed_epoch_fence", "metadata", "pending_state")

    def __init__(self, metadata: TransactionMetadata) -> None:
        self.metadata = metadata
        self.pending_state: TransactionState | None = None
        self.has_failed_epoch_fence = False

    # --- the metadata to write next -----------------------------------------------------------

    def prepare_fence_producer_epoch(self) -> TransactionMetadata:
        """Fence the producer of an open transaction, which is aborted next."""
        epoch = self.metadata.producer_epoch
        is_kept = self.has_failed_epoch_fence or epoch == MAX_EPOCH
        return self._prepare(
            replace(
                self.metadata,
                state=S.PREPARE_EPOCH_FENCE,
                producer_epoch=epoch if is_kept else epoch + 1,
            )
        )

    def prepare_increment_producer_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> TransactionMetadata:
        """Give the producer the next epoch; a repeated request gets the one it was given.

        Errors:  PRODUCER_FENCED for an epoch that is neither the current nor the last one;
                 UNKNOWN_SERVER_ERROR where no epoch is left.
        """
        current = self.metadata
        if current.is_epoch_exhausted:
            raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR)
        epoch, last = current.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if expected_epoch == current.producer_epoch or (
                current.producer_epoch == NO_PRODUCER_EPOCH
            ):
                last = current.producer_epoch
            elif expected_epoch == current.last_producer_epoch:
                epoch, last = current.producer_epoch, current.last_producer_epoch
            else:
                raise OperationError(ErrorCode.PRODUCER_FENCED)
        return self._prepare(
            replace(
                current,
                state=S.EMPTY,
                producer_epoch=epoch,
                last_producer_epoch=last,
                timeout_ms=timeout_ms,
                partitions=(),
                start_ms=NOT_STARTED_MS,
                last_update_ms=now_ms,
            )
        )

    def prepare_producer_id_rotation(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, record_last_epoch: bool
    ) -> TransactionMetadata:
        """Give the producer another id: the epochs of the current one are exhausted."""
        last = self.metadata.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH
        return self._prepare(
            replace(
                self.metadata,
                state=S.EMPTY,
                producer_id=producer_id,
                producer_epoch=0,
                last_producer_epoch=last,
                timeout_ms=timeout_ms,
                partitions=(),
                start_ms=NOT_STARTED_MS,
                last_update_ms=now_ms,
            )
        )

    def prepare_add_partitions(
        self, added: Iterable[TopicPartition], now_ms: int, client_transaction_version: int
    ) -> TransactionMetadata:
        """Take partitions into the transaction, which begins with the first ones."""
        current = self.metadata
        return self._prepare(
            replace(
                current,
                state=S.ONGOING,
                partitions=tuple(dict.fromkeys((*current.partitions, *added))),
                start_ms=now_ms if current.state in COMPLETED else current.start_ms,
                last_update_ms=now_ms,
                client_transaction_version=client_transaction_version,
            )
        )

    def prepare_abort_or_commit(
        self,
        state: TransactionState,
        client_transaction_version: int,
        next_producer_id: int,
        now_ms: int,
        *,
        no_partition_added: bool = False,
    ) -> TransactionMetadata:
        """Decide the outcome; with KIP-890 the markers carry the next epoch already.

        Shapes:  next_producer_id is -1 unless the epochs of the current one are exhausted.
        """
        current = self.metadata
        epoch, last = current.producer_epoch, current.last_producer_epoch
        if supports_epoch_bump(client_transaction_version):
            last = epoch
            # An abort at the greatest epoch cannot bump it, and must go through to recover.
            if not (epoch == MAX_EPOCH and state is S.PREPARE_ABORT):
                epoch += 1
        return self._prepare(
            replace(
                current,
                state=state,
                producer_epoch=epoch,
                last_producer_epoch=last,
                next_producer_id=next_producer_id,
                start_ms=now_ms if no_partition_added else current.start_ms,
                last_update_ms=now_ms,
                client_transaction_version=client_transaction_version,
            )
        )

    def prepare_complete(self, now_ms: int) -> TransactionMetadata:
        """Complete the transaction once every partition has its marker."""
        self.has_failed_epoch_fence = False
        current = self.metadata
        is_commit = current.state is S.PREPARE_COMMIT
        producer_id, epoch = current.producer_id, current.producer_epoch
        bumps = supports_epoch_bump(current.client_transaction_version)
        if bumps and current.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = current.next_producer_id, 0
        return self._prepare(
            replace(
                current,
                state=S.COMPLETE_COMMIT if is_commit else S.COMPLETE_ABORT,
                producer_id=producer_id,
                producer_epoch=epoch,
                next_producer_id=NO_PRODUCER_ID,
                partitions=(),
                last_update_ms=now_ms,
            )
        )

    def prepare_dead(self) -> TransactionMetadata:
        """Let the transactional id expire."""
        return self._prepare(replace(self.metadata, state=S.DEAD, partitions=()))

    def _prepare(self, new: TransactionMetadata) -> TransactionMetadata:
        if self.pending_state is not None:
            raise IllegalTransition(f"{new.state} while {self.pending_state} is pending")
        if self.metadata.state not in VALID_PREVIOUS_STATES[new.state]:
            raise IllegalTransition(f"{self.metadata.state} is followed by {new.state}")
        self.pending_state = new.state
        return replace(new, prev_producer_id=self.metadata.producer_id)

    # --- after the append ---------------------------------------------------------------------

    def complete_transition_to(self, new: TransactionMetadata) -> None:
        """Take the metadata whose record is committed.

        Errors:  IllegalTransition for one that is not the pending transition, or whose producer,
                 partitions or times do not follow from the current ones.
        Source:  TransactionMetadata.completeTransitionTo.
        """
        if self.pending_state is not new.state or not self._follows(new):
            raise IllegalTransition(f"{self.metadata} with {self.pending_state} pending: {new}")
        self.metadata = new
        self.pending_state = None

    def _follows(self, new: TransactionMetadata) -> bool:
        current = self.metadata
        match new.state:
            case S.EMPTY:
                is_bump = new.producer_epoch == current.producer_epoch + 1 or (
                    new.producer_epoch == 0 and new.producer_id != current.producer_id
                )
                is_known = new.producer_epoch == current.producer_epoch or is_bump
                return is_known and not new.partitions and new.start_ms == NOT_STARTED_MS
            case S.ONGOING:
                return (
                    self._has_valid_producer(new)
                    and set(new.partitions) >= set(current.partitions)
                    and new.timeout_ms == current.timeout_ms
                )
            case S.PREPARE_COMMIT | S.PREPARE_ABORT:
                begins = new.state is S.PREPARE_ABORT and current.state in COMPLETED
                may_begin = begins and supports_epoch_bump(new.client_transaction_version)
                return (
                    self._has_valid_producer(new)
                    and set(new.partitions) == set(current.partitions)
                    and new.timeout_ms == current.timeout_ms
                    and (new.start_ms == current.start_ms or may_begin)
                )
            case S.COMPLETE_COMMIT | S.COMPLETE_ABORT:
                return (
                    self._has_valid_producer(new)
                    and new.timeout_ms == current.timeout_ms
                    and new.start_ms != NOT_STARTED_MS
                )
            case _:  # a fence becomes an abort, and a dead id is removed
                return False

    def _has_valid_producer(self, new: TransactionMetadata) -> bool:
        """Source: TransactionMetadata.validProducerEpoch."""
        current = self.metadata
        if supports_epoch_bump(new.client_transaction_version):
            if new.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT) and new.producer_epoch == 0:
                return (new.last_producer_epoch, new.prev_producer_id) == (
                    current.last_producer_epoch,
                    current.producer_id,
                )
            if new.state in PREPARED:
                return (new.last_producer_epoch, new.producer_id) == (
                    current.producer_epoch,
                    current.producer_id,
                )
        return (new.producer_epoch, new.producer_id) == (
            current.producer_epoch,
            current.producer_id,
        )

    # --- while markers are written --------------------------------------------------------------

    def remove_partitions(self, written: Iterable[TopicPartition]) -> None:
        """Forget partitions that have their marker, or need none."""
        if self.metadata.state not in PREPARED:
            raise IllegalTransition(f"a marker was written in {self.metadata.state}")
        gone = set(written)
        left = tuple(p for p in self.metadata.partitions if p not in gone)
        self.metadata = replace(self.metadata, partitions=left)


# --- the transactional ids of a partition ---------------------------------------------------------


class TransactionShard:
    """All transactions of a partition by their transactional id.

    A record is replayed from the log alone: while this broker leads, a transition is completed when
    its record is committed.
    """

    record_types = TRANSACTION_RECORDS

    def __init__(self, partition: int, timeline: Timeline, timers: ShardTimers) -> None:
        self.partition = partition
        self.transactions: dict[str, Transaction] = {}

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int, epoch: int) -> None:
        """Apply a record of the log."""
        key, value = record.key, record.value
        if not isinstance(key, TransactionLogKey):
            return
        if isinstance(value, TransactionLogValue):
            self.transactions[key.transactional_id] = Transaction(transaction_of(key, value))
        else:
            self.transactions.pop(key.transactional_id, None)

    def replay_end_transaction(self, producer_id: int, epoch: int, *, committed: bool) -> None:
        """No transactional producer writes to the transaction log."""

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """The transactions of a partition do not depend on the image."""
