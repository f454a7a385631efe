"""The transitions of one transactional id: prepared, written to the log, then completed.

    Empty ──────────▶ Ongoing ──▶ PrepareCommit ──▶ CompleteCommit ──▶ Empty, Ongoing, Dead
      ▲                  │
      └─ InitProducerId  └──────▶ PrepareAbort ───▶ CompleteAbort ───▶ Empty, Ongoing, Dead

With KIP-890 a producer without a known outcome may abort without a transaction: PrepareAbort then
follows Empty, CompleteCommit and CompleteAbort as well.

**Invariant:** one transition at a time: until its record is committed, or has failed, all others
are refused with CONCURRENT_TRANSACTIONS.

Source:  KIP-98, KIP-360, KIP-890; TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.state.transaction_metadata import (
    COMPLETED,
    MAX_EPOCH,
    NOT_STARTED_MS,
    PREPARED,
    VALID_PREVIOUS_STATES,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
    supports_epoch_bump,
)
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from minicluster.protocol import ErrorCode

S = TransactionState


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
