"""The broker: registration, heartbeats and client requests, beside the replica manager.

    controllers ◀──heartbeats── Broker ──install──▶ MetadataPublisher ──images──▶ ReplicaManager
         └──metadata fetches──▶ (observer of the quorum) ──commits──▶ MetadataPublisher

A broker acts on published metadata only, so its view may lag behind the committed log. In a process
that is a controller as well, the controller's quorum machine has the log, and the broker follows it
(``CombinedBroker``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minicluster.actors.links import Packet
from minicluster.actors.network import Completion
from minicluster.actors.nodes.authorization import screened
from minicluster.actors.nodes.config import CONTROLLED_SHUTDOWN
from minicluster.actors.nodes.metadata_publisher import (
    Applied,
    CommitSeen,
    Install,
    LeaderSeen,
    MetadataPublisher,
    Published,
    SnapshotSeen,
)
from minicluster.actors.nodes.quorum_controller import QuorumController
from minicluster.actors.nodes.quorum_shell import (
    QUORUM_REQUESTS,
    QuorumPlan,
    QuorumShell,
    static_configs,
)
from minicluster.actors.nodes.replica_manager import (
    ActiveController,
    BeginControlledShutdown,
    BrokerEpoch,
    DirectoryLost,
    EndReplicas,
    ReplicaManager,
    ReplicasEnded,
    ReplicasReady,
)
from minicluster.actors.nodes.shell import NodeContext, Shell
from minicluster.actors.recording.metadata_sink import Inlet
from minicluster.broker.api_state import KafkaApisConfig
from minicluster.broker.authorization import SCREENS
from minicluster.broker.kafka_apis import (
    APIS,
    AUTO_CREATE_TOPICS,
    TOKEN_REQUESTS,
    KafkaApis,
)
from minicluster.broker.lifecycle import (
    BrokerLifecycle,
    BrokerRegistered,
    BrokerState,
    BrokerStateChanged,
    LifecycleConfig,
)
from minicluster.metadata.image.configs import CORDONED_LOG_DIRS
from minicluster.metadata.snapshot_generator import WriteSnapshot
from minicluster.protocol.messages import BrokerRegistrationRequest
from minicluster.quorum import effects as qx
from minicluster.quorum.machine import QuorumMachine
from minicluster.replica.log_manager import ReplicaStore
from minicluster.security.principals import Requester
from minicluster.security.screening import EVERYTHING, Access, Asked, Rejected, Screened
from minicluster.values import replace


class BeginShutdown:
    """Begin a controlled shutdown of the broker (SIGTERM)."""


class BrokerRoles(Shell):
    """Lifecycle and client API in one mailbox; a subclass has the quorum's view of the log."""

    def compose(
        self, plan: QuorumPlan, publisher: MetadataPublisher, replicas: ReplicaManager
    ) -> None:
        """Make the machines, and connect them to the other actors of the process."""
        self.publisher = publisher
        self.replicas = replicas
        publisher.listener = self
        replicas.broker = self
        context = self.context
        config, disk, rules = context.config, context.disk, context.rules
        addresses = plan.broker_addresses(self.node_id)
        store = ReplicaStore(disk)
        static = static_configs(context, plan, "broker", addresses)
        self.lifecycle = BrokerLifecycle(
            LifecycleConfig(
                broker_id=self.node_id,
                incarnation_id=context.incarnation,
                cluster_id=plan.cluster_id,
                listeners=tuple(
                    BrokerRegistrationRequest.Listener(
                        name=name,
                        host=host,
                        port=port,
                        security_protocol=plan.listeners[name].id,
                    )
                    for name, (host, port) in addresses.items()
                ),
                features=context.features(),
                rack=config.rack_of(self.node_id),
                log_dirs=store.online_directories,
                dir_names=dict(zip(config.log_dirs, disk.directory_ids, strict=False)),
                cordoned_log_dirs=static.get(CORDONED_LOG_DIRS, ""),
                previous_broker_epoch=store.take_previous_epoch(),
                heartbeat_interval_ms=config.heartbeat_interval_ms,
                session_timeout_ms=config.session_timeout_ms,
                initial_registration_timeout_ms=config.initial_registration_timeout_ms,
                log_dir_failure_timeout_ms=config.log_dir_failure_timeout_ms,
                continued_epoch=context.continued_epoch,
            ),
            rules=rules,
            faults=context.faults,
        )
        self.apis = KafkaApis(
            KafkaApisConfig(
                broker_id=self.node_id,
                cluster_id=plan.cluster_id,
                listener=plan.inter_broker_listener,
                features=context.features(),
                static=static,
                rules=rules,
            ),
            ids=self.lifecycle.channel.ids,
        )
        self.apis.state.authorizer = context.authorizer
        self._waiting_for = {"image", "replicas"}
        self._leader = -1

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            **super().interpreters(),
            BrokerRegistered: self._registered,
            BrokerStateChanged: self._state_changed,
        }

    def on_start(self) -> None:
        super().on_start()
        self.perform(self.lifecycle.start(self.now()))

    @property
    def followed(self) -> QuorumMachine:
        """The quorum machine whose log this broker follows."""
        raise NotImplementedError(f"{self.name} follows no quorum")

    # Messages.

    def authorize(self, asked: Asked) -> Screened | Rejected:
        state = self.apis.state
        creates = state.broker_levels.value(AUTO_CREATE_TOPICS) == "true"
        return screened(SCREENS, replace(asked, image=state.image, creates_topics=creates))

    def on_packet(self, packet: Packet) -> None:
        version = packet.exchange.version
        self.apis.state.kraft_version = self.followed.kraft_version
        access = EVERYTHING
        if type(packet.body) in TOKEN_REQUESTS:
            requester = packet.exchange.sender.requester or Requester()
            access = Access(self.context.authorizer, requester)
        effects = self.apis.on_request(packet, packet.body, version, self.now(), access=access)
        self.perform(effects)

    def on_machine_response(self, completion: Completion) -> None:
        is_own = self.lifecycle.channel.owns(completion.exchange.correlation_id)
        self.perform(self.complete(self.lifecycle if is_own else self.apis, completion))

    def on_machine_timer(self, name: str) -> None:
        self.perform(self.lifecycle.on_timer(name, self.now()))
        self.perform(self.apis.on_timer(name, self.now()))

    def on_message(self, message: Any) -> None:
        match message:
            case Applied(offset):
                self.lifecycle.on_metadata_offset(offset)
                self.apis.on_metadata_offset(offset)
            case Published():
                self.perform(self.apis.on_metadata(message.image, message.offset))
                self.perform(self.lifecycle.on_metadata(message.image, self.now()))
                self._ready("image")
            case ReplicasReady():
                self._ready("replicas")
            case BeginShutdown() if not self.context.config.enables(CONTROLLED_SHUTDOWN):
                self.perform(self.lifecycle.shut_down("no controlled shutdown", self.now()))
            case BeginShutdown():
                self.replicas.deliver(BeginControlledShutdown())
                self.perform(self.lifecycle.begin_controlled_shutdown(self.now()))
            case DirectoryLost(directory):
                self.perform(self.lifecycle.propagate_directory_failure(directory, self.now()))
            case ReplicasEnded():
                self.context.exited(self.node_id, "")
            case _:
                super().on_message(message)

    # Effects of the quorum machine.

    def on_commit(self, commit: qx.Commit) -> None:
        """Pass committed batches to the publisher."""
        self.publisher.deliver(CommitSeen(commit.batches, self._high_watermark_or_none()))

    def on_load_snapshot(self, snapshot: qx.LoadSnapshot) -> None:
        """Pass a snapshot to the publisher."""
        self.publisher.deliver(
            SnapshotSeen(snapshot.snapshot_id, snapshot.content, self._high_watermark_or_none())
        )

    def on_leader_change(self, change: qx.LeaderChange) -> None:
        """Turn to another active controller."""
        self.publisher.deliver(LeaderSeen(change.leader_id, change.epoch))
        if change.leader_id != self._leader:
            self._leader = change.leader_id
            controller = change.leader_id if change.leader_id >= 0 else None
            self.replicas.deliver(ActiveController(controller))
            for channel in (self.lifecycle.channel, self.apis.channel):
                self.perform(channel.on_controller(controller, self.now()))

    def _high_watermark_or_none(self) -> int | None:
        mark = self.followed.high_watermark
        return None if mark < 0 else mark

    # Effects of the lifecycle.

    def _registered(self, registered: BrokerRegistered) -> None:
        self.log.info("broker.registered", epoch=registered.broker_epoch)
        self.replicas.deliver(BrokerEpoch(registered.broker_epoch))

    def _state_changed(self, changed: BrokerStateChanged) -> None:
        self.log.info("broker.state", state=changed.state.name, reason=changed.reason)
        if changed.state is BrokerState.RECOVERY:
            self.publisher.deliver(Install("replica-manager", self.replicas))
            self.publisher.deliver(Install("broker", self))
        elif changed.state is BrokerState.SHUTTING_DOWN:
            self.replicas.deliver(EndReplicas())

    def _ready(self, what: str) -> None:
        """Listen, and request to be unfenced, once both machines have applied the first image.

        The directories of replicas are in a request of their own at that time: recorded logs of
        Apache Kafka have the unfencing before them, in one batch.

        Source:  BrokerServer.startup: enableRequestProcessing comes after the first publish.
        """
        if what in self._waiting_for:
            self._waiting_for.discard(what)
            if not self._waiting_for:
                self.network.listen(self.node_id)
                self.perform(self.lifecycle.set_ready_to_unfence(self.now()))


class Broker(BrokerRoles, QuorumShell):
    """A broker that observes the quorum: three machines in one mailbox."""

    def __init__(
        self,
        context: NodeContext,
        plan: QuorumPlan,
        publisher: MetadataPublisher,
        replicas: ReplicaManager,
        inlet: Inlet | None,  # where the commits of controllers outside are reported
    ) -> None:
        QuorumShell.__init__(self, context, plan)
        self.inlet = inlet
        self.compose(plan, publisher, replicas)

    @property
    def followed(self) -> QuorumMachine:
        return self.quorum

    def on_packet(self, packet: Packet) -> None:
        kind = type(packet.body)
        if kind in QUORUM_REQUESTS and kind not in APIS:
            self.on_quorum_request(packet, packet.body, packet.exchange.version)
        else:
            super().on_packet(packet)

    def on_message(self, message: Any) -> None:
        if isinstance(message, WriteSnapshot):
            self.write_snapshot(message)
        else:
            super().on_message(message)

    def on_commit(self, commit: qx.Commit) -> None:
        if self.inlet is not None:
            self.inlet.offer(commit.batches)
        super().on_commit(commit)


class CombinedBroker(BrokerRoles):
    """The broker of a process that is a controller as well, whose quorum machine it follows.

    Source:  SharedServer: one raft manager, one metadata loader and one snapshot generator.
    """

    controller: QuorumController  # before the first message

    def __init__(
        self,
        context: NodeContext,
        plan: QuorumPlan,
        publisher: MetadataPublisher,
        replicas: ReplicaManager,
    ) -> None:
        super().__init__(context)
        self.compose(plan, publisher, replicas)

    @property
    def followed(self) -> QuorumMachine:
        return self.controller.quorum

    on_response = BrokerRoles.on_machine_response
    on_wakeup = BrokerRoles.on_machine_timer

    def on_message(self, message: Any) -> None:
        match message:
            case qx.Commit():
                self.on_commit(message)
            case qx.LoadSnapshot():
                self.on_load_snapshot(message)
            case qx.LeaderChange():
                self.on_leader_change(message)
            case WriteSnapshot():
                pass  # the controller writes the snapshots of their log
            case _:
                super().on_message(message)
