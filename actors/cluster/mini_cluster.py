"""MiniCluster: a Kafka cluster for a test.

::

    with MiniCluster(brokers=3, controllers=3, seed=7) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.isolate(cluster.brokers[1])
        cluster.wait_until(lambda: cluster.brokers[1].is_fenced, within="20s")
        assert cluster.verify().valid

The actors run while the test's thread waits; simulated ones run only then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from minicluster.actors.cluster.actions import (
    answers,
    clients,
    clocks,
    controllers,
    disks,
    network,
    processes,
    records,
    requests,
    topics,
)
from minicluster.actors.cluster.client import Client, Directory
from minicluster.actors.cluster.conditions import describe, place_of, state_lines
from minicluster.actors.cluster.incarnations import start_process
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.listeners.address import DEFAULT_PORT
from minicluster.actors.recording.followers import (
    LogChecks,
    ThreadedLogChecks,
    ZnodeChecks,
    stream,
)
from minicluster.actors.recording.metadata_sink import CommitFollower, Follow, MetadataSink
from minicluster.actors.recording.problems import warn_of
from minicluster.actors.runtime.paced import PacedRuntime
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.errors import UserError, WaitTimeout, counted
from minicluster.scenario.actions.arguments import Duration, read_duration
from minicluster.scenario.bounds import shown

if TYPE_CHECKING:
    from minicluster.actors.export.kafka_folder import Exported
    from minicluster.actors.listeners.endpoints import Endpoints
    from minicluster.actors.listeners.server import Listeners
    from minicluster.actors.recording.followers import LogStream
    from minicluster.verify import Report
    from minicluster.verify.spark.sink import ParquetSink
    from minicluster.verify.verifying import Engine

START_WITHIN_MS = 120_000
KNOWN_WITHIN_MS = 10_000  # a broker that sees metadata late (publish_delay) holds nobody up longer
DECIDED_BY_LOG = (
    *(
        "adopted",
        "broker_ids",
        "brokers",
        "controller_ids",
        "controllers",
        "features",
        "inter_broker_protocol",
    ),
    *("metadata_version", "mode", "quorum"),
)


class MiniCluster(ClusterRoles):
    """A Kafka cluster in one test process: controllers 101, 102, … and brokers 1, 2, ….

    Shapes:  the arguments are those of ``Cluster``; every action of a scenario is a method.
    Units:   durations are text with a unit (``10s``); times are the cluster's, in milliseconds.
    Errors:  UserError for invalid arguments; ActorCrashed and InvariantViolated from any wait.
    """

    listeners: Listeners | None = None
    live_checks: LogChecks | ZnodeChecks | None = None  # None: nothing is judged while it runs
    report: Report | None = None  # of the latest verify()
    up_ms = 0  # when its start was over; failure reports begin there
    _is_open_to_clients = False  # somebody has asked for the addresses
    _ingesting: tuple[LogStream | ParquetSink, ...] = ()  # the places of ``ingest``

    # Actions: functions of a cluster, each declared once as a step (minicluster/scenario/actions).

    cut = network.cut
    partition = network.partition
    isolate = network.isolate
    delay = network.delay
    loss = network.loss
    duplicate = network.duplicate
    reorder = network.reorder
    hold = network.hold
    release = network.release
    record = network.record
    replay = network.replay
    heal = network.heal
    held = network.held

    respond = answers.respond
    drop = answers.drop
    close = answers.close
    intercept = answers.intercept

    kill = processes.kill
    restart = processes.restart
    bounce = processes.bounce
    wipe = processes.wipe
    pause = processes.pause
    resume = processes.resume
    controlled_shutdown = processes.controlled_shutdown
    publish_delay = processes.publish_delay
    mutate = processes.mutate

    clock_skew = clocks.clock_skew
    mend_clocks = clocks.mend_clocks

    slow_disk = disks.slow_disk
    flush_off = disks.flush_off
    fail_dir = disks.fail_dir
    repair_dir = disks.repair_dir
    mend_disks = disks.mend_disks
    repair_all_dirs = disks.repair_all_dirs

    fail_over = controllers.fail_over
    resign = controllers.resign
    snapshot = controllers.snapshot
    compact = controllers.compact
    voters = property(controllers.voters)
    add_voter = controllers.add_voter
    remove_voter = controllers.remove_voter
    upgrade_kraft_version = controllers.upgrade_kraft_version

    create_topic = topics.create_topic
    delete_topic = topics.delete_topic
    recreate_topic = topics.recreate_topic
    add_partitions = topics.add_partitions
    reassign = topics.reassign
    reassignments = topics.reassignments
    set_config = topics.set_config
    elect = topics.elect
    unregister = topics.unregister
    delete_records = records.delete_records

    produce = records.produce
    pause_load = records.pause_load
    consume = clients.consume
    transaction = clients.transaction
    transform = clients.transform

    admin = requests.admin

    # Life.

    @classmethod
    def from_log(cls, path: str | Path, **shape: Any) -> Self:
        """The cluster of a metadata log or a checkpoint, which continues from its end.

        Brokers that the log has unfenced continue with their incarnations and epochs, others are
        down; where none is unfenced, all of them start. The clock begins at the log's last time.
        Partitions begin without records.

        Shapes:  path: a run, a controller's folder, a ``__cluster_metadata-0``, a segment or a
                 checkpoint, of Apache Kafka or of minicluster; shape: arguments of ``Cluster``
                 but those that the log decides, such as seed, config, rules, listeners.
        Errors:  UserError in one line: no log, a broken one, one without brokers, a wrong argument.
        """
        from minicluster.actors.cluster.adoption import Adoption
        from minicluster.verify.evidence.log_end import read_log_end

        decided = sorted(shape.keys() & set(DECIDED_BY_LOG))
        if decided:
            raise UserError(f"from_log: {decided[0]}: the log decides it; leave it out")
        adopted = Adoption.of(read_log_end(_path(path, "from_log")))
        if adopted.combined and shape.get("listeners"):
            why = "a combined node would listen at one address as a broker and as a controller"
            raise UserError(f"from_log: listeners: {why}; run it without them")
        return cls(adopted=adopted, **shape)

    def start(self, *, wait: bool = True) -> Self:
        """Start every node, and wait until every broker is unfenced.

        Errors:  WaitTimeout if they are not in two minutes of cluster time; AddressUnavailable,
                 with nothing started, where a port is in use.
        """
        if self.is_started:
            raise UserError("this cluster has been started already")
        self.is_started = True
        if self.listen_address is not None:
            from minicluster.actors.cluster.listening import open_listeners

            self.listeners = open_listeners(self, self.listen_address)
        with self.rt.exclusive():
            self._start_nodes()
        if wait:
            self._wait(self.is_up, START_WITHIN_MS)
            self.up_ms = self.now_ms
        if isinstance(self.rt, PacedRuntime):
            self.rt.begin_pace()
        return self

    def _start_nodes(self) -> None:
        followers: list[CommitFollower] = [self.committed]
        if self.online:
            kind = ThreadedLogChecks if self.rt.mode == "threaded" else LogChecks
            problems = self.recorder.found
            checks = kind(self.rt, self.run_id, rules=self.rules, problems=problems)
            if self.adopted is not None:
                checks.begin_after(self.adopted.end)
            followers.append(checks)
            self.recorder.follower = self.live_checks = checks
        elif self.znodes_judged:
            of_znodes = ZnodeChecks(
                self.rt, self.run_id, self.protocol, problems=self.recorder.found
            )
            self.zookeeper_log.follower = of_znodes.on_line
            self.live_checks = of_znodes
        followers += self.checks
        self.inlet.connect(self.rt.spawn(MetadataSink, "metadata-sink", followers, self.committed))
        directory = Directory(active_controller=self.active_controller_id, leader=self.leader_id)
        self.rt.spawn(Client, "client", self.network, self.recorder, directory)
        client = self.rt.actor("client")
        assert isinstance(client, Client)
        self.own_client = client
        self._format()
        others = [node_id for node_id in self.node_ids if node_id not in self.broker_ids]
        combined = [node_id for node_id in self.broker_ids if node_id in self.controller_ids]
        for node_id in dict.fromkeys((*others, *combined, *self.starting)):
            start_process(self, node_id)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the brokers, as Kafka's clients take them.

        From the first use on a paced cluster runs by itself: a client may connect at any time.

        Errors:  UserError for a cluster without listeners, or before its start.
        """
        return self._open_to_clients("bootstrap_servers").bootstrap_servers

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of the controllers, for ``bootstrap.controllers`` (KIP-919).

        Errors:  UserError for a cluster without listeners, or before its start.
        """
        return self._open_to_clients("bootstrap_controllers").bootstrap_controllers

    def _open_to_clients(self, name: str) -> Endpoints:
        """The endpoints that ``name`` needs; from now on a paced cluster runs by itself.

        The first client may ask any broker, and one with an older image would answer with a part
        of the cluster: they all know each other first.
        """
        if self.listeners is None:
            raise UserError(f"{name}: start the cluster with listeners=True")
        if not self._is_open_to_clients and self.is_up():
            self.run_until(self.all_know_each_other, KNOWN_WITHIN_MS)
        self._is_open_to_clients = True
        if isinstance(self.rt, PacedRuntime):
            self.rt.run_alone()
        return self.listeners.endpoints

    def stop(self) -> None:
        """Stop everything.

        Errors:  ActorCrashed if an actor crashed and no wait has raised it; LeakedThread;
                 InvariantViolated for what clients received. What the recorder and the live checks
                 failed to see is a warning.
        """
        crashes = list(self.rt.crashes)
        self.rt.close()
        if crashes and not self.rt.raised:
            self.rt.check()
        self.check_clients(at_rest=True)
        warn_of(self.recorder.problems)

    def check_clients(self, *, at_rest: bool = False) -> None:
        """Judge what clients sent and received in the whole run up to now.

        Shapes:  at_rest: the cluster has ended. Actors on threads that still run would change the
                 logs meanwhile, so that nothing is judged then.
        Errors:  InvariantViolated.
        """
        checks = self.live_checks
        if not isinstance(checks, LogChecks) or checks.crashed:
            return
        if at_rest or type(self.rt) is SimulatedRuntime:
            from minicluster.actors.cluster.judged_at_end import findings_about_clients

            checks.judged_at_end(findings_about_clients(self))

    def __repr__(self) -> str:
        nodes = ", ".join(
            (
                counted(len(self.broker_ids), "broker"),
                counted(len(self.controller_ids), "controller"),
            )
        )
        return f"<MiniCluster of {nodes}, seed {self.seed}>"

    def __enter__(self) -> Self:
        return self if self.is_started else self.start()

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

    # Time.

    def run_for(self, duration: Duration) -> None:
        """Let the cluster run for a while."""
        self.check_started("run_for")
        self.rt.run_for(read_duration(duration, "run_for"))
        self.see_commits()

    def wait_until(self, condition: Callable[[], Any], within: Duration = "60s") -> None:
        """Let the cluster run until a condition holds.

        Errors:  WaitTimeout, which names the condition and shows the cluster; UserError for a
                 condition that is none, such as a method that is not called.
        """
        self.check_started("wait_until")
        candidate: object = condition
        if not callable(candidate):
            what = "a function, such as orders.fully_in_sync or lambda: broker.is_fenced"
            raise UserError(f"wait_until: {shown(candidate)} is not a condition; give {what}")
        self._wait(condition, read_duration(within, "wait_until: within"))

    def _wait(self, condition: Callable[[], Any], within_ms: int) -> None:
        def holds() -> bool:
            outcome = condition()
            if callable(outcome):
                # A method that is not called is true at once: the wait would end before it began.
                what = f"{describe(condition)} gives a function, which is always true"
                raise UserError(f"wait_until: {what}; call it: {describe(outcome)}()")
            return bool(outcome)

        if not self.run_until(holds, within_ms):
            lines = "\n  ".join(self.state())
            raise WaitTimeout(
                f"timed out after {within_ms / 1000:g}s waiting for {describe(condition)}"
                f"{place_of(condition)} (seed {self.seed}, cluster time "
                f"{(self.now_ms - self.began_ms) / 1000:g}s)\n  {lines}"
            )

    def state(self) -> list[str]:
        """The cluster in a few lines, for people."""
        return state_lines(
            self.image,
            active_controller=self.active_controller_id(),
            running=self.processes,
            brokers=self.broker_ids,
        )

    # Evidence.

    def save(self, path: str | Path) -> Path:
        """Write the run folder: run.json, the controllers' logs, the trace.

        Errors:  UserError where the path cannot be a run folder; what is there already stays.
        """
        from minicluster.actors.cluster.run_folder import write_run

        self.check_started("save")
        place = _path(path, "save")
        with self.rt.exclusive(), _writing("save", place):
            return write_run(self, place)

    def export(self, kafka: str | Path, *, port: int = DEFAULT_PORT) -> Exported:
        """Write a folder for each node from which Apache Kafka's own nodes start, data included.

        Shapes:  port: that of the first broker; the other nodes follow.
        Errors:  UserError where the folder is not empty, and for modes that Kafka does not have.
        """
        from minicluster.actors.export.kafka_folder import export_run
        from minicluster.own_folders import temporary_folder

        place = _path(kafka, "export")
        with temporary_folder("run") as folder:
            run = self.save(folder.path / "runs" / self.run_id)
            with _writing("export", place):
                return export_run(run, place, port=port, now_ms=int(time.time() * 1000))

    def ingest(self, path: str | Path, form: str = "parquet") -> Path:
        """Write the committed metadata log to disk while the cluster runs, from its start on.

        Shapes:  form parquet: rows as the ``kraft`` source has them, a file every thousand records
                 and one at the end; form log: a segment that grows, for ``readStream``. -> where.
        Errors:  UserError for another form.
        """
        place = _path(path, "ingest")
        with _writing("ingest", place):
            follower = stream(form, place)
        with self.rt.exclusive():
            sink = self.rt.actor("metadata-sink")
            if sink is None:
                self.checks = (*self.checks, follower)
            else:
                sink.deliver(Follow(follower))
        self._ingesting = (*self._ingesting, follower)
        return follower.path

    @property
    def ingestion_lag(self) -> int:
        """The committed records that ``ingest`` has not written yet, in all of its places."""
        return sum(follower.lag for follower in self._ingesting)

    def verify(self, path: str | Path | None = None, *, engine: Engine = "spark") -> Report:
        """Judge this run up to now.

        Shapes:  path: where the run folder stays, with the report as a page and as JSON; without it
                 nothing stays, but for a test that fails (``--mini-cluster-save``). engine: Spark,
                 or ``process``, which judges a small run in a second and starts no JVM; their
                 verdicts are equal.
        """
        from minicluster.actors.cluster.run_folder import write_run
        from minicluster.own_folders import temporary_folder
        from minicluster.verify import verify

        if path is not None:
            run = self.save(_path(path, "verify"))
            self.report = verify(run, engine=engine)
            with _writing("verify", run):
                self.report.leave(run)
            return self.report
        with temporary_folder("run") as folder:
            place = folder.path / "runs" / self.run_id
            with self.rt.exclusive():
                run = write_run(self, place, brokers=False)
                self.report = verify(run, engine=engine)
            self.report.hold()  # the page and the findings show the run when the folder is gone
        return self.report


def _path(value: object, what: str) -> Path:
    """A path that a caller gave.

    Errors:  UserError for a value of another type.
    """
    if not isinstance(value, str | os.PathLike):
        raise UserError(f"{what}: {shown(value)} is no path")
    return Path(value)


@contextmanager
def _writing(what: str, path: Path) -> Iterator[None]:
    """Give an error of the file system the words of a method that writes to a path.

    Errors:  Unwritable for it, with the path that the caller gave.
    """
    try:
        yield
    except OSError as error:
        from minicluster.actors.recording.run_place import Unwritable

        reason = str(error.strerror or error).removeprefix("cannot be written: ")  # of an export
        raise Unwritable(f"{what}: {path}: cannot be written: {reason}") from None
