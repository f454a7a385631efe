"""A broker on ZooKeeper: its session, its candidate for the controller, its clients' requests.

    ZooKeeper ◀─── session ───▶ ZkBroker ──Published──▶ ZkReplicaManager
                                 │   ▲
          controller machine ────┘   └── LeaderAndIsr, StopReplica, UpdateMetadata of the controller

The controller's requests become an image (``ControlRequests``), and the replica manager acts on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from minicluster import effects as fx
from minicluster.actors.links import Packet
from minicluster.actors.network import Completion
from minicluster.actors.nodes.broker import BeginShutdown
from minicluster.actors.nodes.config import CONTROLLED_SHUTDOWN
from minicluster.actors.nodes.quorum_shell import QuorumPlan
from minicluster.actors.nodes.replica_manager import (
    ActiveController,
    BeginControlledShutdown,
    BrokerEpoch,
    DirectoryLost,
    EndReplicas,
    ReplicasEnded,
    ReplicasReady,
)
from minicluster.actors.nodes.shell import NodeContext, Shell
from minicluster.actors.zookeeper.controller_metadata import ControllerMetadata
from minicluster.actors.zookeeper.replica_manager import (
    RegisteredEpoch,
    WriteToZooKeeper,
    WrittenToZooKeeper,
    ZkReplicaManager,
)
from minicluster.broker.api_state import KafkaApisConfig, OnZooKeeper
from minicluster.broker.kafka_apis import KafkaApis
from minicluster.controller.settings import UNCLEAN_ELECTION
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    ElectLeadersRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from minicluster.replica.broker_context import NO_BROKER_EPOCH
from minicluster.rules import FailedReplicas
from minicluster.security.protocols import LISTENER
from minicluster.values import replace
from minicluster.zookeeper.broker.admin_requests import (
    ADMIN_REQUESTS,
    process_admin,
)
from minicluster.zookeeper.broker.admin_state import AdminState
from minicluster.zookeeper.broker.alter_configs import preprocessed
from minicluster.zookeeper.broker.control_requests import NO_GIVEN_EPOCH
from minicluster.zookeeper.broker.controlled_shutdown import TIMER as SHUTDOWN_TIMER
from minicluster.zookeeper.broker.controlled_shutdown import ControlledShutdown, LeadershipsMoved
from minicluster.zookeeper.broker.delayed_elections import TIMER as ELECTIONS_TIMER
from minicluster.zookeeper.broker.delayed_elections import (
    DelayedElections,
    all_partitions,
    without_needless,
)
from minicluster.zookeeper.broker.delayed_topic_operations import TIMER as OPERATIONS_TIMER
from minicluster.zookeeper.broker.delayed_topic_operations import DelayedTopicOperations
from minicluster.zookeeper.broker.isr_writer import CHECK_INTERVAL_MS, IsrWriter
from minicluster.zookeeper.broker.isr_writer import TIMER as ISR_TIMER
from minicluster.zookeeper.broker.refusals import BY_ANY_BROKER, UNSERVED, refusal_of
from minicluster.zookeeper.broker.registration import (
    REGISTER_AGAIN,
    REGISTER_BACKOFF_MS,
    changed_entities,
    read_broker_configs,
    read_configs,
    register,
)
from minicluster.zookeeper.controller import effects as cx
from minicluster.zookeeper.controller.allocate_producer_ids import allocate_producer_ids
from minicluster.zookeeper.controller.channels import TIMER_PREFIX, ControllerChannels
from minicluster.zookeeper.controller.controller_state import AUTO_REBALANCE
from minicluster.zookeeper.controller.machine import ZooKeeperControllerMachine
from minicluster.zookeeper.controller.requests import CONTROLLER_REQUESTS
from minicluster.zookeeper.controller.settings import (
    ReleaseRules,
    ZooKeeperControllerSettings,
)
from minicluster.zookeeper.process import Process, ProcessLane
from minicluster.zookeeper.server.client import TIMER as SESSION_TIMER
from minicluster.zookeeper.server.client import (
    Results,
    SessionExpired,
    SessionOpened,
    ZooKeeperClient,
)
from minicluster.zookeeper.server.messages import ZooKeeperWatchRequest, ZooKeeperWatchResponse
from minicluster.zookeeper.server.operations import Create
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import BrokerRegistration, ZnodeEndpoint
from minicluster.zookeeper.znodes.notifications import encode_log_dir_event

CONTROLLER = "controller"
FEATURES_VERSION, NO_FEATURES = 0, -1  # of /feature, which is written once


class ZkBroker(Shell):
    """The machines of one broker besides its replicas, in one mailbox."""

    def __init__(
        self,
        context: NodeContext,
        plan: QuorumPlan,
        protocol: InterBrokerProtocol,
        server: int,
        replicas: ZkReplicaManager,
        new_id: Callable[[], UUID],
    ) -> None:
        super().__init__(context)
        config = context.config
        self.plan, self.protocol, self.replicas = plan, protocol, replicas
        replicas.broker = self
        self._new_id = new_id
        self.session = ZooKeeperClient(
            server=server, timeout_ms=config.zookeeper_session_timeout_ms
        )
        host, port = plan.host(self.node_id), plan.port(self.node_id)
        self.registration = BrokerRegistration(
            endpoints=(
                ZnodeEndpoint(listener=LISTENER, security_protocol=LISTENER, host=host, port=port),
            ),
            timestamp_ms=0,
            version=protocol.broker_znode_version,
        )
        self.controller = ZooKeeperControllerMachine(
            settings=_controller_settings(context, protocol),
            registration=self.registration,
            new_topic_id=new_id,
            faults=context.faults,
        )
        self.channels = ControllerChannels(config.request_timeout_ms)
        self.metadata = ControllerMetadata(
            self.node_id,
            protocol,
            is_offline=self._is_offline,
            show=self._show,
            publish=replicas.deliver,
        )
        self.requests = self.metadata.requests
        self.isr = IsrWriter(self.node_id, self.now(), context.faults)
        self.apis = KafkaApis(
            KafkaApisConfig(
                broker_id=self.node_id,
                cluster_id=plan.cluster_id,
                listener=LISTENER,
                features=context.features(),
                static=dict(config.static),
                rules=context.rules,
                unserved=UNSERVED,
            )
        )
        self._seen_changes: set[str] = set()
        self._control, self._isr, self._own = (ProcessLane(self._submit_of) for _ in range(3))
        self._listening = False
        self._early: list[Packet] = []
        self.topic_operations = DelayedTopicOperations()
        self.elections = DelayedElections()
        self.controlled_shutdown = ControlledShutdown(
            self.node_id,
            config.controlled_shutdown_attempts,
            config.controlled_shutdown_backoff_ms,
            config.request_timeout_ms,
        )

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            cx.RequestZooKeeper: self._submit_of_controller,
            cx.OpenChannel: self._channel,
            cx.CloseChannel: self._channel,
            cx.ControlRequest: self._channel,
            cx.RespondOnceLed: self._respond_once_led,
            SessionOpened: self._opened,
            SessionExpired: self._expired,
            Results: self._results,
            LeadershipsMoved: lambda _: self.replicas.deliver(EndReplicas()),
        }

    def on_start(self) -> None:
        self.perform(self.session.start(self.now()))
        if not self.protocol.alter_partition_supported:
            self.set_timer(ISR_TIMER, self.now() + CHECK_INTERVAL_MS)

    # Requests.

    def on_packet(self, packet: Packet) -> None:
        body, version = packet.body, packet.exchange.version
        match body:
            case ZooKeeperWatchRequest():
                self._watched(packet, body)
            case _ if self.requests.broker_epoch == NO_GIVEN_EPOCH:
                self._early.append(packet)
            case LeaderAndIsrRequest():
                process = read_configs(self.requests.new_topics(body))
                self._control.run(
                    process,
                    lambda configs: self.network.respond(
                        packet, self.metadata.lead(body, version, configs)
                    ),
                )
            case StopReplicaRequest():
                # It must not overtake a LeaderAndIsr whose configs are still being read.
                self._control.run(
                    read_configs([]),
                    lambda _: self.network.respond(packet, self.metadata.stop_replicas(body)),
                )
            case UpdateMetadataRequest():
                self._control.run(read_configs([]), lambda _: self._update(packet))
            case ElectLeadersRequest():
                self._elect(packet, body, version)
            case _ if isinstance(body, CONTROLLER_REQUESTS):
                self.perform(self.controller.on_request(packet, body, version, self.now()))
            case _:
                self._of_client(packet, body, version)

    def _elect(self, packet: Packet, request: ElectLeadersRequest, version: int) -> None:
        """Elect leaders; a request that names no partition is about all that this broker shows."""
        if request.topic_partitions is None:
            request = replace(request, topic_partitions=all_partitions(self.requests.cache.topics))
        self.perform(self.controller.on_request(packet, request, version, self.now()))

    def _respond_once_led(self, effect: cx.RespondOnceLed) -> None:
        if effect.token.body.topic_partitions is None:
            effect = replace(effect, response=without_needless(effect.response))
        self.perform(self.elections.add(effect, self.requests.cache.topics, self.now()))

    def _of_client(self, packet: Packet, request: Any, version: int) -> None:
        is_controller = self.controller.state.is_active
        refusal = refusal_of(request, version, is_controller=is_controller)
        if refusal is not None:
            self.network.respond(packet, refusal)
        elif isinstance(request, ADMIN_REQUESTS):
            self._administrate(packet)
        else:
            self.perform(self.apis.on_request(packet, request, version, self.now()))

    def on_response(self, completion: Completion) -> None:
        number = completion.exchange.correlation_id
        if self.session.owns(number):
            self.perform(self.complete(self.session, completion))
        elif self.channels.owns(number):
            self._channel_response(number, completion)
        elif self.controlled_shutdown.owns(number):
            self.perform(self.complete(self.controlled_shutdown, completion))
        else:
            self.perform(self.complete(self.apis, completion))

    def on_wakeup(self, name: str) -> None:
        now_ms = self.now()
        if name == SESSION_TIMER:
            self.perform(self.session.on_timer(name, now_ms))
        elif name == AUTO_REBALANCE:
            self.perform(self.controller.on_timer(name, now_ms))
        elif name.startswith(TIMER_PREFIX):
            self.perform(self.channels.on_timer(name))
        elif name == REGISTER_AGAIN:
            self._register()
        elif name == SHUTDOWN_TIMER:
            self.perform(self.controlled_shutdown.attempt(now_ms))
        elif name in (OPERATIONS_TIMER, ELECTIONS_TIMER):
            self._complete_delayed()
        elif name == ISR_TIMER:
            self._isr.run(self.isr.propagate(now_ms), lambda _: self._hits_of_writer())
            self.set_timer(ISR_TIMER, now_ms + CHECK_INTERVAL_MS)
        else:
            self.perform(self.apis.on_timer(name, now_ms))

    def on_message(self, message: Any) -> None:
        match message:
            case ReplicasReady():
                if not self._listening:
                    self._listening = True
                    self.network.listen(self.node_id)
            case WriteToZooKeeper(number, AllocateProducerIdsRequest()):
                process = allocate_producer_ids(self.node_id)
                self._own.run(process, lambda response: self._written(number, response))
            case WriteToZooKeeper(number, AlterPartitionRequest() as request):
                self._write_isr(number, request)
            case DirectoryLost():
                event = encode_log_dir_event(self.node_id)
                self._own.run(_create(paths.LOG_DIR_EVENT_PREFIX, event), lambda _: None)
            case BeginShutdown() if not self.context.config.enables(CONTROLLED_SHUTDOWN):
                self.replicas.deliver(EndReplicas())
            case BeginShutdown():
                self.replicas.deliver(BeginControlledShutdown())
                self.perform(self.controlled_shutdown.attempt(self.now()))
            case ReplicasEnded():
                self.perform(self.session.close(self.now()))
                self.context.exited(self.node_id, "")
            case _:
                super().on_message(message)

    # The session.

    def _opened(self, opened: SessionOpened) -> None:
        self.log.info("zookeeper.session", session=hex(opened.session))
        self._register()

    def _register(self) -> None:
        cluster_id, session = self.plan.cluster_id, self.session.session
        process = register(self.node_id, self.registration, cluster_id, session)
        self._own.run(process, self._registered)

    def _registered(self, epoch: int | None) -> None:
        if epoch is None:
            self.set_timer(REGISTER_AGAIN, self.now() + REGISTER_BACKOFF_MS)
            return
        self.log.info("broker.registered", epoch=epoch)
        self.requests.broker_epoch = self.controlled_shutdown.broker_epoch = epoch
        self.replicas.deliver(BrokerEpoch(NO_BROKER_EPOCH))  # fetches carry none on ZooKeeper
        self.replicas.deliver(RegisteredEpoch(epoch))
        self._own.run(changed_entities(self._seen_changes), self._configs_changed)
        self.perform(self.controller.on_start(self.now()))
        self._take_early()

    def _take_early(self) -> None:
        """Take the requests that came before there was a broker epoch.

        The epoch shows which of them are for an earlier process of this broker.
        Source:  KafkaServer.startup, SocketServer.enableRequestProcessing.
        """
        early, self._early = self._early, []
        for packet in early:
            self.on_packet(packet)

    def _expired(self, _: SessionExpired) -> None:
        self.log.warning("zookeeper.expired")
        self.perform(self.controller.on_session_expired(self.now()))

    def _watched(self, packet: Packet, request: ZooKeeperWatchRequest) -> None:
        self.network.respond(packet, ZooKeeperWatchResponse())
        if request.session != self.session.session:
            return  # of a session that has expired
        if request.event.path == paths.CONFIG_CHANGES:
            self._own.run(changed_entities(self._seen_changes), self._configs_changed)
        self.perform(self.controller.on_watch(request.event, self.now()))

    def _configs_changed(self, entities: list[tuple[str, str]]) -> None:
        image = self.requests.image
        topics = [name for kind, name in entities if kind == "topics"]
        known = [topic for topic in topics if image.topics.named(topic) is not None]
        if known:
            self._own.run(read_configs(known), self._take_configs)
        brokers = [name for kind, name in entities if kind == "brokers"]
        if paths.DEFAULT_ENTITY in brokers or str(self.node_id) in brokers:
            self._own.run(read_broker_configs(self.node_id), self._take_broker_configs)

    def _take_configs(self, configs: dict[str, dict[str, str]] | None) -> None:
        for topic, values in (configs or {}).items():
            self.requests.set_configs(topic, values)
            if values.get(UNCLEAN_ELECTION, "").lower() == "true":
                self.perform(self.controller.on_unclean_enabled(topic, self.now()))
        self.metadata.publish()

    def _take_broker_configs(self, configs: dict[str, dict[str, str]]) -> None:
        """Source:  kafka.server.DynamicLogConfig.reconfigure, for unclean elections."""
        changed = [self.requests.set_broker_configs(name, new) for name, new in configs.items()]
        if not any(changed):
            return
        self._show()
        unclean = self.apis.state.broker_levels.value(UNCLEAN_ELECTION) or ""
        allowed = unclean.strip().lower() == "true"
        self.perform(self.controller.on_unclean_default(allowed, self.now()))
        self.metadata.publish()

    # ZooKeeper's results.

    def _submit_of_controller(self, effect: cx.RequestZooKeeper) -> None:
        self.perform(self.session.submit(CONTROLLER, effect.requests, self.now(), may_wait=False))

    def _submit_of(self, lane: ProcessLane, requests: tuple[Any, ...]) -> None:
        self.perform(self.session.submit(lane, requests, self.now()))

    def _results(self, effect: Results) -> None:
        if effect.key == CONTROLLER:
            self.perform(self.controller.on_zookeeper(effect.results, self.now()))
        else:
            effect.key.resume(effect.results)

    # Control requests: of this controller, and to this broker.

    def _channel(self, effect: Any) -> None:
        self.perform(self.channels.on_effect(effect))

    def _channel_response(self, number: int, completion: Completion) -> None:
        if completion.failure is not None:
            self.perform(self.channels.on_failure(number, self.now()))
            return
        sent, effects = self.channels.on_response(number)
        self.perform(effects)
        if sent is not None:
            response = completion.response
            self.perform(
                self.controller.on_control_response(sent.to, sent.request, response, self.now())
            )

    def _update(self, packet: Packet) -> None:
        response = self.metadata.update(packet.body)
        self.network.respond(packet, response)
        if response.error_code == ErrorCode.NONE:
            self._take_controller(self.requests.controller)

    def _take_controller(self, controller: int | None) -> None:
        if controller == self.controlled_shutdown.controller:
            return
        self.controlled_shutdown.controller = controller
        to_controller = self.protocol.alter_partition_supported
        self.replicas.deliver(ActiveController(controller if to_controller else self.node_id))
        self.perform(self.apis.channel.on_controller(controller, self.now()))

    def _administrate(self, packet: Packet) -> None:
        shown = self.requests.shown
        levels = self.apis.state.broker_levels
        state = AdminState(self.controller.state, shown, levels, self._new_id)
        body, version, lane = packet.body, packet.exchange.version, ProcessLane(self._submit_of)
        if isinstance(body, BY_ANY_BROKER):
            checked = preprocessed(self.apis.state, body, self.controller.state.settings.release)
            process = process_admin(state, checked.request, version)
            lane.run(
                process,
                lambda response: self.network.respond(packet, checked.whole_response(response)),
            )
        else:
            process = process_admin(state, body, version)
            lane.run(process, lambda response: self._administrated(packet, response))

    def _administrated(self, packet: Packet, response: Any) -> None:
        topics, now_ms = self.requests.cache.topics, self.now()
        self.perform(self.topic_operations.add(packet, packet.body, response, topics, now_ms))

    def _complete_delayed(self) -> None:
        topics, now_ms = self.requests.cache.topics, self.now()
        self.perform(self.topic_operations.on_metadata(topics, now_ms))
        self.perform(self.elections.on_metadata(topics, now_ms))

    def _is_offline(self, partition: TopicPartition) -> bool:
        topic = self.requests.image.topics.named(partition.topic)
        offline = self.replicas.machine.state.offline
        return topic is not None and (topic.id, partition.partition) in offline

    def _show(self) -> None:
        """Clients are shown the metadata cache."""
        cache, protocol = self.requests.cache, self.protocol
        self.apis.state.on_zookeeper = OnZooKeeper(
            cache.controller, cache.offline_replicas, protocol.topic_ids_supported
        )
        features_version = FEATURES_VERSION if protocol.features_supported else NO_FEATURES
        self.perform(self.apis.on_metadata(self.requests.shown, features_version))
        self._complete_delayed()

    # Requests to the controller, below the levels that have them.

    def _write_isr(self, number: int, request: AlterPartitionRequest) -> None:
        topics = self.requests.image.topics.by_id
        names: dict[object, str] = {topic_id: topic.name for topic_id, topic in topics.items()}
        epochs = {p: state.controller_epoch for p, state in self.requests.hosted.items()}
        process = self.isr.write(request, names, epochs, self.now())
        self._isr.run(process, lambda response: self._written(number, response))
        self._hits_of_writer()  # the write itself may end the run

    def _written(self, number: int, response: Any) -> None:
        self._hits_of_writer()
        self.replicas.deliver(WrittenToZooKeeper(number, response))

    def _hits_of_writer(self) -> None:
        self.perform(fx.FaultHit(fault) for fault in self.isr.take_hits())


def _create(path: str, data: bytes) -> Process[None]:
    yield (Create(path, data, sequential=True),)


def _controller_settings(
    context: NodeContext, protocol: InterBrokerProtocol
) -> ZooKeeperControllerSettings:
    """The configs that the candidate for the controller reads, and the rules of its release.

    By the text of KIP-589 brokers send AlterReplicaState; else they write a znode.
    """
    config, reported_by = context.config, context.rules.failed_replicas_reported_by
    unclean = config.static.get(UNCLEAN_ELECTION, "false")
    return ZooKeeperControllerSettings(
        broker_id=context.node_id,
        protocol=protocol,
        unclean_leader_election_enable=unclean.lower() == "true",
        auto_leader_rebalance_enable=config.auto_leader_rebalance,
        delete_topic_enable=config.enables("delete.topic.enable"),
        leader_imbalance_check_interval_ms=config.imbalance_check_interval_ms,
        leader_imbalance_per_broker_percentage=config.leader_imbalance_percentage,
        own_writes_recognized=not context.rules.own_state_write_is_refused,
        replica_states_reported=reported_by is FailedReplicas.ALTER_REPLICA_STATE,
        release=ReleaseRules.of(protocol.release),
    )
