"""The verification of a transaction before its first batch is appended to a partition (KIP-890).

    begin on each partition ──guards──▶ coordinator ──▶ append with the guards, or fail

By transaction version 2 the coordinator adds the partition. While it still writes the markers of
the transaction before, it refuses, and the leader tries again for a while.

Source:  ReplicaManager.maybeSendPartitionsToTransactionCoordinator, handleProduceAppend;
         AddPartitionsToTxnConfig.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping

from minicluster.effects import SetTimer
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError
from minicluster.replica.producers.verification import (
    Errors,
    Guards,
    OnGuarded,
    TopicPartition,
    TransactionToVerify,
    VerificationGuard,
)
from minicluster.replica.state.replica_manager_state import ReplicaManagerState
from minicluster.replica.to_coordinator.add_partitions_to_txn import AddPartitionsToTxnManager

VERIFICATION_TIMER = "add-partitions-to-txn"
VERIFICATION = "transaction.partition.verification.enable"
_BACKOFF = "add.partitions.to.txn.retry.backoff.ms"
_BACKOFF_MAX = "add.partitions.to.txn.retry.backoff.max.ms"


class TransactionVerifier:
    """The verifications of one broker."""

    def __init__(
        self, state: ReplicaManagerState, partition_for: Callable[[str, int], int]
    ) -> None:
        self._state = state
        self.manager = AddPartitionsToTxnManager(state, partition_for)
        self._retries: list[tuple[int, int, Callable[[int], None]]] = []
        self._numbers = itertools.count()

    @property
    def is_enabled(self) -> bool:
        """The broker verifies transactions of clients below transaction version 2."""
        return self._state.broker_levels.value(VERIFICATION) == "true"

    def verify(
        self,
        transaction: TransactionToVerify,
        sequences: Mapping[TopicPartition, int],
        on_guarded: OnGuarded,
        now_ms: int,
    ) -> None:
        """Have the coordinator verify or add the partitions whose transaction is not open yet.

        Shapes:  sequences: the first one of each partition's batch, -1 without numbers.
        Errors:  by ``on_guarded``: INVALID_PRODUCER_EPOCH, those of the partition, and those of
                 ``AddPartitionsToTxnManager.add_or_verify``.
        """
        bumps = transaction.operation.supports_epoch_bump
        if not bumps and not self.is_enabled:
            on_guarded({}, {}, now_ms)
            return
        guards: dict[TopicPartition, VerificationGuard] = {}
        errors: dict[TopicPartition, ErrorCode] = {}
        for (topic, index), sequence in sequences.items():
            try:
                partition = self._state.partition_named(topic, index)
                partition.require_leader()
                guard = partition.replica_log.producers.begin_verification(
                    transaction.producer_id,
                    transaction.producer_epoch,
                    sequence,
                    supports_epoch_bump=bumps,
                    now_ms=now_ms,
                )
            except ReplicaError as rejection:
                errors[topic, index] = rejection.error
            else:
                if guard is not None:
                    guards[topic, index] = guard
        if not guards:
            on_guarded(errors, {}, now_ms)
            return

        def on_verified(found: Errors, at_ms: int) -> None:
            on_guarded({**errors, **found}, guards, at_ms)

        self.manager.add_or_verify(transaction, guards, on_verified, now_ms)

    def verify_with_retries(
        self,
        transaction: TransactionToVerify,
        sequences: Mapping[TopicPartition, int],
        on_guarded: OnGuarded,
        now_ms: int,
    ) -> None:
        """As ``verify``; by transaction version 2 again while CONCURRENT_TRANSACTIONS comes.

        Older clients expect that error and retry themselves.
        """
        if not transaction.operation.supports_epoch_bump:
            self.verify(transaction, sequences, on_guarded, now_ms)
            return
        levels = self._state.broker_levels
        timeout_ms = self._state.config.fetcher.request_timeout_ms
        deadline_ms = now_ms + min(int(levels.value(_BACKOFF_MAX) or 0), timeout_ms)
        backoff_ms = int(levels.value(_BACKOFF) or 0)

        def again(at_ms: int) -> None:
            self.verify(transaction, sequences, on_result, at_ms)

        def on_result(errors: Errors, guards: Guards, at_ms: int) -> None:
            if at_ms < deadline_ms and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values():
                self._schedule(at_ms + backoff_ms, again)
            else:
                on_guarded(errors, guards, at_ms)

        again(now_ms)

    def on_timer(self, now_ms: int) -> None:
        """Begin the retries that are due."""
        due = []
        while self._retries and self._retries[0][0] <= now_ms:
            due.append(heapq.heappop(self._retries)[2])
        for retry in due:
            retry(now_ms)
        self._set_timer()

    def _schedule(self, at_ms: int, retry: Callable[[int], None]) -> None:
        heapq.heappush(self._retries, (at_ms, next(self._numbers), retry))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._retries:
            self._state.effects.append(SetTimer(VERIFICATION_TIMER, self._retries[0][0]))
