"""The replica manager of one broker, as a pure machine.

    publisher  --on_metadata-->    ReplicaManagerMachine   --Send (AlterPartition)--> controller
    clients,                        partitions             --Send (Fetch, ...)------> leaders
    followers  --on_request---->    fetchers, purgatories  --Respond----------------> sender
    network    --on_response, on_failure-->

The broker's view of the cluster changes before its partitions do, so a leader never judges a
follower by an older image than the one that made it leader.

Leaves out: tiered storage.
Source:     KIP-497, KIP-841, KIP-858, KIP-903; ReplicaManager, BrokerMetadataPublisher.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from minicluster.channel.controller_channel import CorrelationIds
from minicluster.effects import CancelTimer, Effect, SetTimer
from minicluster.faults import Faults
from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.topics import ADMIN_CLIENT_ID
from minicluster.replica.add_partitions_to_txn import (
    VERIFICATION_TIMER,
    AddPartitionsToTxnManager,
    TransactionVerifier,
)
from minicluster.replica.apply_delta import apply_delta, remove_strays
from minicluster.replica.broker_context import BrokerView
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.effects import BrokerHalted
from minicluster.replica.fetching.fetcher import Fetcher
from minicluster.replica.log_cleaning import compact, delete_old_segments
from minicluster.replica.log_directories import (
    ALTER_LOG_DIRS_TIMER,
    on_copy_timer,
    poll_moves,
    take_offline,
    trace_failure,
)
from minicluster.replica.log_manager import Disk
from minicluster.replica.partition.isr import (
    is_isr_at_rest,
    resend_acknowledged,
    run_isr_task,
)
from minicluster.replica.partition.partition import Partition, trace
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests.delete_records import handle_delete_records
from minicluster.replica.requests.describe_producers import handle_describe_producers
from minicluster.replica.requests.fetch import handle_fetch
from minicluster.replica.requests.list_offsets import (
    handle_list_offsets,
    handle_offset_for_leader_epoch,
)
from minicluster.replica.requests.log_dirs import (
    handle_alter_replica_log_dirs,
    handle_describe_log_dirs,
)
from minicluster.replica.requests.produce import handle_produce
from minicluster.replica.to_controller.controller_client import ControllerClient
from minicluster.rules import FailedReplicas, IsrChanges, Rules
from minicluster.security.screening import EVERYTHING, Access

ISR_TIMER = "isr-shrink"
CHECKPOINT_TIMER = "high-watermark-checkpoint"
RETENTION_TIMER = "log-retention"
CLEANER_TIMER = "log-cleaner"
PRODUCER_EXPIRATION_TIMER = "producer-expiration"
FLUSH_TIMER = "log-flusher"
_LOG_TIMERS = (RETENTION_TIMER, CLEANER_TIMER, PRODUCER_EXPIRATION_TIMER, FLUSH_TIMER)

Handler = Callable[[ReplicaManagerState, Any, Any, int, int], None]
HANDLERS: Mapping[type[Message], Handler] = {
    m.ProduceRequest: handle_produce,
    m.FetchRequest: handle_fetch,
    m.ListOffsetsRequest: handle_list_offsets,
    m.OffsetForLeaderEpochRequest: handle_offset_for_leader_epoch,
    m.DeleteRecordsRequest: handle_delete_records,
    m.DescribeProducersRequest: handle_describe_producers,
    m.DescribeLogDirsRequest: handle_describe_log_dirs,
    m.AlterReplicaLogDirsRequest: handle_alter_replica_log_dirs,
}


class ReplicaManagerMachine:
    """All replicas of one broker. Each input returns its effects.

    * ``start(now_ms)``: sets the periodic timers. ``shut_down(now_ms)``: a clean end.
    * ``on_broker_epoch(epoch)``: the registration succeeded.
    * ``on_controller(id or None, now_ms)``: the active controller has changed.
    * ``on_metadata(delta, now_ms)``: a newer image was published.
    * ``begin_controlled_shutdown()``: the broker is about to leave.
    * ``on_request(token, request, version, now_ms)``: one of ``HANDLERS``; its
      ``Respond(token, response)`` may come later. The response to a Produce with acks=0 is None:
      nothing is to be sent.
    * ``on_response(correlation_id, response, now_ms)``, ``on_failure(correlation_id, now_ms)``: the
      outcome of a Send. ``on_timer(name, now_ms)``: of a SetTimer.
    * ``on_directory_failure(directory, now_ms)``: a log directory has failed.
    * ``end_of_input(now_ms)``: a coordinator has appended to an internal topic.

    Shapes:  effects are Send, Respond, SetTimer, CancelTimer, Trace, FaultHit, and those of
             ``effects``. partition_for: the partition of a transactional id among so many;
             without it no transactional record is appended.
    Source:  ReplicaManager, KafkaApis.
    """

    def __init__(
        self,
        config: ReplicaManagerConfig,
        disk: Disk,
        *,
        ids: CorrelationIds | None = None,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        partition_for: Callable[[str, int], int] | None = None,
    ) -> None:
        self.state = ReplicaManagerState(config, disk, ids=ids, rules=rules, faults=faults)
        self._verifier = None
        if partition_for is not None:
            self.state.verifier = self._verifier = TransactionVerifier(self.state, partition_for)
        self._flush_at_ms = 0

    # --- life cycle ---------------------------------------------------------------------------

    def start(self, now_ms: int) -> list[Effect]:
        """Begin the periodic tasks."""
        config = self.state.config
        self._flush_at_ms = now_ms + config.flush_interval_ms
        timers = [
            SetTimer(ISR_TIMER, now_ms + config.replica_lag_time_max_ms // 2),
            SetTimer(CHECKPOINT_TIMER, now_ms + config.checkpoint_interval_ms),
            SetTimer(RETENTION_TIMER, now_ms + config.initial_task_delay_ms),
            SetTimer(
                PRODUCER_EXPIRATION_TIMER, now_ms + config.producer_id_expiration_check_interval_ms
            ),
        ]
        if config.cleans:
            timers.append(SetTimer(CLEANER_TIMER, now_ms + config.cleaner_backoff_ms))
        if config.flush_check_interval_ms is not None:
            timers.append(SetTimer(FLUSH_TIMER, now_ms + config.initial_task_delay_ms))
        return [*timers]

    def on_broker_epoch(self, broker_epoch: int) -> None:
        """Send this broker epoch in all requests from now on.

        Source:  KIP-903; BrokerLifecycleManager.brokerEpoch.
        """
        self.state.view = BrokerView(broker_epoch, self.state.view.brokers)

    def begin_controlled_shutdown(self) -> None:
        """Stop fetching partitions whose ISR this broker has left."""
        self.state.in_controlled_shutdown = True

    def shut_down(self, now_ms: int) -> list[Effect]:
        """End cleanly: flush, checkpoint, and leave the broker epoch for the next incarnation."""
        state = self.state
        state.checkpoint_high_watermarks()
        # The mark last: a crash before it must look like one. By the mark the next incarnation
        # proves to the controller that it has lost nothing, and keeps its place in ELRs (KIP-966).
        state.store.flush()
        state.store.write_clean_shutdown(state.view.broker_epoch)
        timers = [ISR_TIMER, CHECKPOINT_TIMER, ALTER_LOG_DIRS_TIMER, *_LOG_TIMERS]
        timers += [VERIFICATION_TIMER]
        timers += [client.timer for client in self._clients]
        timers += [purgatory.timer for purgatory in state.delayed.all]
        timers += [fetcher.timer for fetcher in state.fetchers.values()]
        state.effects += [CancelTimer(name) for name in timers]
        for client in self._clients:
            client.close()
        for partition in state.partitions.values():
            trace(partition, "stop")
        return state.take_effects()

    # --- controller and metadata --------------------------------------------------------------

    def on_controller(self, controller_id: int | None, now_ms: int) -> list[Effect]:
        """Send to another controller from now on; None: no controller is known.

        Shapes:  -> Send, SetTimer, CancelTimer.
        Source:  NodeToControllerRequestThread.
        """
        state = self.state
        channel = state.alter_partition_manager.channel
        # Before the clients learn of it, since they share the id that this compares with.
        is_new = controller_id is not None and controller_id != channel.controller_id
        for client in self._clients:
            client.on_controller(controller_id, now_ms)
        # KIP-497: what the previous controller acknowledged may have ended with it.
        if is_new and state.rules.isr_changes_by is IsrChanges.ALTER_ISR_OF_KIP_497:
            for partition in state.partitions.values():
                resend_acknowledged(partition, now_ms)
        return self.end_of_input(now_ms)

    def on_metadata(self, delta: MetadataDelta, now_ms: int) -> list[Effect]:
        """Take a newer image: the view first, then the changes of this broker's replicas.

        Source:  BrokerMetadataPublisher.onMetadataUpdate, ReplicaManager.applyDelta.
        """
        state = self.state
        is_first = state.image is MetadataImage.EMPTY
        if delta.before is delta.after and not is_first:
            return []
        # In this order. A record that fences a follower and one that makes this broker leader may
        # be in one delta: it must lead with the view in which the follower is fenced, or it would
        # propose that one for the ISR at once.
        state.publish(delta.after)
        if is_first and state.config.removes_strays:
            remove_strays(state)
        changes = delta.local_changes(state.broker_id)
        if changes:
            apply_delta(state, changes, now_ms)
        for resource in delta.config_resources:
            self._reconfigure(*resource)
        self._report_offline(now_ms)
        return self.end_of_input(now_ms)

    def _reconfigure(self, resource_type: int, name: str) -> None:
        state = self.state
        changed: Iterable[Partition | None] = ()
        if resource_type == BROKER:
            state.take_throttled_rates()
            changed = state.partitions.values()
        elif resource_type == TOPIC:
            state.take_throttled_replicas(name)
            topic = state.image.topics.named(name)
            if topic is not None:
                changed = [state.partitions.get((topic.id, index)) for index in topic.partitions]
        for partition in changed:
            if partition is not None:
                partition.min_insync_replicas = state.min_isr_of(partition.topic)
                partition.log_config = state.log_config_of(partition.topic)

    # --- requests and responses ---------------------------------------------------------------

    def on_request(
        self,
        token: Any,
        request: Any,
        version: int,
        now_ms: int,
        *,
        client_id: str = "",
        access: Access = EVERYTHING,
    ) -> list[Effect]:
        """Respond, now or later.

        Shapes:  client_id: of the request's header; access: what the sender may do ->
                 Respond with the token, in this or a later input.
        Errors:  in the response; UNSUPPORTED_VERSION for an API that has no handler here.
        Source:  KafkaApis.handle.
        """
        handler = HANDLERS.get(type(request))
        if handler is None:
            response = error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
            self.state.respond(token, response)
        elif handler is handle_produce and client_id == ADMIN_CLIENT_ID:
            handle_produce(
                self.state, token, request, version, now_ms, internal_topics_allowed=True
            )
        elif handler is handle_fetch:
            handle_fetch(self.state, token, request, version, now_ms, access)
        else:
            handler(self.state, token, request, version, now_ms)
        return self.end_of_input(now_ms)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """A response has come; one that nothing waits for is ignored.

        Shapes:  correlation_id is that of the Send.
        """
        sender = self._sender_of(correlation_id)
        if sender is not None:
            sender.on_response(correlation_id, response, now_ms)
        return self.end_of_input(now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """No response will come.

        Shapes:  correlation_id is that of the Send.
        """
        sender = self._sender_of(correlation_id)
        if sender is not None:
            sender.on_failure(correlation_id, now_ms)
        return self.end_of_input(now_ms)

    def _sender_of(
        self, correlation_id: int
    ) -> Fetcher | ControllerClient | AddPartitionsToTxnManager | None:
        if self._verifier is not None and self._verifier.manager.owns(correlation_id):
            return self._verifier.manager
        for fetcher in self.state.fetchers.values():
            if fetcher.owns(correlation_id):
                return fetcher
        for client in self._clients:
            if client.channel.owns(correlation_id):
                return client
        return None

    # --- timers -------------------------------------------------------------------------------

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """A timer of this machine has fired; other names are ignored.

        Shapes:  name is that of the SetTimer.
        """
        state = self.state
        for purgatory in state.delayed.all:
            if name == purgatory.timer:
                purgatory.on_timer(now_ms)
                return self.end_of_input(now_ms)
        if name == ISR_TIMER:
            self._run_isr_tasks(now_ms)
            interval_ms = state.config.replica_lag_time_max_ms // 2
            return [*self.end_of_input(now_ms), SetTimer(ISR_TIMER, now_ms + interval_ms)]
        if name == CHECKPOINT_TIMER:
            return self._checkpoint(now_ms)
        if name == ALTER_LOG_DIRS_TIMER:
            on_copy_timer(state, now_ms)
            return self.end_of_input(now_ms)
        if name in _LOG_TIMERS:
            return self._run_log_task(name, now_ms)
        if name == VERIFICATION_TIMER and self._verifier is not None:
            self._verifier.on_timer(now_ms)
            return self.end_of_input(now_ms)
        for fetcher in list(state.fetchers.values()):
            if name == fetcher.timer:
                fetcher.on_timer(now_ms)
                return self.end_of_input(now_ms)
        for client in self._clients:
            client.on_timer(name, now_ms)
        return self.end_of_input(now_ms)

    def _run_isr_tasks(self, now_ms: int) -> None:
        """Run the periodic task on each partition whose ISR may have to change."""
        state = self.state
        due, state.isr_unchecked = state.isr_unchecked, {}
        always = state.faults.is_any_on  # a fault may find something to do at any time
        for partition in state.partitions.values():
            if always or partition in due or partition in state.isr_unchecked:
                run_isr_task(partition, now_ms)
                if not is_isr_at_rest(partition):
                    state.isr_unchecked[partition] = None

    def _checkpoint(self, now_ms: int) -> list[Effect]:
        state = self.state
        state.checkpoint_high_watermarks()
        if now_ms >= self._flush_at_ms:
            state.store.flush()
            self._flush_at_ms = now_ms + state.config.flush_interval_ms
        return [SetTimer(CHECKPOINT_TIMER, now_ms + state.config.checkpoint_interval_ms)]

    def _run_log_task(self, name: str, now_ms: int) -> list[Effect]:
        """Run a periodic task on every log.

        Source:  LogManager.cleanupLogs, flushDirtyLogs, LogCleaner.CleanerThread, UnifiedLog
                 (PeriodicProducerExpirationCheck).
        """
        config, date_ms = self.state.config, self.state.date_ms(now_ms)
        for partition in self.state.partitions.values():
            is_compacted = partition.log_config.compacted
            if name == FLUSH_TIMER:
                partition.replica_log.flush_after(partition.log_config.flush_ms, date_ms)
                continue
            if name == PRODUCER_EXPIRATION_TIMER:
                expired_ms = date_ms - config.producer_id_expiration_ms
                partition.replica_log.producers.remove_expired(expired_ms)
            elif is_compacted == (name == CLEANER_TIMER):
                if is_compacted:
                    compact(partition, date_ms)
                log_start = partition.log_start_offset
                delete_old_segments(partition, date_ms)
                if partition.log_start_offset != log_start:
                    for fetcher in self.state.fetchers.values():
                        fetcher.log_start_moved(partition.key)
        interval_ms = {
            RETENTION_TIMER: config.retention_check_interval_ms,
            CLEANER_TIMER: config.cleaner_backoff_ms,
            PRODUCER_EXPIRATION_TIMER: config.producer_id_expiration_check_interval_ms,
            FLUSH_TIMER: config.flush_check_interval_ms,
        }[name]
        return [] if interval_ms is None else [SetTimer(name, now_ms + interval_ms)]

    # --- log directories ----------------------------------------------------------------------

    def on_directory_failure(self, directory: uuid.UUID, now_ms: int) -> list[Effect]:
        """A directory has failed: its replicas are offline until the broker restarts.

        The controller learns of the directory by heartbeat (KIP-858), or of the replicas (KIP-589).
        Without any directory, or without that of the metadata log, the broker halts and reports
        nothing: the controller learns of it when the session expires.

        Source:  ReplicaManager.handleLogDirFailure, LogManager.handleLogDirFailure.
        """
        state = self.state
        if directory not in state.store.online_directories:
            return []
        lost = state.store.fail_directory(directory)
        reason = state.store.cannot_run(state.config.metadata_directory)
        if reason is not None:
            return [BrokerHalted(reason)]
        if state.config.traced:
            trace_failure(state, directory)
        take_offline(state, directory, lost, now_ms)
        self._report_offline(now_ms)
        return self.end_of_input(now_ms)

    def _report_offline(self, now_ms: int) -> None:
        """Report offline replicas, where the controller learns of replicas."""
        state = self.state
        if state.rules.failed_replicas_reported_by is FailedReplicas.ALTER_REPLICA_STATE:
            named = ((key, state.image.topics.get(key[0])) for key in state.offline)
            offline = {key: topic.name for key, topic in named if topic is not None}
            state.replica_states.set_offline(offline, now_ms)

    # --- effects ------------------------------------------------------------------------------

    @property
    def _clients(self) -> tuple[ControllerClient, ...]:
        state = self.state
        return state.alter_partition_manager, state.assignments, state.replica_states

    def end_of_input(self, now_ms: int) -> list[Effect]:
        """Send what the input has queued, and take its effects."""
        if self.state.moving:
            poll_moves(self.state, now_ms)
        self.state.alter_partition_manager.end_of_input(now_ms)
        if self._verifier is not None:
            self._verifier.manager.end_of_input()
        return self.state.take_effects()
