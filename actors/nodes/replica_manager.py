"""The replica manager: the actor around a broker's replicas."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from minicluster.actors.answers.places import Place
from minicluster.actors.links import Packet
from minicluster.actors.network import Completion
from minicluster.actors.nodes.authorization import access_of, screened
from minicluster.actors.nodes.coordinators import Coordinators
from minicluster.actors.nodes.metadata_publisher import Published
from minicluster.actors.nodes.shell import NodeContext, Shell
from minicluster.actors.runtime import chance
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.broker.authorization import SCREENS
from minicluster.channel.controller_channel import CorrelationIds
from minicluster.configs.views import given_values
from minicluster.coordinator.apis import COORDINATOR_APIS
from minicluster.effects import Effect
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, partition_of
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.config import FetcherConfig, ReplicaManagerConfig
from minicluster.replica.effects import (
    AlterPartitionFailed,
    BrokerHalted,
    CloseConnection,
    DirectoryFailed,
    FetchFailed,
)
from minicluster.replica.machine import HANDLERS as REPLICA_HANDLERS
from minicluster.replica.machine import ReplicaManagerMachine
from minicluster.replica.partition.partition import Partition
from minicluster.security.screening import EVERYTHING, Asked, Rejected, Screened
from minicluster.values import Value, replace

REPLICA_APIS = COORDINATOR_APIS.union(REPLICA_HANDLERS)
"""The requests that a replica manager handles, or a coordinator beside it."""


class BrokerEpoch(Value):
    """The registration succeeded."""

    epoch: int


class ActiveController(Value):
    """The active controller; None: no leader at present."""

    node_id: int | None


class BeginControlledShutdown(Value):
    """The broker begins a controlled shutdown."""


class EndReplicas(Value):
    """Shut down cleanly: flush every log, then send ``ReplicasEnded``."""


class FailDirectory(Value):
    """A log directory fails."""

    index: int


class ReplicasReady(Value):
    """The first image has been applied."""


class ReplicasEnded(Value):
    """Every log is flushed."""


class DirectoryLost(Value):
    """A failed log directory that the broker has to report to the controller."""

    directory: Any


_COORDINATED = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)


def replica_manager_config(context: NodeContext) -> ReplicaManagerConfig:
    """The settings of a broker's replicas."""
    config, directory_ids = context.config, context.disk.directory_ids
    return ReplicaManagerConfig(
        broker_id=context.node_id,
        incarnation=str(context.incarnation),
        listener=context.listener,
        replica_lag_time_max_ms=config.replica_lag_time_max_ms,
        static=config.static,
        checkpoint_interval_ms=config.high_watermark_checkpoint_interval_ms,
        dir_names=dict(zip(config.log_dirs, directory_ids, strict=False)),
        metadata_directory=config.metadata_directory(directory_ids),
        fetcher=FetcherConfig(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            backoff_ms=config.replica_fetch_backoff_ms,
            request_timeout_ms=config.request_timeout_ms,
            **given_values(FetcherConfig, config.static),
        ),
        **given_values(ReplicaManagerConfig, config.static),
    )


class ReplicaManager(Shell):
    """Requests of producers, consumers and followers; the fetchers of this broker.

    Units:   its machines go by the clock, which shows the time of day until it leaves out a stall;
             records and their retention go by the time of day.
    """

    counts_partitions_once = True  # of internal topics

    def __init__(self, context: NodeContext, *, removes_strays: bool = True) -> None:
        super().__init__(context)
        self.broker: ClusterActor | None = None
        ids = CorrelationIds()
        self.machine = ReplicaManagerMachine(
            replace(replica_manager_config(context), removes_strays=removes_strays),
            context.disk,
            ids=ids,
            rules=context.rules,
            faults=context.faults,
            partition_for=partition_of,
        )
        self._chance = chance.key(self.rt.seed, f"broker/{self.node_id}/{self._incarnation}")
        self._chances = 0
        self._ids = ids
        self._coordinators: Coordinators | None = None
        self._published: Published | None = None  # the newest
        self._first: tuple[int, MetadataImage] | None = None  # the first one, and when it was
        self._controller_id: int | None = None

    @property
    def made_coordinators(self) -> Coordinators | None:
        """The coordinators, if there was a need for them."""
        return self._coordinators

    @property
    def coordinators(self) -> Coordinators:
        """The coordinators, made at the first need.

        Most clusters have no group and no transaction; a seventh of a start went into coordinators.
        These begin as if they had been there: with the newest image, at the time of the first.
        """
        if self._coordinators is None:
            coordinators = Coordinators(self.context, self.machine.state, self._ids, self._new_uuid)
            self._coordinators = coordinators
            if self._first is not None:
                began_ms, image = self._first
                coordinators.startup(image)
                if self._published is not None:
                    self.perform(coordinators.on_metadata(self._published, began_ms))
            self.perform(coordinators.transactions.on_controller(self._controller_id, self.now()))
        return self._coordinators

    def on_receive(self, message: Any) -> Any:
        self.machine.state.behind_ms = self.rt.behind_ms
        super().on_receive(message)

    def now(self) -> int:
        return self.rt.epoch_ms + Shell.now(self)

    def set_timer(self, name: str, at_ms: int) -> None:
        Shell.set_timer(self, name, at_ms - self.rt.epoch_ms)

    def _new_uuid(self) -> uuid.UUID:
        self._chances += 2
        return chance.random_uuid(self._chance, self._chances - 1)

    def on_start(self) -> None:
        self.perform(self.machine.start(self.now()))

    @property
    def partitions(self) -> Mapping[tuple[uuid.UUID, int], Partition]:
        """The replicas that are online here."""
        return self.machine.state.partitions

    def fetched(self, session_id: int) -> list[Place]:
        """The partitions of a fetch session; none where there is no such session."""
        session = self.machine.state.fetch_sessions.find(session_id)
        cached = () if session is None else list(session.partitions.values())
        return [
            Place(
                partition.topic,
                None if partition.topic_id == ZERO_UUID else partition.topic_id,
                partition.data.partition,
            )
            for partition in cached
        ]

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            AlterPartitionFailed: self._alter_partition_failed,
            FetchFailed: self._fetch_failed,
            DirectoryFailed: self._directory_failed,
            BrokerHalted: self._halted,
            CloseConnection: self._close_connection,
        }

    def authorize(self, asked: Asked) -> Screened | Rejected:
        return screened(SCREENS, replace(asked, image=self.machine.state.image))

    def on_packet(self, packet: Packet) -> None:
        exchange, now_ms = packet.exchange, self.now()
        if type(packet.body) in COORDINATOR_APIS:
            self._coordinate(self.coordinators.on_request(packet, now_ms))
        else:
            request, version = packet.body, exchange.version
            client_id = exchange.sender.client_id
            access = access_of(exchange.sender.requester, self.context.authorizer) or EVERYTHING
            effects = self.machine.on_request(
                packet, request, version, now_ms, client_id=client_id, access=access
            )
            self._replicate(effects)

    def on_response(self, completion: Completion) -> None:
        coordinators = self._coordinators
        if coordinators is not None and coordinators.transactions.owns(
            completion.exchange.correlation_id
        ):
            self._coordinate(self.complete(coordinators.transactions, completion))
        else:
            self._replicate(self.complete(self.machine, completion))

    def on_wakeup(self, name: str) -> None:
        coordinators = self._coordinators
        if coordinators is not None and coordinators.owns_timer(name):
            self._coordinate(coordinators.on_timer(name, self.now()))
        else:
            self._replicate(self.machine.on_timer(name, self.now()))

    def on_message(self, message: Any) -> None:
        machine, now_ms = self.machine, self.now()
        match message:
            case Published():
                is_first = self._published is None
                self._replicate(machine.on_metadata(message.delta, now_ms))
                self._publish_to_coordinators(message, now_ms)
                if is_first:
                    self._send_to_broker(ReplicasReady())
            case ActiveController(node_id):
                self._replicate(machine.on_controller(node_id, now_ms))
                self._controller_id = node_id
                if self._coordinators is not None:
                    transactions = self._coordinators.transactions
                    self._coordinate(transactions.on_controller(node_id, now_ms))
            case BrokerEpoch(epoch):
                machine.on_broker_epoch(epoch)
            case BeginControlledShutdown():
                machine.begin_controlled_shutdown()
            case EndReplicas():
                self.perform(machine.shut_down(now_ms))
                self._send_to_broker(ReplicasEnded())
            case FailDirectory(index):
                directory = self.context.disk.directory_ids[index]
                self._replicate(machine.on_directory_failure(directory, now_ms))
            case _:
                super().on_message(message)

    def _replicate(self, effects: Iterable[Effect]) -> None:
        """Perform effects of the replica manager, and report what they committed.

        What is verified or committed may append once more, until nothing is committed any more.
        """
        self.perform(effects)
        coordinators = self._coordinators
        if coordinators is None:
            return
        self.perform(coordinators.groups.end_of_input())
        while (completed := coordinators.on_committed(self.now())) is not None:
            self.perform(completed)
            self.perform(self.machine.end_of_input(self.now()))
            self.perform(coordinators.groups.end_of_input())

    def _count_internal_partitions(self, image: MetadataImage, now_ms: int) -> None:
        """Coordinators go by the partitions of their topics in the first image."""
        if self._first is None:
            self._first = now_ms, image
        elif self.counts_partitions_once:
            return
        else:
            self._first = self._first[0], image
        if self._coordinators is not None:
            self._coordinators.startup(image)

    def _publish_to_coordinators(self, published: Published, now_ms: int) -> None:
        """Let coordinators follow their internal topics, of which the first makes them."""
        topics = published.image.topics
        self._count_internal_partitions(published.image, now_ms)
        if self._coordinators is not None or any(
            name in topics.ids_by_name for name in _COORDINATED
        ):
            self._coordinate(self.coordinators.on_metadata(published, now_ms))
        self._published = published

    def _coordinate(self, effects: Iterable[Effect]) -> None:
        """Perform effects of a coordinator, and those of what it has appended."""
        self.perform(effects)
        self._replicate(self.machine.end_of_input(self.now()))

    def _send_to_broker(self, message: Any) -> None:
        if self.broker is not None:
            self.broker.deliver(message)

    def _alter_partition_failed(self, effect: AlterPartitionFailed) -> None:
        self.log.info(
            "isr.change_failed",
            topic=effect.topic,
            partition=effect.partition,
            isr=effect.isr,
            error=effect.error.name,
            reason=effect.reason,
        )

    def _close_connection(self, effect: CloseConnection) -> None:
        self.network.disconnect(effect.token)

    def _fetch_failed(self, effect: FetchFailed) -> None:
        self.log.warning("fetch.failed", partition=effect.partition, reason=effect.reason)

    def _directory_failed(self, effect: DirectoryFailed) -> None:
        self._send_to_broker(DirectoryLost(effect.directory))

    def _halted(self, effect: BrokerHalted) -> None:
        self.log.error("broker.halted", reason=effect.reason)
        self.context.exited(self.node_id, effect.reason)
