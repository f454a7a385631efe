"""The shards, producer ids, markers and effects that all requests of a coordinator share.

Source:  TransactionCoordinator, TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from minicluster.channel.controller_channel import ControllerChannel, CorrelationIds
from minicluster.coordinator.runtime.internal_log import InternalLog
from minicluster.coordinator.runtime.runtime import CoordinatorRuntime
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.coordinator.runtime.timers import Timers
from minicluster.coordinator.transaction.config import TransactionCoordinatorConfig
from minicluster.coordinator.transaction.markers import MarkerChannelManager, PendingCompleteTxn
from minicluster.coordinator.transaction.producer_ids import ProducerIds
from minicluster.coordinator.transaction.transaction import (
    PREPARED,
    Transaction,
    TransactionMetadata,
    TransactionShard,
    transaction_record,
)
from minicluster.effects import Effect, Respond
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.metadata_version import TRANSACTION_VERSION
from minicluster.protocol import ErrorCode
from minicluster.protocol.topics import partition_of
from minicluster.rules import Rules

TIMER = "transaction-coordinator"
_PRODUCER_IDS_TIMEOUT_MS = 60_000
_AFTER_COMMIT = {
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
Appended = Callable[[ErrorCode, int], None]
"""Takes the error, or NONE, and the time."""


class TransactionCoordinatorState:
    """The shards of ``__transaction_state`` that this broker leads."""

    def __init__(
        self,
        broker_id: int,
        config: TransactionCoordinatorConfig,
        log: InternalLog,
        ids: CorrelationIds,
        rules: Rules,
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self.rules = rules
        self._log = log
        self.image = MetadataImage.EMPTY
        self.num_partitions = 1  # of __transaction_state, as of the broker's start
        self.num_offsets_partitions = 1  # of __consumer_offsets, likewise
        self._effects: list[Effect] = []
        self.timers = Timers(TIMER, self._effects)
        self.producer_ids = ProducerIds(broker_id)
        self.channel = ControllerChannel(
            name="producer-ids", ids=ids, retry_timeout_ms=_PRODUCER_IDS_TIMEOUT_MS
        )
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            log,
            TransactionShard,
            self.timers,
            write_timeout_ms=config.request_timeout_ms,
            on_loaded=self._complete_prepared,
            on_unloaded=lambda shard, _: self.markers.remove_markers(shard),
        )
        self.markers = MarkerChannelManager(
            self._effects,
            self.timers,
            ids,
            rules,
            request_timeout_ms=config.request_timeout_ms,
            append_complete=self._append_complete,
            is_current=self.is_current,
        )

    # --- lookups ------------------------------------------------------------------------------

    @property
    def transaction_version(self) -> int:
        """The finalized level of transaction.version."""
        return self.image.features.level(TRANSACTION_VERSION)

    def partition_of(self, transactional_id: str) -> int:
        """The partition of ``__transaction_state`` that holds a transactional id."""
        return partition_of(transactional_id, self.num_partitions)

    def offsets_partition_of(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that holds a group."""
        return partition_of(group_id, self.num_offsets_partitions)

    def shard_of(self, transactional_id: str) -> TransactionShard:
        """The shard of a transactional id.

        Errors:  OperationError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        return self.runtime.shard(self.partition_of(transactional_id))

    def transaction_of(self, transactional_id: str) -> tuple[TransactionShard, Transaction]:
        """The transaction of a transactional id, with its shard.

        Errors:  OperationError: INVALID_PRODUCER_ID_MAPPING for an unknown transactional id, and
                 those of ``shard_of``.
        """
        shard = self.shard_of(transactional_id)
        transaction = shard.transactions.get(transactional_id)
        if transaction is None:
            raise OperationError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return shard, transaction

    def transactions(self) -> Iterator[Transaction]:
        """The transactions of all shards."""
        for shard in self.runtime.shards:
            yield from shard.transactions.values()

    def is_current(self, shard: TransactionShard) -> bool:
        """This broker still coordinates the transactions of a shard, in the same epoch."""
        try:
            return self.runtime.shard(shard.partition) is shard
        except OperationError:
            return False

    # --- producer ids ---------------------------------------------------------------------------

    def generate_producer_id(self, now_ms: int) -> int:
        """A producer id that was never given before; the next block is requested in time.

        Errors:  OperationError: COORDINATOR_LOAD_IN_PROGRESS while it has no block.
        """
        producer_id = self.producer_ids.take()
        own = self.image.cluster.broker(self.broker_id)
        wanted = self.producer_ids.next_request(-1 if own is None else own.epoch, now_ms)
        if wanted is not None:
            self._effects += self.channel.submit(None, wanted, wanted.latest_version, now_ms)
        if producer_id is None:
            raise OperationError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return producer_id

    def on_channel(self, effects: list[Effect], now_ms: int) -> None:
        """Take what the channel to the controller does, and the blocks that it got."""
        self._effects += effects
        for done in self.channel.take_ended():
            self.producer_ids.on_response(done.response, now_ms)

    # --- the log --------------------------------------------------------------------------------

    def append(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        new: TransactionMetadata,
        done: Appended,
        now_ms: int,
        *,
        keeps_pending: bool = False,
    ) -> None:
        """Write a prepared transition, and complete it once the record is committed.

        The commit may take as long as the transaction. An append that fails ends the transition,
        unless it is pending until it succeeds. A record that is committed while its ISR is below
        the minimum counts as a failure: the log has the new state, and the coordinator the old one.

        Errors:  by ``done``: COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR and those of the log.
        Source:  TransactionStateManager.appendTransactionToLog.
        """
        committed_ms = now_ms

        def on_append(_: ErrorCode | None, at_ms: int) -> None:
            nonlocal committed_ms
            committed_ms = at_ms

        def appended(_: Any, error: ErrorCode | None, __: str | None) -> None:
            if error is None:
                committed = self._log.error_of_committed(shard.partition)
                error = _AFTER_COMMIT.get(committed)
            if error is None:
                transaction.complete_transition_to(new)
            elif not (keeps_pending and error == ErrorCode.COORDINATOR_NOT_AVAILABLE):
                transaction.pending_state = None
            done(error or ErrorCode.NONE, committed_ms)

        result = Result(
            records=(transaction_record(new, self.transaction_version),),
            is_applied=True,
            timeout_ms=new.timeout_ms,
            on_append=on_append,
        )
        self.runtime.write(shard.partition, lambda *_: result, appended, now_ms)

    def _append_complete(self, pending: PendingCompleteTxn, done: Appended, now_ms: int) -> None:
        self.append(
            pending.shard, pending.transaction, pending.new, done, now_ms, keeps_pending=True
        )

    def _complete_prepared(self, shard: TransactionShard, now_ms: int) -> None:
        """Complete the transactions whose outcome the previous coordinator has decided.

        Source:  TransactionStateManager.loadTransactionsForTxnTopicPartition.
        """
        prepared = [t for t in shard.transactions.values() if t.metadata.state in PREPARED]
        for transaction in prepared:
            self.send_markers(shard, transaction, now_ms)

    def send_markers(
        self, shard: TransactionShard, transaction: Transaction, now_ms: int
    ) -> TransactionMetadata:
        """Send the markers of a prepared transaction; the metadata that it is completed with."""
        new = transaction.prepare_complete(now_ms)
        epoch = self.runtime.epoch_of(shard.partition)
        self.markers.add_markers_to_send(PendingCompleteTxn(shard, transaction, new, epoch), now_ms)
        return new

    # --- effects --------------------------------------------------------------------------------

    def respond(self, token: Any, response: Any) -> None:
        """Give a response."""
        self._effects.append(Respond(token, response))

    def take_effects(self, now_ms: int) -> list[Effect]:
        """All effects since the last call, the markers to send and the timer for what is due."""
        self.markers.send_requests(now_ms)
        self.timers.arm()
        taken, self._effects[:] = list(self._effects), []
        return taken
