"""The transaction coordinator of one broker, as a pure machine.

    publisher        --on_metadata-->        TransactionCoordinatorMachine --append--> InternalLog
    producers        --on_request-->          a shard per partition of
    brokers          --on_request-->          __transaction_state          --Send----> leaders
    replica manager  --on_high_watermark-->                                            (markers)

A transactional id belongs to the partition that its hash gives. The leader of that partition is its
coordinator, in the coordinator epoch that is the leader epoch.

    Empty --AddPartitionsToTxn--> Ongoing --EndTxn--> Prepare... --all markers--> Complete...

Source:  KIP-98, KIP-360, KIP-588, KIP-664, KIP-890; TransactionCoordinator,
         BrokerMetadataPublisher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minicluster.channel.controller_channel import CorrelationIds
from minicluster.coordinator.runtime.internal_log import InternalLog
from minicluster.coordinator.runtime.runtime import follow_leadership
from minicluster.coordinator.runtime.shard import Result
from minicluster.coordinator.transaction.add_partitions_to_txn import (
    handle_add_offsets_to_txn,
    handle_add_partitions_to_txn,
)
from minicluster.coordinator.transaction.config import TransactionCoordinatorConfig
from minicluster.coordinator.transaction.coordinator_state import TransactionCoordinatorState
from minicluster.coordinator.transaction.end_txn import (
    abort_timed_out_transactions,
    handle_end_txn,
)
from minicluster.coordinator.transaction.init_producer_id import handle_init_producer_id
from minicluster.coordinator.transaction.transaction import (
    COMPLETED,
    Transaction,
    TransactionShard,
    tombstone,
)
from minicluster.coordinator.transaction.transactions import (
    handle_describe_transactions,
    handle_list_transactions,
)
from minicluster.effects import Effect
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.topics import TRANSACTION_STATE_TOPIC
from minicluster.rules import Rules

Handler = Callable[[TransactionCoordinatorState, Any, Any, int, int], None]
HANDLERS: Mapping[type[Message], Handler] = {
    m.AddOffsetsToTxnRequest: handle_add_offsets_to_txn,
    m.AddPartitionsToTxnRequest: handle_add_partitions_to_txn,
    m.DescribeTransactionsRequest: handle_describe_transactions,
    m.EndTxnRequest: handle_end_txn,
    m.InitProducerIdRequest: handle_init_producer_id,
    m.ListTransactionsRequest: handle_list_transactions,
}
"""The requests to a transaction coordinator, and the function that handles each."""


class TransactionCoordinatorMachine:
    """All transactional ids that a broker coordinates. Each input returns its effects.

    * ``startup(num_partitions, num_offsets_partitions)``: of both internal topics, once.
    * ``on_metadata(delta, now_ms)``: leaders of ``__transaction_state`` and of all partitions.
    * ``on_controller(id or None, now_ms)``: the active controller, which has the producer ids.
    * ``on_high_watermark(partition, offset, now_ms)``: records of a partition are committed.
    * ``on_request(token, request, version, now_ms)``: its ``Respond`` may come later.
    * ``on_response(correlation_id, response, now_ms)``, ``on_failure(correlation_id, now_ms)``: the
      outcome of a Send. ``on_timer(name, now_ms)``: of a SetTimer.

    Shapes:  effects are Respond, Send, SetTimer, CancelTimer.
    """

    def __init__(
        self,
        broker_id: int,
        config: TransactionCoordinatorConfig,
        log: InternalLog,
        *,
        ids: CorrelationIds | None = None,
        rules: Rules = Rules.KAFKA_4_3,
    ) -> None:
        self.broker_id = broker_id
        self.state = TransactionCoordinatorState(
            broker_id, config, log, ids or CorrelationIds(), rules
        )
        self._periodic = (
            _Periodic(config.abort_timed_out_interval_ms, abort_timed_out_transactions),
            _Periodic(config.remove_expired_interval_ms, remove_expired_transactional_ids),
        )

    def startup(self, num_partitions: int, num_offsets_partitions: int) -> None:
        """Find transactional ids and groups by so many partitions from now on.

        Source:  TransactionCoordinator.startup.
        """
        self.state.num_partitions = num_partitions
        self.state.num_offsets_partitions = num_offsets_partitions

    def on_metadata(self, delta: MetadataDelta, now_ms: int) -> list[Effect]:
        """Follow the leadership of partitions; markers go to the present leaders.

        Nothing is loaded while the topic has another number of partitions than at the start
        (TransactionStateManager.validateTransactionTopicPartitionCountIsStable).

        Shapes:  -> Respond for requests that wait in a shard that is led elsewhere, Send, SetTimer.
        """
        state = self.state
        if state.image is MetadataImage.EMPTY:
            for periodic in self._periodic:
                periodic.begin_ms = now_ms
        state.image = state.markers.image = delta.after
        topic = delta.after.topics.named(TRANSACTION_STATE_TOPIC)
        follow_leadership(
            state.runtime,
            TRANSACTION_STATE_TOPIC,
            delta,
            self.broker_id,
            now_ms,
            loads=topic is not None and len(topic.partitions) == state.num_partitions,
        )
        return self._take_effects(now_ms)

    def on_controller(self, controller_id: int | None, now_ms: int) -> list[Effect]:
        """Send to another controller from now on.

        Shapes:  controller_id is None while there is no active controller.
        """
        state = self.state
        state.on_channel(state.channel.on_controller(controller_id, now_ms), now_ms)
        return self._take_effects(now_ms)

    def on_high_watermark(self, partition: int, offset: int, now_ms: int) -> list[Effect]:
        """Complete the transitions whose records are committed.

        Units:   all below the offset is committed.
        """
        self.state.runtime.on_high_watermark(partition, offset, now_ms)
        return self._take_effects(now_ms)

    def on_request(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Respond, now or later.

        Errors:  in the response; UNSUPPORTED_VERSION for an API that has no handler here.
        """
        handler = HANDLERS.get(type(request))
        if handler is None:
            rejection = error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
            self.state.respond(token, rejection)
        else:
            handler(self.state, token, request, version, now_ms)
        return self._take_effects(now_ms)

    def owns(self, correlation_id: int) -> bool:
        """True for the id of a request of this machine."""
        state = self.state
        return state.channel.owns(correlation_id) or state.markers.owns(correlation_id)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """Take producer ids, or the outcome of markers.

        Shapes:  correlation_id is that of a Send that this machine ``owns``.
        """
        state = self.state
        if state.channel.owns(correlation_id):
            effects = state.channel.on_response(correlation_id, response, now_ms)
            state.on_channel(effects, now_ms)
        else:
            state.markers.on_response(correlation_id, response, now_ms)
        return self._take_effects(now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """Send the request again, for no response will come.

        Shapes:  correlation_id is that of a Send that this machine ``owns``.
        """
        state = self.state
        if state.channel.owns(correlation_id):
            state.on_channel(state.channel.on_failure(correlation_id, now_ms), now_ms)
        else:
            state.markers.on_failure(correlation_id, now_ms)
        return self._take_effects(now_ms)

    @property
    def timers(self) -> tuple[str, ...]:
        """The names of the timers that this machine sets."""
        return self.state.channel.timer, self.state.timers.name

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """Run what is due.

        Shapes:  name is that of the SetTimer; other names are ignored.
        """
        state = self.state
        if name == state.channel.timer:
            state.on_channel(state.channel.on_timer(now_ms), now_ms)
        elif name == state.timers.name:
            state.timers.run(now_ms)
        else:
            return []
        return self._take_effects(now_ms)

    def _take_effects(self, now_ms: int) -> list[Effect]:
        if any(shard.transactions for shard in self.state.runtime.shards):
            for periodic in self._periodic:
                periodic.schedule(self.state, now_ms)
        return self.state.take_effects(now_ms)


class _Periodic:
    """A periodic task, which is scheduled only while there is something for it to find."""

    def __init__(
        self, interval_ms: int, task: Callable[[TransactionCoordinatorState, int], None]
    ) -> None:
        self.begin_ms = 0
        self._interval_ms = interval_ms
        self._task = task
        self._is_scheduled = False

    def schedule(self, state: TransactionCoordinatorState, now_ms: int) -> None:
        """Run the task at the next multiple of its interval since the start."""
        if self._is_scheduled:
            return
        self._is_scheduled = True
        rounds = (now_ms - self.begin_ms) // self._interval_ms + 1

        def run(at_ms: int) -> None:
            self._is_scheduled = False
            self._task(state, at_ms)

        state.timers.add(self.begin_ms + rounds * self._interval_ms, run)


# The end of transactional ids that are not used any more.
#
# Source:  TransactionStateManager.removeExpiredTransactionalIds.


def remove_expired_transactional_ids(state: TransactionCoordinatorState, now_ms: int) -> None:
    """Write a tombstone for each transactional id without transaction that was unused for long."""
    last_used_ms = now_ms - state.config.transactional_id_expiration_ms
    for shard in state.runtime.shards:
        expired = [
            transaction
            for transaction in shard.transactions.values()
            if transaction.pending_state is None
            and transaction.metadata.state in COMPLETED
            and transaction.metadata.last_update_ms <= last_used_ms
        ]
        if expired:
            _remove(state, shard, expired, now_ms)


def _remove(
    state: TransactionCoordinatorState,
    shard: TransactionShard,
    expired: list[Transaction],
    now_ms: int,
) -> None:
    for transaction in expired:
        transaction.prepare_dead()
    ids = [transaction.metadata.transactional_id for transaction in expired]
    result = Result(records=tuple(tombstone(i) for i in ids), is_applied=True)

    def done(_: None, error: ErrorCode | None, __: str | None) -> None:
        for transactional_id, transaction in zip(ids, expired, strict=True):
            if error is None:
                del shard.transactions[transactional_id]
            else:
                transaction.pending_state = None

    state.runtime.write(shard.partition, lambda *_: result, done, now_ms)
