"""MiniCluster: a Kafka cluster for a test.

::

    with MiniCluster(brokers=3, controllers=3, seed=7) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.cut(orders[0].followers[0], cluster.controllers)
        cluster.wait_until(lambda: cluster.brokers[1].is_fenced, within="20s")
        assert cluster.verify().valid

The test's thread asks and waits; the actors run while it does (simulated: only while it does).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from minicluster.actors.cluster.admin import Administration
from minicluster.actors.cluster.chaos import Duration, milliseconds
from minicluster.actors.cluster.client import Client, Directory, Load
from minicluster.actors.cluster.conditions import describe, state_lines
from minicluster.actors.cluster.config import THREADED, ClusterConfig
from minicluster.actors.cluster.live import LiveFaults
from minicluster.actors.cluster.processes import Process
from minicluster.actors.cluster.quorum_chaos import QuorumChaos
from minicluster.actors.cluster.views import Node, Topic
from minicluster.actors.network import Network
from minicluster.actors.nodes.disk import Disk
from minicluster.actors.nodes.quorum_shell import QuorumPlan
from minicluster.actors.recording.followers import OnlineChecks, stream
from minicluster.actors.recording.logging import ClusterLog
from minicluster.actors.recording.metadata_sink import (
    CommitFollower,
    CommittedImage,
    Follow,
    Inlet,
    MetadataSink,
)
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.recording.run_folder import replica_rows, write_run
from minicluster.actors.recording.run_place import checked_run_id
from minicluster.actors.runtime import chance
from minicluster.actors.runtime.runtime import Runtime
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.actors.runtime.threaded import ThreadedRuntime
from minicluster.errors import UserError, WaitTimeout
from minicluster.faults import Faults
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.quorum_state import QUORUM_STATE_NAME, QuorumState
from minicluster.metadata import metadata_version as mv
from minicluster.metadata.bootstrap import bootstrap_records, default_features
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.uuids import format_uuid
from minicluster.quorum.settings import QuorumSettings
from minicluster.rules import Rules
from minicluster.scenario.scenario import FIRST_CONTROLLER

if TYPE_CHECKING:
    from minicluster.verify import Report

START_WITHIN_MS = 120_000
SEEN_WITHIN_MS = 5_000
RuntimeName = Literal["simulated", "threaded"]


class MiniCluster(QuorumChaos, Administration):
    """Controllers 101, 102, … and brokers 1, 2, … in one test process."""

    def __init__(
        self,
        *,
        brokers: int = 3,
        controllers: int = 3,
        seed: int = 0,
        metadata_version: str | None = None,
        rules: Rules | str | None = None,
        faults: Faults | Iterable[str] = (),
        runtime: RuntimeName = "simulated",
        wire: bool = False,
        config: Mapping[str, Any] | None = None,
        features: Mapping[str, int] | None = None,
        online: bool = True,
        checks: Sequence[CommitFollower] = (),
        scenario: Mapping[str, Any] | None = None,
        exercises: Sequence[str] = (),
        run_id: str | None = None,
    ) -> None:
        """Lay a cluster out; ``start`` or ``with`` starts it.

        Shapes:  faults: zoo ids; features: levels to format with (default: the release's);
                 online: the log-only rules watch every commit; checks: more followers of the
                 commits; scenario and exercises go into ``run.json``.
        Errors:  UserError in one line for anything that cannot be.
        """
        for what, count in (("brokers", brokers), ("controllers", controllers), ("seed", seed)):
            if not isinstance(count, int) or isinstance(count, bool):
                raise UserError(f"{what}: {count!r} is not a whole number")
        if brokers < 0 or controllers < 1:
            raise UserError("a cluster has at least one controller, and no fewer than no brokers")
        if runtime not in ("simulated", "threaded"):
            raise UserError(f"runtime: {runtime!r} is not one of simulated, threaded")
        self.seed = seed
        self.runtime_name = runtime
        self.run_id = checked_run_id(f"{runtime}-{seed}" if run_id is None else run_id)
        self.broker_ids = tuple(range(1, brokers + 1))
        self.controller_ids = tuple(range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers))
        self.rules, self.faults = _rules_and_faults(rules, faults)
        base = THREADED if runtime == "threaded" else ClusterConfig()
        self.given_config = dict(config or {})
        self.config = base.with_settings(self.given_config)
        if self.config.kraft_version > 1:
            raise UserError(f"kraft.version: {self.config.kraft_version} is not one of 0, 1")
        if self.config.initial_controllers > controllers:
            raise UserError(f"initial.controllers: there are only {controllers} controllers")
        self.metadata_version = (
            mv.production_version(self.rules)
            if metadata_version is None
            else mv.MetadataVersion.parse(metadata_version)
        )
        levels = default_features(self.metadata_version) if features is None else dict(features)
        if self.config.eligible_leader_replicas is not None:
            levels[mv.ELR_VERSION] = int(self.config.eligible_leader_replicas)
        self.bootstrap = bootstrap_records(self.metadata_version, levels, rules=self.rules)
        self.wire = wire
        self.scenario = scenario
        self.exercises = tuple(exercises)
        self.step: int | None = None
        self.online = online
        self.checks = tuple(checks)
        self.rt: Runtime
        self._started = False
        self._lay_out()

    def _lay_out(self) -> None:
        """Make what the nodes share."""
        simulated = self.runtime_name == "simulated"
        self.rt = SimulatedRuntime(seed=self.seed) if simulated else ThreadedRuntime(seed=self.seed)
        cluster_id = _uuid(self.rt.rng("cluster").getrandbits(128))
        self.recorder = Recorder(self.run_id, self.rt.now)
        self.log = ClusterLog(self.rt.now)
        self.network = Network(
            self.rt,
            self.recorder,
            base_delay_ms=(1, 2) if simulated else (0, 0),
            wire=self.wire,
        )
        self.inlet = Inlet()
        config = self.config
        self.plan = QuorumPlan(
            cluster_id=format_uuid(cluster_id),
            controller_ids=self.controller_ids,
            voter_ids=self.controller_ids[: config.initial_controllers or None],
            kraft_version=config.kraft_version,
            settings=QuorumSettings(
                election_timeout_ms=config.election_timeout_ms,
                fetch_timeout_ms=config.fetch_timeout_ms,
                request_timeout_ms=config.quorum_request_timeout_ms,
                retry_backoff_ms=config.retry_backoff_ms,
                election_backoff_max_ms=config.election_backoff_max_ms,
                append_linger_ms=config.append_linger_ms,
                fetch_max_wait_ms=config.quorum_fetch_wait_max_ms,
                auto_join=config.auto_join,
            ),
        )
        self._starts: dict[int, int] = {}
        self.processes: dict[int, Process] = {}
        self.disks = {
            node_id: Disk(node_id=node_id, directory_ids=self._new_directories(node_id))
            for node_id in self.node_ids
        }
        if config.kraft_version:
            directories = {n: self.disks[n].directory_ids[0] for n in self.plan.voter_ids}
            checkpoint = self.plan.bootstrap_checkpoint(directories)
            for node_id in self.plan.voter_ids:
                self.disks[node_id].log(METADATA_DIRECTORY).snapshots[0, 0] = checkpoint
        self._call_election()
        self._nodes = {node_id: Node(self, node_id) for node_id in self.node_ids}
        self._committed = CommittedImage()
        self._loads: list[Load] = []

    def _call_election(self) -> None:
        """Begin where one controller, chosen by the seed, has just voted for itself.

        It asks the others for their votes as soon as it starts, which spares every test the wait
        for a first election timeout; all elections after this one take theirs.
        """
        key = chance.key(self.seed, "first election")
        voters = self.plan.voter_ids
        candidate = voters[chance.draw(key, 0) % len(voters)]
        disk = self.disks[candidate]
        disk.write(
            QUORUM_STATE_NAME,
            QuorumState(
                leader_epoch=1, voted_id=candidate, voted_directory_id=disk.directory_ids[0]
            ),
        )

    # Life.

    def start(self, *, wait: bool = True) -> Self:
        """Start every node, and wait until every broker is unfenced.

        Errors:  WaitTimeout if they are not in two minutes of cluster time.
        """
        if self._started:
            raise UserError("this cluster has been started already")
        self._started = True
        followers: list[CommitFollower] = [self._committed]
        if self.online:
            followers.append(OnlineChecks(self.rt, self.run_id, rules=self.rules))
        followers += self.checks
        self.inlet.connect(self.rt.spawn(MetadataSink, "metadata-sink", followers))
        directory = Directory(active_controller=self._active_id, leader=self._leader_id)
        self.rt.spawn(Client, "client", self.network, self.recorder, directory)
        client = self.rt.actor("client")
        assert isinstance(client, Client)
        self._client = client
        for node_id in (*self.controller_ids, *self.broker_ids):
            self.start_node(node_id)
        if wait:
            self._wait(self.all_unfenced, START_WITHIN_MS)
        return self

    def stop(self) -> None:
        """Stop everything.

        Errors:  ActorCrashed if an actor crashed and nobody heard of it; LeakedThread.
        """
        crashes = list(self.rt.crashes)
        self.rt.close()
        if crashes and not self._crash_was_raised:
            self.rt.check()

    @property
    def _crash_was_raised(self) -> bool:
        return self.rt.raised

    def __enter__(self) -> Self:
        return self if self._started else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.rt.close()

    # Who is who.

    def node(self, node_id: int) -> Node:
        """A node by its id.

        Errors:  UserError if there is none.
        """
        found = self._nodes.get(node_id)
        if found is None:
            known = ", ".join(str(other) for other in self.node_ids)
            raise UserError(f"there is no node {node_id}; nodes are {known}")
        return found

    @property
    def brokers(self) -> tuple[Node, ...]:
        """All brokers, running or not."""
        return tuple(self._nodes[node_id] for node_id in self.broker_ids)

    @property
    def controllers(self) -> tuple[Node, ...]:
        """All controllers, running or not."""
        return tuple(self._nodes[node_id] for node_id in self.controller_ids)

    @property
    def active_controller(self) -> Node | None:
        """The controller that leads the quorum in the highest epoch, None while there is none."""
        active = self._active_id()
        return None if active is None else self._nodes[active]

    def _active_id(self) -> int | None:
        best: tuple[int, int] | None = None
        for node_id in self.controller_ids:
            process = self.processes.get(node_id)
            if process is None or process.controller is None or process.paused:
                continue
            epoch = process.controller.active_epoch
            if epoch is not None and (best is None or epoch > best[0]):
                best = (epoch, node_id)
        return None if best is None else best[1]

    def _leader_id(self, topic: str, index: int) -> int | None:
        found = self.image.topics.named(topic)
        state = None if found is None else found.partitions.get(index)
        return None if state is None or state.leader < 0 else state.leader

    @property
    def image(self) -> MetadataImage:
        """The metadata image of everything that is committed."""
        return self._committed.image

    def topic(self, name: str) -> Topic:
        """A topic by its name.

        Errors:  UserError if there is none.
        """
        if self.image.topics.named(name) is None:
            raise UserError(f"there is no topic {name}")
        return Topic(self, name)

    def high_watermark(self, topic: str, index: int) -> int:
        """The high watermark as the partition's leader knows it, -1 where there is none."""
        leader = self._leader_id(topic, index)
        process = None if leader is None else self.processes.get(leader)
        found = self.image.topics.named(topic)
        if process is None or process.replicas is None or found is None:
            return -1
        partition = process.replicas.machine.state.partitions.get((found.id, index))
        return -1 if partition is None else partition.high_watermark

    # Time.

    @property
    def now_ms(self) -> int:
        """The cluster's clock."""
        return self.rt.now()

    def run_for(self, duration: Duration) -> None:
        """Let the cluster run for a while."""
        self.rt.run_for(milliseconds(duration, what="run_for"))
        self._see_commits()

    def wait_until(self, condition: Callable[[], Any], within: Duration = "60s") -> None:
        """Let the cluster run until a condition holds.

        Errors:  WaitTimeout, which says what was waited for and shows the cluster.
        """
        self._wait(condition, milliseconds(within, what="wait_until: within"))

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        """Let the cluster run until a condition holds, or the time is over; whether it held."""
        held = self.rt.run_until(condition, within_ms)
        self._see_commits()
        return held

    def _see_commits(self) -> None:
        """Let the image that tests look at have all that had been committed when this was called.

        Whoever sees an effect of a commit, an answer or a process that ended, sees the commit.
        """
        committed, inlet = self._committed, self.inlet
        end_offset = inlet.next_offset
        if committed.offset < end_offset - 1:
            self.rt.run_until(lambda: committed.offset >= end_offset - 1, SEEN_WITHIN_MS)

    def _wait(self, condition: Callable[[], Any], within_ms: int) -> None:
        if not self.run_until(lambda: bool(condition()), within_ms):
            lines = "\n  ".join(self.state())
            raise WaitTimeout(
                f"waited {within_ms / 1000:g}s for {describe(condition)}; it did not come "
                f"(seed {self.seed}, at {self.now_ms / 1000:g}s)\n  {lines}"
            )

    def all_unfenced(self) -> bool:
        """Whether every broker is registered and unfenced."""
        brokers = self.image.cluster.brokers.rows
        return all(
            (broker := brokers.get(broker_id)) is not None and not broker.fenced
            for broker_id in self.broker_ids
        )

    def state(self) -> list[str]:
        """The cluster in a few lines, for people."""
        return state_lines(
            self.image,
            active_controller=self._active_id(),
            running=self.processes,
            brokers=self.broker_ids,
        )

    def last_events(self, count: int = 30) -> list[str]:
        """The latest events as lines for a person."""
        return self.recorder.last_events(count)

    # Evidence.

    @property
    def trace_hash(self) -> str:
        """A hash over every event so far: the same for the same seed, in every process."""
        return self.recorder.trace_hash

    def save(self, path: str | Path) -> Path:
        """Write the run folder: run.json, the controllers' logs, the trace."""
        return write_run(self, Path(path))

    def ingest(self, path: str | Path, form: str = "parquet") -> Path:
        """Write the committed metadata log to disk while the cluster runs, from its start on.

        Shapes:  form parquet: rows as the ``kraft`` source has them, a file every thousand records
                 and one at the end; form log: a segment that grows, for ``readStream``. -> where.
        Errors:  UserError for another form.
        """
        follower = stream(form, Path(path))
        sink = self.rt.actor("metadata-sink")
        if sink is None:
            self.checks = (*self.checks, follower)
        else:
            sink.hear(Follow(follower))
        return follower.path

    def verify(self) -> Report:
        """Let Spark judge this run up to now."""
        from minicluster.verify import verify

        with tempfile.TemporaryDirectory(prefix="minicluster-") as folder:
            return verify(self.save(Path(folder) / self.run_id))

    def _record_logs(self, node_id: int, at: str) -> None:
        for row in replica_rows(self, node_id, at):
            self.recorder.trace("replica_log", row)


def _rules_and_faults(
    rules: Rules | str | None, faults: Faults | Iterable[str]
) -> tuple[Rules, LiveFaults]:
    """The release, and the planted faults; zoo ids of Kafka's own bugs become rules."""
    chosen = Rules.named(rules) if isinstance(rules, str) else rules or Rules.KAFKA_4_3
    if isinstance(faults, Faults):
        return chosen, LiveFaults(faults)
    if isinstance(faults, str):
        faults = (faults,)
    ids = list(faults)
    bugs = [zoo_id for zoo_id in ids if zoo_id in Rules.zoo()]
    planted = Faults.of(zoo_id for zoo_id in ids if zoo_id not in bugs)
    return chosen.with_bugs(bugs), LiveFaults(planted)


def _uuid(bits: int) -> Any:
    import uuid

    return uuid.UUID(int=bits, version=4)
