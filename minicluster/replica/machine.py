"""All replicas of one broker: a pure machine around ``Partition``, fetchers and purgatories.

    publisher  --on_metadata-->    ReplicaManagerMachine   --Send (AlterPartition)--> controller
    clients,                        partitions             --Send (Fetch, ...)------> leaders
    followers  --on_request---->    fetchers, purgatories  --Respond------------------> who asked
    network    --on_response, on_failure-->

The broker's view of the cluster is set before its partitions hear of a change, so a leader never
judges a follower by an older image than the one that made it leader.

Leaves out: fetch sessions, tiered storage, moving replicas between directories.
Source:     KIP-497, KIP-841, KIP-858, KIP-903; ReplicaManager, BrokerMetadataPublisher.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from minicluster.effects import CancelTimer, Effect, Respond, SetTimer
from minicluster.faults import Faults
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, TOPIC
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.api_versions import highest_version
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import (
    AlterPartitionRequest,
    FetchRequest,
    ListOffsetsRequest,
)
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.apply_delta import apply_delta
from minicluster.replica.broker_view import BrokerView
from minicluster.replica.effects import BrokerHalted, DirectoryFailed
from minicluster.replica.errors import ReplicaError
from minicluster.replica.fetching.fetcher import Fetcher
from minicluster.replica.fetching.following import Following
from minicluster.replica.log_manager import Disk, ReplicaStore, log_name
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.steps import (
    CheckWaiting,
    CheckWaitingProduces,
    ProposalAnswered,
    ProposalNotAttempted,
    SubmitProposal,
)
from minicluster.replica.requests.fetch import handle_fetch
from minicluster.replica.requests.offsets import (
    handle_delete_records,
    handle_list_offsets,
    handle_offset_for_leader_epoch,
)
from minicluster.replica.requests.produce import handle_produce
from minicluster.replica.requests.purgatory import Key, Purgatory
from minicluster.replica.settings import ReplicaManagerConfig
from minicluster.replica.to_controller.alter_partition_manager import TIMER as ALTER_PARTITION_TIMER
from minicluster.replica.to_controller.alter_partition_manager import (
    AlterPartitionManager,
    AnswersGiven,
    SendAlterPartition,
)
from minicluster.replica.to_controller.controller_channel import (
    Answer,
    ControllerChannel,
    CorrelationIds,
)
from minicluster.replica.to_controller.directory_assignments import TIMER as ASSIGNMENTS_TIMER
from minicluster.replica.to_controller.directory_assignments import DirectoryAssignments
from minicluster.replica.to_controller.replica_state_reports import TIMER as REPLICA_STATES_TIMER
from minicluster.replica.to_controller.replica_state_reports import ReplicaStateReports
from minicluster.rules import FailedReplicas, IsrChanges, Rules

SHRINK_TIMER = "isr-shrink"
CHECKPOINT_TIMER = "high-watermark-checkpoint"
MIN_ISR = "min.insync.replicas"
_BY_ID = 13


class ReplicaManagerMachine:
    """The machine. Inputs, each with the time, return effects:

    * ``start``: sets the periodic timers. ``shut_down``: a clean end.
    * ``on_broker_epoch(epoch)``: the registration succeeded (no effects).
    * ``on_controller(now_ms, id or None)``: who is the active controller.
    * ``on_metadata(now_ms, delta)``: a newer image was published.
    * ``begin_controlled_shutdown()``: the broker is about to leave (no effects).
    * ``on_request(now_ms, token, request, version)``: Produce, Fetch, ListOffsets,
      OffsetForLeaderEpoch, DeleteRecords; their ``Respond(token, response)`` may come later.
      A produce with acks=0 is answered with None: send nothing.
    * ``on_response(now_ms, correlation_id, response)``, ``on_failure(now_ms, correlation_id)``:
      what became of a Send. ``on_timer(now_ms, name)``: of a SetTimer.
    * ``on_directory_failure(now_ms, directory)``: a log directory broke.

    Effects: Send, Respond, SetTimer, CancelTimer, Trace, FaultHit, FetchFailed, DirectoryFailed,
    BrokerHalted.
    """

    def __init__(
        self,
        config: ReplicaManagerConfig,
        disk: Disk,
        *,
        ids: CorrelationIds | None = None,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
    ) -> None:
        self.config = config
        self.rules = rules
        self.faults = faults
        self.store = ReplicaStore(disk)
        self.image = MetadataImage.EMPTY
        self.view = BrokerView()
        self.partitions: dict[Key, Partition] = {}
        self.offline: dict[Key, None] = {}
        self.fetchers: dict[int, Fetcher] = {}
        self.produces = Purgatory("purgatory-produce")
        self.fetches = Purgatory("purgatory-fetch")
        self.deletes = Purgatory("purgatory-delete-records")
        self.in_controlled_shutdown = False
        self.ids = ids or CorrelationIds()
        self.proposal_ids = itertools.count(1)
        self.fetcher_config = config.fetcher
        self._alter = AlterPartitionManager(config.broker_id, rules=rules)
        self._channel = ControllerChannel(name="alter-partition", ids=self.ids)
        self.assignments = DirectoryAssignments(config.broker_id, self.ids)
        self.states = ReplicaStateReports(config.broker_id, self.ids)
        self._checkpointed: Mapping[str, int] = {}
        self._depth = 0
        self._flush_at_ms = 0

    # -- life ------------------------------------------------------------------------------

    def start(self, now_ms: int) -> list[Effect]:
        """Begin the periodic tasks."""
        self._flush_at_ms = now_ms + self.config.flush_interval_ms
        return [
            SetTimer(SHRINK_TIMER, now_ms + self.config.replica_lag_time_max_ms // 2),
            SetTimer(CHECKPOINT_TIMER, now_ms + self.config.checkpoint_interval_ms),
        ]

    def on_broker_epoch(self, broker_epoch: int) -> None:
        """All requests carry this epoch from now on."""
        self.view = BrokerView(broker_epoch, self.view.brokers)
        self._alter.broker_epoch = self.assignments.broker_epoch = broker_epoch
        self.states.broker_epoch = broker_epoch
        for fetcher in self.fetchers.values():
            fetcher.set_broker_epoch(broker_epoch)

    def on_controller(self, now_ms: int, controller_id: int | None) -> list[Effect]:
        """The active controller is this one, or nobody that is known."""
        is_new = controller_id is not None and controller_id != self._channel.controller_id
        effects = self._channel.on_controller(now_ms, controller_id)
        effects += self.assignments.channel.on_controller(now_ms, controller_id)
        if is_new and self.rules.isr_changes_by is IsrChanges.ALTER_ISR_OF_KIP_497:
            asked: list[Effect] = []
            for partition in self.partitions.values():
                partition.isr_changes.ask_again(partition, asked)
            effects += self.settle(now_ms, asked)
        return effects + self.states.on_controller(now_ms, controller_id)

    def begin_controlled_shutdown(self) -> None:
        """From now on followers out of the ISR are not fetched any more."""
        self.in_controlled_shutdown = True

    def shut_down(self, now_ms: int) -> list[Effect]:
        """End cleanly: everything flushed and checkpointed, and a note for the next incarnation."""
        self._checkpoint()
        self.store.flush()
        self.store.note_clean_shutdown(self.view.broker_epoch)
        timers = (
            SHRINK_TIMER,
            CHECKPOINT_TIMER,
            ALTER_PARTITION_TIMER,
            ASSIGNMENTS_TIMER,
            REPLICA_STATES_TIMER,
        )
        purgatories = (self.produces, self.fetches, self.deletes)
        names = (*timers, *(p.timer for p in purgatories), *(f.timer for f in self._fetchers()))
        closed = self._channel.close() + self.assignments.channel.close()
        closed += self.states.channel.close()
        ended = [effect for p in self.partitions.values() for effect in p.end()]
        return [CancelTimer(name) for name in names] + closed + ended

    # -- metadata --------------------------------------------------------------------------

    def on_metadata(self, now_ms: int, delta: MetadataDelta) -> list[Effect]:
        """Take a newer image: the view first, then what it asks of this broker's replicas."""
        first = self.image is MetadataImage.EMPTY
        if delta.before is delta.after and not first:
            return []
        self.image = delta.after
        self.view = BrokerView(self.view.broker_epoch, delta.after.cluster.brokers.rows)
        if self.image.features is not delta.before.features or first:
            self._follow_metadata_version()
        effects = apply_delta(self, now_ms, delta, first=first)
        for resource_type, name in delta.config_resources:
            self._reconfigure(resource_type, name)
        return self.settle(now_ms, effects) + self._report_offline(now_ms)

    def _follow_metadata_version(self) -> None:
        """Speak to other nodes in the versions that the metadata.version allows."""
        version = self.image.metadata_version
        self._alter.sends_recovery_state = version.leader_recovery_supported
        self.fetcher_config = replace(
            self.config.fetcher,
            fetch_version=min(
                version.fetch_request_version, highest_version(self.rules, FetchRequest.api_key)
            ),
            list_offsets_version=min(
                version.list_offsets_request_version,
                highest_version(self.rules, ListOffsetsRequest.api_key),
            ),
        )
        for fetcher in self._fetchers():
            fetcher.set_config(self.fetcher_config)

    def min_isr_of(self, topic: str) -> int:
        """The topic's config, else this broker's, else the cluster's, else the static one."""
        configs = self.image.configs
        broker = str(self.config.broker_id)
        for resource_type, name in ((TOPIC, topic), (BROKER, broker), (BROKER, CLUSTER_DEFAULT)):
            value = configs.value(resource_type, name, MIN_ISR)
            if value is not None:
                return int(value)
        return self.config.min_insync_replicas

    def _reconfigure(self, resource_type: int, name: str) -> None:
        for partition in self.partitions.values():
            if resource_type == BROKER or (resource_type == TOPIC and partition.topic == name):
                partition.min_insync_replicas = self.min_isr_of(partition.topic)

    # -- lookups ---------------------------------------------------------------------------

    def key_of(self, topic: str, topic_id: uuid.UUID, index: int, version: int) -> Key | None:
        """A partition as a request names it: by id from version 13 on; None for no such topic."""
        if version >= _BY_ID:
            return (topic_id, index) if self.image.topics.get(topic_id) is not None else None
        found = self.image.topics.named(topic)
        return None if found is None else (found.id, index)

    def partition(self, key: Key | None) -> Partition:
        """The local replica.

        Errors:  KAFKA_STORAGE_ERROR (its directory failed), NOT_LEADER_OR_FOLLOWER (it lives
                 elsewhere), UNKNOWN_TOPIC_OR_PARTITION (nowhere).
        """
        found = self.partitions.get(key) if key is not None else None
        if found is not None:
            return found
        if key is not None and key in self.offline:
            raise ReplicaError(ErrorCode.KAFKA_STORAGE_ERROR, "its log directory has failed")
        if key is not None and self.image.topics.partition(*key) is not None:
            raise ReplicaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no replica here")
        raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def partition_named(self, topic: str, index: int) -> Partition:
        """The local replica of a partition that a request names by its topic's name.

        Errors:  as ``partition``.
        """
        return self.partition(self.key_of(topic, ZERO_UUID, index, version=0))

    def current_leader(self, key: Key | None) -> tuple[int, int]:
        """Leader and leader epoch as published, -1 where nothing is known (KIP-951)."""
        known = None if key is None else self.image.topics.partition(*key)
        return (-1, -1) if known is None else (known.leader, known.leader_epoch)

    # -- requests --------------------------------------------------------------------------

    def on_request(self, now_ms: int, token: Any, request: Any, version: int) -> list[Effect]:
        """Answer, or let it wait."""
        handler = HANDLERS.get(type(request).__name__)
        if handler is None:
            refusal = error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
            return [Respond(token, refusal)]
        return self.settle(now_ms, handler(self, now_ms, token, request, version))

    # -- answers and timers ----------------------------------------------------------------

    def on_response(self, now_ms: int, correlation_id: int, response: Any) -> list[Effect]:
        """What was sent has been answered; answers that nobody waits for are ignored."""
        if self._channel.owns(correlation_id):
            return self._answered(
                now_ms, *self._channel.on_response(now_ms, correlation_id, response)
            )
        for fetcher in self.fetchers.values():
            if fetcher.owns(correlation_id):
                return self.settle(now_ms, fetcher.on_response(now_ms, correlation_id, response))
        told: DirectoryAssignments | ReplicaStateReports = self.assignments
        if self.states.channel.owns(correlation_id):
            told = self.states
        return told.on_answers(now_ms, *told.channel.on_response(now_ms, correlation_id, response))

    def on_failure(self, now_ms: int, correlation_id: int) -> list[Effect]:
        """What was sent will not be answered."""
        if self._channel.owns(correlation_id):
            return self._answered(now_ms, *self._channel.on_failure(now_ms, correlation_id))
        for fetcher in self._fetchers():
            if fetcher.owns(correlation_id):
                return self.settle(now_ms, fetcher.on_failure(now_ms, correlation_id))
        told: DirectoryAssignments | ReplicaStateReports = self.assignments
        if self.states.channel.owns(correlation_id):
            told = self.states
        return told.on_answers(now_ms, *told.channel.on_failure(now_ms, correlation_id))

    def on_timer(self, now_ms: int, name: str) -> list[Effect]:
        """A timer of this machine fired; other names are ignored."""
        for purgatory in (self.fetches, self.produces, self.deletes):
            if name == purgatory.timer:
                return self.settle(now_ms, purgatory.on_timer(now_ms))
        for fetcher in self._fetchers():
            if name == fetcher.timer:
                return self.settle(now_ms, fetcher.on_timer(now_ms))
        if name == SHRINK_TIMER:
            return self._shrink(now_ms)
        if name == CHECKPOINT_TIMER:
            self._checkpoint()
            if now_ms >= self._flush_at_ms:
                self.store.flush()
                self._flush_at_ms = now_ms + self.config.flush_interval_ms
            return [SetTimer(CHECKPOINT_TIMER, now_ms + self.config.checkpoint_interval_ms)]
        if name == ALTER_PARTITION_TIMER:
            return self.settle(now_ms, self._alter.on_timer(now_ms))
        if name == self._channel.timer:
            return self._answered(now_ms, *self._channel.on_timer(now_ms))
        told: DirectoryAssignments | ReplicaStateReports
        for told in (self.assignments, self.states):
            if name == told.timer:
                return told.on_timer(now_ms)
            if name == told.channel.timer:
                return told.on_answers(now_ms, *told.channel.on_timer(now_ms))
        return []

    def on_directory_failure(self, now_ms: int, directory: uuid.UUID) -> list[Effect]:
        """A directory broke: its replicas are offline until the broker starts anew.

        The controller hears of the directory by heartbeat (KIP-858), or of the replicas (KIP-589).
        Without any directory, or without that of the metadata log, the broker halts and tells
        nobody: the controller learns of it when the session expires.

        Source:  ReplicaManager.handleLogDirFailure, LogManager.handleLogDirFailure.
        """
        if directory not in self.store.online_directories:
            return []
        effects: list[Effect] = []
        lost = set(self.store.fail_directory(directory))
        halts = self.store.cannot_run(self.config.metadata_directory)
        if halts is not None:
            return [BrokerHalted(halts)]
        for key, partition in list(self.partitions.items()):
            if log_name(partition.topic, key[1]) in lost:
                self.take_offline(key, effects)
        if self.rules.failed_replicas_reported_by is FailedReplicas.HEARTBEAT:
            effects.append(DirectoryFailed(directory))
        return self.settle(now_ms, effects) + self._report_offline(now_ms)

    def _report_offline(self, now_ms: int) -> list[Effect]:
        """Tell the controller of replicas that are offline, where it is to hear of replicas."""
        if self.rules.failed_replicas_reported_by is not FailedReplicas.ALTER_REPLICA_STATE:
            return []
        named = ((key, self.image.topics.get(key[0])) for key in self.offline)
        return self.states.follow(now_ms, {key: t.name for key, t in named if t is not None})

    # -- inside ----------------------------------------------------------------------------

    def settle(self, now_ms: int, effects: list[Effect]) -> list[Effect]:
        """Carry out what partitions, fetchers and the manager ask of each other.

        Shapes:  -> what is left for the shell, in the order in which it happened.
        """
        if not any(type(effect) in _INSIDE for effect in effects):
            return effects
        self._depth += 1
        out: list[Effect] = []
        for effect in effects:
            step = _INSIDE.get(type(effect))
            if step is None:
                out.append(effect)
            else:
                out += self.settle(now_ms, step(self, now_ms, effect))
        self._depth -= 1
        if not self._depth and self.rules.isr_changes_of_one_fetch_leave_together:
            out += self.settle(now_ms, self._alter.send_waiting())
        return out

    def take_offline(self, key: Key, effects: list[Effect]) -> None:
        """Stop a replica whose log cannot be used; what waits for it is told."""
        self.stop_fetching(key)
        partition = self.partitions.pop(key)
        self.offline[key] = None
        effects += partition.stop(delete=False)
        effects.append(CheckWaiting(*key))

    def fetch_from(self, leader_id: int, partition: Partition) -> None:
        """Fetch a partition from a leader, from its log end on."""
        fetcher = self.fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self.fetchers[leader_id] = Fetcher(
                broker_id=self.config.broker_id,
                leader_id=leader_id,
                ids=self.ids,
                config=self.fetcher_config,
                broker_epoch=self.view.broker_epoch,
                faults=self.faults,
            )
        key = (partition.topic_id, partition.partition)
        fetcher.add(key, Following(partition), leader_epoch=partition.leader_epoch)

    def stop_fetching(self, key: Key) -> None:
        """Fetch a partition no more."""
        for fetcher in self.fetchers.values():
            if fetcher.remove(key):
                return

    def poll_fetchers(self, now_ms: int) -> list[Effect]:
        """Let fetchers send; drop those that have nothing left to fetch."""
        effects: list[Effect] = []
        for leader_id, fetcher in list(self.fetchers.items()):
            effects += fetcher.poll(now_ms)
            if fetcher.is_idle:
                del self.fetchers[leader_id]
        return effects

    def _fetchers(self) -> list[Fetcher]:
        return list(self.fetchers.values())

    def _answered(self, now_ms: int, effects: list[Effect], answers: list[Answer]) -> list[Effect]:
        for answer in answers:
            if answer.response is None:
                effects += self.settle(now_ms, self._alter.on_failure(now_ms))
            else:
                effects += self.settle(now_ms, self._alter.on_response(now_ms, answer.response))
        return effects

    def _shrink(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for partition in list(self.partitions.values()):
            effects += partition.maybe_shrink_isr(now_ms, self.view)
        interval_ms = self.config.replica_lag_time_max_ms // 2
        return [*self.settle(now_ms, effects), SetTimer(SHRINK_TIMER, now_ms + interval_ms)]

    def _checkpoint(self) -> None:
        marks = {log_name(p.topic, p.partition): p.high_watermark for p in self.partitions.values()}
        if marks != self._checkpointed:
            self._checkpointed = marks
            self.store.checkpoint(marks)

    def _submit(self, now_ms: int, effect: SubmitProposal) -> list[Effect]:
        return self._alter.submit(effect.item)

    def _proposal_answered(self, now_ms: int, effect: ProposalAnswered) -> list[Effect]:
        partition = self.partitions.get((effect.item.topic_id, effect.item.partition))
        if partition is None:
            return []
        return partition.on_alter_partition(now_ms, self.view, effect.item.id, effect.answer)

    def _send_alter(self, now_ms: int, effect: SendAlterPartition) -> list[Effect]:
        version = effect.version
        if isinstance(effect.request, AlterPartitionRequest):
            version = min(version, highest_version(self.rules, AlterPartitionRequest.api_key))
        return self._channel.submit(now_ms, None, effect.request, version)

    def _answers_heard(self, now_ms: int, effect: AnswersGiven) -> list[Effect]:
        return self._alter.answers_heard()

    def _check_waiting(self, now_ms: int, effect: CheckWaiting) -> list[Effect]:
        keys = [(effect.topic_id, effect.partition)]
        return (
            self.fetches.check(now_ms, keys)
            + self.produces.check(now_ms, keys)
            + self.deletes.check(now_ms, keys)
        )

    def _check_produces(self, now_ms: int, effect: CheckWaitingProduces) -> list[Effect]:
        keys = [(effect.topic_id, effect.partition)]
        return self.produces.check(now_ms, keys) + self.fetches.check(now_ms, keys)

    def _nothing(self, now_ms: int, effect: Effect) -> list[Effect]:
        return []


Handler = Callable[[ReplicaManagerMachine, int, Any, Any, int], list[Effect]]
HANDLERS: Mapping[str, Handler] = {
    "ProduceRequest": handle_produce,
    "FetchRequest": handle_fetch,
    "ListOffsetsRequest": handle_list_offsets,
    "OffsetForLeaderEpochRequest": handle_offset_for_leader_epoch,
    "DeleteRecordsRequest": handle_delete_records,
}

_INSIDE: Mapping[type[Effect], Callable[[ReplicaManagerMachine, int, Any], list[Effect]]] = {
    SubmitProposal: ReplicaManagerMachine._submit,
    ProposalAnswered: ReplicaManagerMachine._proposal_answered,
    ProposalNotAttempted: ReplicaManagerMachine._nothing,
    SendAlterPartition: ReplicaManagerMachine._send_alter,
    AnswersGiven: ReplicaManagerMachine._answers_heard,
    CheckWaiting: ReplicaManagerMachine._check_waiting,
    CheckWaitingProduces: ReplicaManagerMachine._check_produces,
}
