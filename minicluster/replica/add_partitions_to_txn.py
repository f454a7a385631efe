"""The verification of a transaction before its first batch is appended to a partition (KIP-890).

    begin on each partition ──guards──▶ coordinator ──▶ append with the guards, or fail

Without it a batch that was delayed on its way could begin a transaction that its coordinator never
ends, and consumers would wait for that end forever ("hanging transactions").

By transaction version 2 the coordinator adds the partition. While it still writes the markers of
the transaction before, it rejects, and the leader tries again for a while.

One request per coordinator is in flight, with all that waits for that coordinator. Of one
transactional id only the newest wait counts: an older one of the same epoch ends with a retriable
error, since its producer has tried again, and one of a lower epoch is fenced.

Versions: AddPartitionsToTxn v5, of which v4 and above is for brokers.
Source:   ReplicaManager.maybeSendPartitionsToTransactionCoordinator, handleProduceAppend;
          AddPartitionsToTxnConfig, AddPartitionsToTxnManager.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from minicluster.effects import Send, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AddPartitionsToTxnRequest
from minicluster.protocol.topics import TRANSACTION_STATE_TOPIC
from minicluster.replica.errors import ReplicaError
from minicluster.replica.producers.verification import (
    Errors,
    Guards,
    OnGuarded,
    TopicPartition,
    TransactionSupportedOperation,
    TransactionToVerify,
    VerificationGuard,
)
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.values import Value

VERIFICATION_TIMER = "add-partitions-to-txn"
VERIFICATION = "transaction.partition.verification.enable"
_BACKOFF = "add.partitions.to.txn.retry.backoff.ms"
_BACKOFF_MAX = "add.partitions.to.txn.retry.backoff.max.ms"
VERSION = 5

OnVerified = Callable[[Errors, int], None]
"""Takes the partitions with an error, and the time."""


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

        def on_verified(coordinator_errors: Errors, at_ms: int) -> None:
            on_guarded({**errors, **coordinator_errors}, guards, at_ms)

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

        # The markers of the transaction before are still being written, which takes a moment. The
        # client would come back after a pause that is much longer.
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


# --- requests to coordinators (AddPartitionsToTxnManager) ---------------------------------------


class _Waiting(Value):
    transaction: TransactionToVerify
    partitions: tuple[TopicPartition, ...]
    on_verified: OnVerified

    def all_with(self, error: ErrorCode) -> Errors:
        return dict.fromkeys(self.partitions, error)


class _Batch(Struct):
    """The transactions of one request to a coordinator.

    Shapes:  operation: that of the transaction that came first, by which all errors are changed.
    """

    operation: TransactionSupportedOperation
    waiting: dict[str, _Waiting] = field(default_factory=dict)


class AddPartitionsToTxnManager:
    """The transactions that wait for each coordinator, and those in flight to it."""

    def __init__(
        self, state: ReplicaManagerState, partition_for: Callable[[str, int], int]
    ) -> None:
        self._state = state
        self._partition_for = partition_for
        self._batches: dict[int, _Batch] = {}
        self._in_flight: dict[int, tuple[int, _Batch]] = {}  # by correlation id

    def add_or_verify(
        self,
        transaction: TransactionToVerify,
        partitions: Iterable[TopicPartition],
        on_verified: OnVerified,
        now_ms: int,
    ) -> None:
        """Queue a transaction's partitions for its coordinator.

        Errors:  by ``on_verified``: COORDINATOR_NOT_AVAILABLE, NETWORK_EXCEPTION,
                 INVALID_PRODUCER_EPOCH, and those of the coordinator.
        """
        incoming = _Waiting(transaction, tuple(partitions), on_verified)
        coordinator = self._coordinator_of(transaction.transactional_id)
        if coordinator is None:
            on_verified(incoming.all_with(ErrorCode.COORDINATOR_NOT_AVAILABLE), now_ms)
            return
        waiting = self._batches.setdefault(coordinator, _Batch(transaction.operation)).waiting
        existing = waiting.get(transaction.transactional_id)
        if existing is not None:
            epoch = existing.transaction.producer_epoch
            if epoch > transaction.producer_epoch:
                on_verified(incoming.all_with(ErrorCode.INVALID_PRODUCER_EPOCH), now_ms)
                return
            fenced = epoch < transaction.producer_epoch
            error = ErrorCode.INVALID_PRODUCER_EPOCH if fenced else ErrorCode.NETWORK_EXCEPTION
            del waiting[transaction.transactional_id]  # the newest comes last
            existing.on_verified(existing.all_with(error), now_ms)
        waiting[transaction.transactional_id] = incoming

    def _coordinator_of(self, transactional_id: str) -> int | None:
        topic = self._state.image.topics.named(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return None
        index = self._partition_for(transactional_id, len(topic.partitions))
        leader = topic.partitions[index].leader
        return leader if self._state.endpoint(leader) is not None else None

    # --- requests and responses -----------------------------------------------------------------

    def end_of_input(self) -> None:
        """Send what waits, to each coordinator without a request in flight."""
        if not self._batches:
            return
        busy = {coordinator for coordinator, _ in self._in_flight.values()}
        for coordinator in [node for node in self._batches if node not in busy]:
            sent = self._batches.pop(coordinator)
            if not sent.waiting:
                continue
            correlation_id = self._state.ids.take()
            self._in_flight[correlation_id] = coordinator, sent
            self._state.effects.append(
                Send(
                    coordinator,
                    _request(sent.waiting.values()),
                    VERSION,
                    correlation_id,
                    self._state.config.fetcher.request_timeout_ms,
                )
            )

    def owns(self, correlation_id: int) -> bool:
        """True for the id of a request in flight."""
        return correlation_id in self._in_flight

    def on_failure(self, correlation_id: int, now_ms: int) -> None:
        """No response will come."""
        _, sent = self._in_flight.pop(correlation_id)
        for waiting in sent.waiting.values():
            waiting.on_verified(waiting.all_with(ErrorCode.NETWORK_EXCEPTION), now_ms)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> None:
        """End the waits of a response, with the errors as clients of that version have them.

        Source:  AddPartitionsToTxnHandler.onComplete.
        """
        _, sent = self._in_flight.pop(correlation_id)
        if response.error_code != ErrorCode.NONE:
            error = ErrorCode.for_code(response.error_code)
            # A client must not see that a broker was not allowed to verify.
            if error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                error = ErrorCode.INVALID_TXN_STATE
            for waiting in sent.waiting.values():
                waiting.on_verified(waiting.all_with(error), now_ms)
            return
        for result in response.results_by_transaction:
            waiting = sent.waiting[result.transactional_id]
            waiting.on_verified(_unverified(result, sent.operation), now_ms)


def _request(waiting: Iterable[_Waiting]) -> AddPartitionsToTxnRequest:
    transactions = []
    for wait in waiting:
        topics: dict[str, list[int]] = {}
        for topic, index in wait.partitions:
            topics.setdefault(topic, []).append(index)
        transactions.append(
            AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=wait.transaction.transactional_id,
                producer_id=wait.transaction.producer_id,
                producer_epoch=wait.transaction.producer_epoch,
                verify_only=not wait.transaction.operation.supports_epoch_bump,
                topics=tuple(
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                        name=name, partitions=tuple(indexes)
                    )
                    for name, indexes in topics.items()
                ),
            )
        )
    return AddPartitionsToTxnRequest(transactions=tuple(transactions))


def _unverified(result: Any, operation: TransactionSupportedOperation) -> Errors:
    errors: dict[TopicPartition, ErrorCode] = {}
    for topic in result.topic_results:
        for partition in topic.results_by_partition:
            error = ErrorCode.for_code(partition.partition_error_code)
            is_old = operation is TransactionSupportedOperation.DEFAULT_ERROR
            if error == ErrorCode.PRODUCER_FENCED:
                error = ErrorCode.INVALID_PRODUCER_EPOCH  # a producer expects this one here
            elif error == ErrorCode.TRANSACTION_ABORTABLE and is_old:
                error = ErrorCode.INVALID_TXN_STATE
            if error != ErrorCode.NONE:
                errors[topic.name, partition.partition_index] = error
    return errors
