"""A cluster: the state that its nodes share, and views of it. Its actions are in ``actions/``.

::

    Cluster            nodes, disks, network, clock; the active controller, leaders, committed image
      └─ ClusterRoles  the nodes that selectors name
           └─ RunningCluster   a life: start, wait, stop
    MiniCluster        the face of a running cluster: what is public, the functions of actions/
                       (network, processes, controllers, disks, topics, records) among it
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from minicluster.actors.answers.answer import Answer
from minicluster.actors.answers.interception import Interception
from minicluster.actors.cluster.client import Client, Load
from minicluster.actors.cluster.layout import (
    OutsideQuorum,
    OwnIds,
    check_counts,
    check_supported,
    check_types,
    checked_ids,
    checked_mode,
    checked_quorum,
    checked_run_id,
    config_of,
    pace_of,
    rules_and_faults,
    version_of,
)
from minicluster.actors.cluster.process import Process
from minicluster.actors.cluster.security import Security
from minicluster.actors.links import Condition
from minicluster.actors.listeners.address import ListenAddress
from minicluster.actors.listeners.client_nodes import ClientNodes
from minicluster.actors.network import Network, ThreadedNetwork
from minicluster.actors.nodes.clock import NodeClock
from minicluster.actors.nodes.config import BROKER_RACK, ClusterConfig
from minicluster.actors.nodes.disk import Disk
from minicluster.actors.nodes.quorum_controller import QuorumController
from minicluster.actors.nodes.quorum_shell import QuorumPlan
from minicluster.actors.recording.committed_image import CommittedImage, LogStart
from minicluster.actors.recording.logging import ClusterLog
from minicluster.actors.recording.metadata_sink import CommitFollower, Inlet
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime import chance
from minicluster.actors.runtime.paced import PacedRuntime
from minicluster.actors.runtime.runtime import Runtime
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.actors.runtime.threaded import ThreadedRuntime
from minicluster.actors.zookeeper.log import ZooKeeperLog
from minicluster.configs.views import given_values
from minicluster.errors import NeverFired, UserError, instead
from minicluster.faults import Faults
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.quorum_state import QUORUM_STATE_NAME, QuorumState
from minicluster.metadata import metadata_version as mv
from minicluster.metadata.bootstrap import bootstrap_records, default_features
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.metadata.supported_features import supported_features
from minicluster.protocol.uuids import format_uuid
from minicluster.quorum.settings import QuorumSettings
from minicluster.replica.partition.partition import Partition
from minicluster.rules import Rules
from minicluster.scenario.checks.limits import shown
from minicluster.scenario.scenario import FIRST_CONTROLLER, default_runtime
from minicluster.scenario.view import ZOOKEEPER_NODE
from minicluster.security.principals import Requester
from minicluster.values import replace

if TYPE_CHECKING:
    from minicluster.actors.security.authority import Authority

if TYPE_CHECKING:  # loaded by the first action with such a client
    from minicluster.actors.cluster.adoption import Adoption
    from minicluster.actors.cluster.clients.group_clients import (
        ConsumerActor,
        ConsumerGroup,
        TransactionalProducerActor,
        TransactionLoad,
    )
    from minicluster.actors.programs.programs import Programs

INTER_BROKER_LISTENER = "inter.broker.listener.name"
SEEN_WITHIN_MS = 5_000
KRAFT, ZOOKEEPER = "kraft", "zookeeper"
RuntimeName = Literal["simulated", "threaded"]


class Cluster:
    """Controllers 101, 102, … and brokers 1, 2, …: their disks, processes and network."""

    rt: Runtime
    own_client: Client  # since the start
    requester: Requester | None = None  # as whom it asks; None: as the cluster itself
    is_started = False
    disturbed_ms = 0  # when a disturbance last began or ended
    broker_ids: tuple[int, ...]
    controller_ids: tuple[int, ...]
    node_ids: tuple[int, ...]
    starting: tuple[int, ...]  # the brokers that run from the start on

    def __init__(
        self,
        *,
        brokers: int = 3,
        controllers: int = 3,
        broker_ids: Sequence[int] | None = None,
        controller_ids: Sequence[int] | None = None,
        seed: int = 0,
        metadata_version: str | None = None,
        rules: Rules | str | None = None,
        faults: Faults | Iterable[str] = (),
        runtime: RuntimeName | None = None,
        listeners: bool | str | Sequence[str] | ListenAddress = False,
        users: Mapping[str, str] | None = None,
        super_users: Sequence[str] = (),
        pace: float | None = None,
        quorum: OutsideQuorum | None = None,
        wire: bool = False,
        config: Mapping[str, Any] | None = None,
        node_configs: Mapping[int, Mapping[str, Any]] | None = None,
        features: Mapping[str, int] | None = None,
        online: bool = True,
        checks: Sequence[CommitFollower] = (),
        scenario: Mapping[str, Any] | None = None,
        exercises: Sequence[str] = (),
        run_id: str | None = None,
        mode: str = KRAFT,
        inter_broker_protocol: str | None = None,
        adopted: Adoption | None = None,
    ) -> None:
        """Lay a cluster out; ``start`` or ``with`` starts it.

        Arguments: brokers: how many; their ids are 1, 2, ….
            controllers: how many; their ids are 101, 102, ….
            broker_ids: ids of your own in place of a count.
            controller_ids: the same for controllers; a node in both lists is a broker and a
                controller.
            seed: what decides every chance of a simulated cluster.
            metadata_version: to format with, such as "3.9-IV0"; by default the release's own.
            rules: a release, "kafka-3.9" or "kafka-4.3" (the default), and changes of its rules.
            faults: ids of planted faults that are in effect from the start.
            runtime: "simulated", on a clock that jumps, or "threaded", in real time, which is what
                a cluster with listeners is unless a pace is given.
            listeners: True: each node has a port of its own on the loopback, any free one; or a
                ListenAddress; or how clients connect to such ports: "SSL", "SASL_PLAINTEXT",
                "SASL_SSL"; or several listeners of each broker, ["PLAINTEXT", "SASL_SSL"], whose
                names may be your own with config listener.security.protocol.map.
            users: passwords by name, of those who log in by SASL.
            super_users: names of those who may do everything; all others need ACLs.
            pace: seconds of a simulated cluster per second of the wall clock; by default 1 with
                listeners, else as fast as possible.
            quorum: controllers of another process in place of those here (OutsideQuorum).
            config: configs of Kafka's brokers and controllers, for all nodes.
            node_configs: configs of single nodes by id, before those of config.
            features: levels to format with; by default the release's.
            mode: "kraft", or "zookeeper": node 201 is a ZooKeeper server, and a broker is the
                controller.
            inter_broker_protocol: its level on ZooKeeper, such as "2.7".
        Errors:  UserError in one line for invalid arguments.
        """
        # Of this package alone: wire: every message crosses the codec. online: it is judged while
        # it runs (verify.live). checks: more followers of the commits. scenario, exercises: for
        # run.json. run_id: the name of its folder. adopted: the log whose cluster this is.
        if runtime is None:
            default = default_runtime(listeners=bool(listeners), pace=pace)
            runtime = cast(RuntimeName, default)
        check_counts(brokers=brokers, controllers=controllers, seed=seed, runtime=runtime)
        check_types(locals())
        own_ids = checked_ids(broker_ids, controller_ids, mode=mode)
        self.seed = seed
        self.pace = pace_of(pace, runtime=runtime, listeners=bool(listeners))
        self.runtime_name: RuntimeName = runtime
        self.quorum = checked_quorum(quorum, listeners=bool(listeners), runtime=runtime)
        named = listeners.listeners if isinstance(listeners, ListenAddress) else listeners
        self.security = Security.of(named, users, super_users, config or {})
        self._authority: Authority | None = None
        self.certificates_have_expired = False  # those that new connections are shown
        own = listeners if isinstance(listeners, ListenAddress) else ListenAddress()
        self.listen_address = own if listeners else None
        self.run_id = f"{runtime}-{seed}" if run_id is None else checked_run_id(run_id)
        self.mode = checked_mode(mode, inter_broker_protocol)
        self.protocol = InterBrokerProtocol.parse(inter_broker_protocol or "3.9")
        self.adopted = adopted
        self._number_nodes(brokers, controllers, own_ids)
        of_log = None if adopted is None else adopted.rules
        self.rules, self.faults = rules_and_faults(rules or of_log, faults)
        self.given_config = {**self.security.config(), **(config or {})}
        count = len(self.controller_ids) or controllers
        self.config = config_of(
            self.given_config,
            brokers=len(self.broker_ids),
            controllers=count,
            threaded=runtime == "threaded",
        )
        self.given_node_configs = dict(node_configs or {})
        self._plan_bootstrap(metadata_version, features)
        self.wire, self.scenario, self.exercises = wire, scenario, tuple(exercises)
        self.step: int | None = None  # the current step of a scenario
        self.online, self.znodes_judged = online and mode == KRAFT, online and mode == ZOOKEEPER
        self.checks = tuple(checks)
        self._lay_out()

    def authority(self) -> Authority:
        """The cluster's own authority, made when its first certificate is needed."""
        if self._authority is None:
            from minicluster.actors.security.authority import Authority

            self._authority = Authority()
        return self._authority

    @property
    def listen_host(self) -> str:
        """The host that clients connect to."""
        address = self.listen_address or ListenAddress()
        return address.advertised or address.host

    def _plan_bootstrap(
        self, metadata_version: str | None, features: Mapping[str, int] | None
    ) -> None:
        """Choose the records with which the log of a new cluster begins."""
        self.metadata_version = version_of(metadata_version, self.rules)
        levels = default_features(self.metadata_version) if features is None else dict(features)
        if self.config.eligible_leader_replicas is not None:
            levels[mv.ELR_VERSION] = int(self.config.eligible_leader_replicas)
        self.bootstrap = bootstrap_records(self.metadata_version, levels, rules=self.rules)
        if self.metadata_version.scram_supported:
            self.bootstrap = (*self.bootstrap, *self.security.bootstrap_records(self.seed))
        if self.quorum is None and self.mode == KRAFT and self.adopted is None:
            check_supported(
                {**levels, mv.FEATURE_NAME: self.metadata_version.level},
                supported_features(self.rules, unstable=self.config.unstable_feature_versions),
            )

    def _number_nodes(self, brokers: int, controllers: int, own_ids: OwnIds) -> None:
        """Brokers 1, 2, …; controllers 101, 102, …, or the ZooKeeper server; or those of a log."""
        if self.adopted is not None:
            self.broker_ids = self.adopted.broker_ids
            self.starting = self.adopted.starting
            self.controller_ids = self.adopted.controller_ids
            self.node_ids = tuple(dict.fromkeys((*self.broker_ids, *self.controller_ids)))
            return
        here = self.quorum is None and self.mode == KRAFT
        own = controllers if here else 0
        numbered = tuple(range(1, brokers + 1))
        self.broker_ids = self.starting = numbered if own_ids.brokers is None else own_ids.brokers
        first_ids = tuple(range(FIRST_CONTROLLER, FIRST_CONTROLLER + own))
        self.controller_ids = first_ids if own_ids.controllers is None else own_ids.controllers
        of_zookeeper = (ZOOKEEPER_NODE,) if self.mode == ZOOKEEPER else ()
        every = (*self.broker_ids, *self.controller_ids, *of_zookeeper)
        self.node_ids = tuple(dict.fromkeys(every))

    def _configure_nodes(self) -> None:
        """Give single nodes the settings in which they differ from the rest."""
        of_nodes = self.node_configs
        for index, node_id in enumerate(self.broker_ids):
            rack = self.config.rack_at(index)
            if self.adopted is None and rack != self.config.rack_of(node_id):
                # "a,b,c" goes by place.
                of_nodes[node_id] = replace(self.config, rack=rack)
        for node_id, settings in self.given_node_configs.items():
            if node_id not in self.node_ids:
                known = ", ".join(map(str, self.node_ids))
                raise UserError(f"node_configs: {shown(node_id)} is not a node; nodes are {known}")
            if not isinstance(settings, Mapping):
                raise UserError(f"node_configs: {node_id}: give a mapping of names and values")
            own = of_nodes.get(node_id, self.config).with_settings(settings)
            rack = settings.get(BROKER_RACK)
            of_nodes[node_id] = own if rack is None else replace(own, rack=str(rack))
        for node_id in self.broker_ids:
            of_nodes.get(node_id, self.config).check_as_broker(self.rules)

    def _lay_out(self) -> None:
        """Create the state that the nodes share."""
        self.rt = self._new_runtime()
        self.recorder = Recorder(self.run_id, self.rt, self.faults)
        self.log = ClusterLog(self.rt.now)
        of_threads = self.rt.mode == "threaded"
        self.network = (ThreadedNetwork if of_threads else Network)(
            self.rt,
            self.recorder,
            base_delay_ms=(1, 2) if self.runtime_name == "simulated" else (0, 0),
            wire=self.wire,
        )
        self.client_nodes = ClientNodes()
        self.inlet = Inlet()
        self.zookeeper_log = ZooKeeperLog(self.recorder.own_problems)
        self.folds = SharedFolds()
        self.committed = CommittedImage(self.folds, self.recorder.own_problems, self._log_start)
        self.plan = self._quorum_plan()
        self.starts: dict[int, int] = {}  # how often each node has been started
        self.processes: dict[int, Process] = {}
        # On threads a process that ends by itself does so on the thread of the timers; without
        # it, a test could start the next one while actors of the last still run.
        self.lifecycle = threading.RLock()
        # A node's process runs, or it has ended or is paused.
        self.on_process: Callable[[int, bool], None] = lambda node_id, runs: None
        self.paused_clients: dict[int, list[Condition]] = {}
        self.programs: Programs | None = None  # from the first one on
        self.performed: list[dict[str, Any]] = []  # the steps so far, for run.json
        self.must_fire: list[tuple[str, Answer]] = []  # answers that have to act, by their text
        self.interceptions: list[Interception] = []  # so far, for run.json
        self.loads: list[Load | TransactionLoad] = []
        self.groups: list[ConsumerGroup] = []
        self.members: list[ConsumerActor] = []
        self.producers: dict[str, TransactionalProducerActor] = {}
        self.node_configs: dict[int, ClusterConfig] = {}  # of nodes that differ from the rest
        self.continued: dict[int, BrokerRegistration] = {}  # that brokers continue
        if self.adopted is not None:
            self._adopt(self.adopted)
        self._configure_nodes()
        self.clocks = {node_id: NodeClock(self.rt) for node_id in self.node_ids}
        self.disks = {node_id: self._new_disk(node_id) for node_id in self.node_ids}
        if self.adopted is not None:
            self.adopted.fill(self.disks, self.rules, self.folds)
        if self.quorum is None and self.controller_ids:
            self._call_election()

    def _new_runtime(self) -> Runtime:
        if self.pace is not None:
            return PacedRuntime(seed=self.seed, pace=self.pace)
        if self.runtime_name == "simulated":
            return SimulatedRuntime(seed=self.seed)
        return ThreadedRuntime(seed=self.seed)

    def _quorum_plan(self) -> QuorumPlan:
        """The quorum of the controllers here, or of those of another process."""
        outside, config = self.quorum, self.config
        drawn = uuid.UUID(int=self.rt.rng("cluster").getrandbits(128), version=4)
        controller_ids = self.controller_ids if outside is None else tuple(outside.controllers)
        return QuorumPlan(
            cluster_id=format_uuid(drawn) if outside is None else outside.cluster_id,
            controller_ids=controller_ids,
            voter_ids=controller_ids[: config.initial_controllers or None],
            kraft_version=config.kraft_version,
            listeners=self.security.listeners,
            inter_broker_listener=self._inter_broker_listener(),
            controller_protocol=self.security.controller_protocol,
            settings=QuorumSettings(
                election_timeout_ms=config.election_timeout_ms,
                fetch_timeout_ms=config.fetch_timeout_ms,
                request_timeout_ms=config.quorum_request_timeout_ms,
                retry_backoff_ms=config.retry_backoff_ms,
                election_backoff_max_ms=config.election_backoff_max_ms,
                append_linger_ms=config.append_linger_ms,
                fetch_max_wait_ms=config.quorum_fetch_wait_max_ms,
                auto_join=config.auto_join,
                **given_values(QuorumSettings, config.static),
            ),
        )

    def _inter_broker_listener(self) -> str:
        names = list(self.security.listeners)
        given = self.config.static.get(INTER_BROKER_LISTENER, names[0])
        if self.listen_address is None:  # nothing listens, so the config names nothing
            return names[0]
        if given not in names:
            hint = instead(given, names)
            raise UserError(f"config: {INTER_BROKER_LISTENER}: no listener {given!r}; {hint}")
        return given

    def _adopt(self, adopted: Adoption) -> None:
        """Begin with the state, the quorum and the clock of a log."""
        end = adopted.end
        self.rt.begin_at(end.time_ms)
        self.config = replace(self.config, kraft_version=end.kraft_version)
        self.metadata_version = end.image.metadata_version
        controllers, brokers = ({}, {}) if self.listen_address else adopted.addresses()
        self.plan = replace(
            self.plan,
            cluster_id=end.cluster_id or self.plan.cluster_id,
            voter_ids=adopted.voter_ids,
            kraft_version=end.kraft_version,
            addresses=controllers,
            of_brokers={self.plan.inter_broker_listener: brokers},
        )
        self.node_configs = adopted.configs(self.config, self.given_config)
        self.continued = adopted.continued()
        self.inlet.next_offset = end.end_offset
        self.committed.image, self.committed.offset = end.image, end.end_offset - 1
        self.committed.start = LogStart(
            image=end.image, end_offset=end.end_offset, epoch=end.epoch, time_ms=end.time_ms
        )

    def _log_start(self) -> int:
        """The offset at which the metadata logs of all controllers begin, or later."""
        disks = [self.disks[node_id] for node_id in self.controller_ids]
        return min((disk.log(METADATA_DIRECTORY).start_offset for disk in disks), default=0)

    def _new_disk(self, node_id: int) -> Disk:
        known = () if self.adopted is None else self.adopted.directories(node_id)
        return Disk(node_id=node_id, directory_ids=known or self.new_directories(node_id))

    def _format(self) -> None:
        """Format the disks of the first voters of a dynamic quorum, whose addresses are known."""
        if self.config.kraft_version and self.quorum is None and self.adopted is None:
            voters = self.plan.voter_ids
            directories = {voter: self.disks[voter].directory_ids[0] for voter in voters}
            checkpoint = self.plan.bootstrap_checkpoint(directories)
            for voter in voters:
                self.disks[voter].log(METADATA_DIRECTORY).snapshots[0, 0] = checkpoint

    def _call_election(self) -> None:
        """Begin where one controller, chosen by the seed, has just voted for itself.

        It requests the votes of the others as soon as it starts, which spares every test the wait
        for a first election timeout; all elections after this one take theirs.
        """
        key = chance.key(self.seed, "first election")
        voters = self.plan.voter_ids
        candidate = voters[chance.draw(key, 0) % len(voters)]
        disk = self.disks[candidate]
        disk.write(
            QUORUM_STATE_NAME,
            QuorumState(
                leader_epoch=1 if self.adopted is None else self.adopted.end.quorum_epoch + 1,
                voted_id=candidate,
                voted_directory_id=disk.directory_ids[0],
            ),
        )

    def new_directories(self, node_id: int) -> tuple[uuid.UUID, ...]:
        """The directory ids of a new disk."""
        count = self.starts.get(node_id, 0)
        draws = self.rt.rng(f"directory/{node_id}/{count}")
        names = self.node_configs.get(node_id, self.config).log_dirs
        return tuple(uuid.UUID(int=draws.getrandbits(128), version=4) for _ in names)

    def check_running(self, task: str) -> None:
        """Reject what needs a cluster that runs.

        Errors:  UserError, before its start and once it has been stopped.
        """
        self.check_started(task)
        if self.rt.is_closed:
            raise UserError(f"{task}: the cluster has been stopped; start another one")

    def check_fired(self) -> None:
        """Look whether every answer that had to act has met a request.

        Errors:  NeverFired for the first that has not.
        """
        for text, answer in self.must_fire:
            if not answer.hits:
                raise NeverFired(f"{text}: no such request came, and it must fire")

    def check_started(self, task: str) -> None:
        """Reject what needs a cluster that has been started.

        Errors:  UserError.
        """
        if not self.is_started:
            raise UserError(f"{task}: the cluster is not started; call start(), or use it in with")

    # The committed state and the roles in it.

    @property
    def image(self) -> MetadataImage:
        """The metadata image of everything that is committed."""
        return self.committed.image

    def partition_state(self, topic: str, index: int) -> PartitionRegistration | None:
        """The committed state of a partition, None if there is none."""
        topic_image = self.image.topics.named(topic)
        return None if topic_image is None else topic_image.partitions.get(index)

    def leader_id(self, topic: str, index: int) -> int | None:
        """The leader of a partition, None while there is none."""
        state = self.partition_state(topic, index)
        return None if state is None or state.leader < 0 else state.leader

    def active_controller_id(self) -> int | None:
        """The controller that leads the quorum in the highest epoch, None while there is none.

        A leader of another process is the one that nodes here follow.
        """
        if self.mode == ZOOKEEPER:
            return self._controller_of_zookeeper()
        active: list[tuple[int, int]] = []
        for process in self.processes.values():
            controller = process.controller
            if controller is not None and controller.active_epoch is not None:
                if not process.paused:
                    active.append((controller.active_epoch, process.node_id))
            elif (node := controller or process.broker) is not None:
                followed = node.quorum if isinstance(node, QuorumController) else node.followed
                if followed.leader_id >= 0 and followed.leader_id not in self.node_ids:
                    active.append((followed.epoch, followed.leader_id))
        return max(active)[1] if active else None

    def running_broker_id(self) -> int | None:
        """A broker that runs, an unfenced one where there is one; None while none runs."""
        running = [
            node_id
            for node_id in self.broker_ids
            if (process := self.processes.get(node_id)) is not None and not process.paused
        ]
        cluster = self.image.cluster
        unfenced = [
            node_id
            for node_id in running
            if (broker := cluster.broker(node_id)) is not None and not broker.fenced
        ]
        return next(iter(unfenced or running), None)

    def _controller_of_zookeeper(self) -> int | None:
        """The broker in /controller."""
        from minicluster.zookeeper.znodes.cluster import decode_controller
        from minicluster.zookeeper.znodes.paths import CONTROLLER

        process = self.processes.get(ZOOKEEPER_NODE)
        server = None if process is None else process.zookeeper
        data = None if server is None else server.machine.tree.data_of(CONTROLLER)
        return None if data is None else decode_controller(data)

    def _all_known(self) -> bool:
        return all(
            set(self.broker_ids) <= process.zk_broker.requests.image.cluster.brokers.rows.keys()
            for process in self.processes.values()
            if process.zk_broker is not None
        )

    def high_watermark(self, topic: str, index: int) -> int:
        """The high watermark as the partition's leader has it, -1 where there is none."""
        partition = self.leading(topic, index)
        return -1 if partition is None else partition.high_watermark

    def leading(self, topic: str, index: int) -> Partition | None:
        """The replica of a partition's leader, None where there is none."""
        leader = self.leader_id(topic, index)
        process = None if leader is None else self.processes.get(leader)
        topic_image = self.image.topics.named(topic)
        if process is None or process.replicas is None or topic_image is None:
            return None
        return process.replicas.partitions.get((topic_image.id, index))

    def is_up(self) -> bool:
        """True if the brokers that run from the start on are registered and unfenced.

        Those that continue from a log are so at once: there, a controller has to be active as well.
        """
        if self.adopted is None:
            return self.all_unfenced()
        is_committed = self.committed.offset >= self.adopted.end.end_offset
        return is_committed and self._unfenced(self.starting)

    def all_unfenced(self) -> bool:
        """True if all brokers are registered and unfenced; on ZooKeeper, in the image of each."""
        return self._unfenced(self.broker_ids)

    def _unfenced(self, broker_ids: Iterable[int]) -> bool:
        if self.mode == ZOOKEEPER and not self._all_known():
            return False
        return _all_unfenced(self.image, broker_ids)

    def all_know_each_other(self) -> bool:
        """True if the image that each running broker has published shows the unfenced ones so."""
        committed = self.image.cluster.brokers.rows.values()
        unfenced = [broker.id for broker in committed if not broker.fenced]
        publishers = [process.publisher for process in self.processes.values()]
        return all(p is None or _all_unfenced(p.image, unfenced) for p in publishers)

    # Time.

    @property
    def now_ms(self) -> int:
        """The cluster's clock."""
        return self.rt.now()

    @property
    def began_ms(self) -> int:
        """The time at which the clock began: 0, or the last time of an adopted log."""
        return 0 if self.adopted is None else self.adopted.end.time_ms

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        """Let the cluster run until a condition holds or the time is over; True if it held."""
        has_held = self.rt.run_until(condition, within_ms)
        self.see_commits()
        return has_held

    def see_commits(self) -> None:
        """Let the image that tests read catch up with all commits before this call.

        An effect of a commit, such as a response or an ended process, is never seen before it.
        """
        committed = self.committed
        end_offset = self.inlet.next_offset
        if committed.offset < end_offset - 1:
            self.rt.run_until(lambda: committed.offset >= end_offset - 1, SEEN_WITHIN_MS)

    # Evidence.

    @property
    def is_repeatable(self) -> bool:
        """True for a run that the seed alone decides: simulated, no client came from outside, no
        function of a test has seen requests, and no program may reach what is real.
        """
        rt = self.rt
        if self.programs is not None and not self.programs.is_repeatable:
            return False
        comes_alone = isinstance(rt, PacedRuntime) and rt.runs_alone
        return isinstance(rt, SimulatedRuntime) and not (comes_alone or self.interceptions)

    @property
    def trace_hash(self) -> str:
        """A hash over every event so far: the same for the same seed, in every process."""
        return self.recorder.trace_hash

    def note(
        self,
        action: str,
        targets: Any,
        phase: str,
        detail: str = "",
        *,
        directory: str | None = None,
        changes: bool = True,
    ) -> None:
        """Add a trace row for a disturbance.

        The promises about time count from the last one that changed the cluster: neither a step
        without targets (a ``heal`` with nothing to lift) nor one that ``changes`` nothing is that.
        """
        if phase in ("start", "stop") and targets and changes:
            self.disturbed_ms = self.now_ms
        self.recorder.trace(
            "fault",
            {
                "step": self.step,
                "action": action,
                "targets": targets,
                "phase": phase,
                "detail": detail or None,
                "directory": directory,
            },
        )


def _all_unfenced(image: MetadataImage, broker_ids: Iterable[int]) -> bool:
    brokers = image.cluster.brokers.rows
    for broker_id in broker_ids:  # a loop: a wait evaluates this at each instant
        broker = brokers.get(broker_id)
        if broker is None or broker.fenced:
            return False
    return True
