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

import inspect
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from minicluster.actors.cluster.actions import (
    access,
    answers,
    apps,
    clients,
    clocks,
    controllers,
    disks,
    groups,
    network,
    processes,
    records,
    requests,
    topics,
)
from minicluster.actors.cluster.apps import program_servers
from minicluster.actors.cluster.as_user import AsUser
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.cluster.views import ClientNode, Node, Topic
from minicluster.actors.listeners.address import DEFAULT_PORT
from minicluster.actors.recording.metadata_sink import Follow
from minicluster.actors.recording.streams import stream
from minicluster.errors import UserError, counted, instead
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.scenario.actions.arguments import Duration, read_duration
from minicluster.scenario.checks.limits import shown
from minicluster.security.authorizer import AUTHORIZER

if TYPE_CHECKING:
    from minicluster.actors.export.kafka_folder import Exported
    from minicluster.actors.recording.streams import LogStream
    from minicluster.verify import Report
    from minicluster.verify.spark.sink import ParquetSink
    from minicluster.verify.verifying import Engine

DECIDED_BY_LOG = (
    *("adopted", "broker_ids", "brokers", "controller_ids", "controllers", "features"),
    *("inter_broker_protocol", "metadata_version", "mode", "quorum"),
)

OF_THIS_PACKAGE = frozenset(
    {"adopted", "checks", "exercises", "online", "run_id", "scenario", "wire"}
)
"""Arguments for the player, campaigns and tests of the package."""

P = ParamSpec("P")
R = TypeVar("R")


def _arguments_of(
    constructor: Callable[Concatenate[Any, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[MiniCluster, P], None]]:
    """Give a constructor the arguments and the text of another, to which it hands them.

    Those of this package alone are taken, and shown nowhere.

    Errors:  UserError for an argument that there is not, with the one that was meant.
    """
    signature = inspect.signature(constructor)
    given = signature.parameters
    public = [given[name] for name in given if name not in OF_THIS_PACKAGE]

    def with_arguments(hand_over: Callable[..., None]) -> Callable[..., None]:
        @wraps(constructor)
        def construct(self: MiniCluster, *unnamed: object, **shape: Any) -> None:
            if unnamed:
                raise UserError(f"MiniCluster: {shown(unnamed[0])} has no name; write brokers=3")
            for name in shape:
                if name not in given:
                    names = [parameter.name for parameter in public[1:]]
                    raise UserError(
                        f"MiniCluster: unknown argument {name!r}; {instead(name, names)}"
                    )
            hand_over(self, **shape)

        construct.__signature__ = signature.replace(parameters=public)  # type: ignore[attr-defined]
        return construct

    return with_arguments


def _face(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[MiniCluster, P], R]:
    """A function of the running cluster as a method of its face."""

    @wraps(function)
    def method(self: MiniCluster, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(inside(self), *args, **kwargs)

    return method  # type: ignore[return-value]


def inside(cluster: MiniCluster) -> RunningCluster:
    """The cluster behind its face: nodes, network, recorder. This package's own, and its tests'."""
    return cluster._cluster


class MiniCluster:
    """A Kafka cluster in one test process: controllers 101, 102, … and brokers 1, 2, ….

    What it shows is public, and stands in docs/reference/api.md; the attribute ``inside`` is
    private. Every action of a scenario is a method, with the same arguments.

    Units:   durations are text with a unit (``10s``) or seconds; times are milliseconds of the
             cluster's clock.
    Errors:  UserError for invalid arguments; ActorCrashed and InvariantViolated from any wait.
    """

    __slots__ = ("__weakref__", "_cluster", "_ingesting")

    @_arguments_of(RunningCluster.__init__)
    def __init__(self, **shape: Any) -> None:
        self._cluster = RunningCluster(**shape)
        weakref.finalize(self, self._cluster.rt.abandoned)
        self._ingesting: tuple[LogStream | ParquetSink, ...] = ()  # the places of ``ingest``

    # Actions: functions of a running cluster, each declared once as a step
    # (minicluster/scenario/actions).

    cut = _face(network.cut)
    partition = _face(network.partition)
    isolate = _face(network.isolate)
    delay = _face(network.delay)
    loss = _face(network.loss)
    duplicate = _face(network.duplicate)
    reorder = _face(network.reorder)
    hold = _face(network.hold)
    release = _face(network.release)
    record = _face(network.record)
    replay = _face(network.replay)
    heal = _face(network.heal)
    held = _face(network.held)

    respond = _face(answers.respond)
    drop_responses = _face(answers.drop_responses)
    close_connections = _face(answers.close_connections)
    intercept = _face(answers.intercept)

    kill = _face(processes.kill)
    restart = _face(processes.restart)
    bounce = _face(processes.bounce)
    wipe = _face(processes.wipe)
    pause = _face(processes.pause)
    resume = _face(processes.resume)
    controlled_shutdown = _face(processes.controlled_shutdown)
    terminate = _face(processes.terminate)
    publish_delay = _face(processes.publish_delay)
    mutate = _face(processes.mutate)

    clock_skew = _face(clocks.clock_skew)

    slow_disk = _face(disks.slow_disk)
    flush_off = _face(disks.flush_off)
    flush_on = _face(disks.flush_on)
    fail_dir = _face(disks.fail_dir)
    repair_dir = _face(disks.repair_dir)

    fail_over = _face(controllers.fail_over)
    resign = _face(controllers.resign)
    snapshot = _face(controllers.snapshot)
    compact = _face(controllers.compact)
    voters = property(_face(controllers.voters))
    add_voter = _face(controllers.add_voter)
    remove_voter = _face(controllers.remove_voter)
    upgrade_kraft_version = _face(controllers.upgrade_kraft_version)

    create_topic = _face(topics.create_topic)
    delete_topic = _face(topics.delete_topic)
    recreate_topic = _face(topics.recreate_topic)
    add_partitions = _face(topics.add_partitions)
    reassign = _face(topics.reassign)
    reassignments = _face(topics.reassignments)
    set_config = _face(topics.set_config)
    elect = _face(topics.elect)
    unregister = _face(topics.unregister)
    delete_records = _face(records.delete_records)

    produce = _face(records.produce)
    consume = _face(clients.consume)
    wait_for_group = _face(groups.wait_for_group)
    transaction = _face(clients.transaction)
    transform = _face(clients.transform)

    app = _face(apps.app)
    service = _face(apps.service)
    apps = property(_face(apps.named))

    admin = _face(requests.admin)

    grant = _face(access.grant)
    deny = _face(access.deny)
    revoke = _face(access.revoke)
    set_password = _face(access.set_password)
    expire_certificates = _face(access.expire_certificates)
    renew_certificates = _face(access.renew_certificates)

    def as_user(self, name: str) -> AsUser:
        """The cluster as one of its users meets it: with his rights, without a connection.

        ::

            mini_cluster.grant("alice", "WRITE", topic="orders")
            mini_cluster.as_user("alice").produce("orders")

        Arguments:  name: ``alice``, or ``User:CN=shop,O=Org`` as a certificate has it.
        Errors:  UserError for a cluster without an authorizer.
        """
        if not self._cluster.config.static.get(AUTHORIZER):
            raise UserError('as_user: everybody may do everything here; set super_users=["admin"]')
        return AsUser(self._cluster, name)

    # Life.

    @classmethod
    def from_log(cls, path: str | Path, **shape: Any) -> Self:
        """The cluster of a metadata log or a checkpoint, which continues from its end.

        Brokers that the log has unfenced continue with their incarnations and epochs, others are
        down; where none is unfenced, all of them start. The clock begins at the log's last time.
        Partitions begin without records.

        Arguments:  path: a run, a controller's folder, a ``__cluster_metadata-0``, a segment or a
                    checkpoint, of Apache Kafka or of minicluster; shape: arguments of ``Cluster``
                    but those that the log decides, such as seed, config, rules, listeners.
        Errors:  UserError in one line: no log, a broken one, one without brokers, a wrong argument.
        """
        from minicluster.actors.cluster.adoption import Adoption, read_log_end

        decided = sorted(shape.keys() & set(DECIDED_BY_LOG))
        if decided:
            raise UserError(f"from_log: {decided[0]}: the log decides it; leave it out")
        return cls(adopted=Adoption.of(read_log_end(_path(path, "from_log"))), **shape)

    def start(self, *, wait: bool = True) -> Self:
        """Start every node, and wait until every broker is unfenced.

        Errors:  WaitTimeout if they are not in two minutes of cluster time; AddressUnavailable,
                 with nothing started, where a port is in use.
        """
        self._cluster.start(wait=wait)
        return self

    stop = close = _face(RunningCluster.stop)

    def __enter__(self) -> Self:
        return self if self._cluster.is_started else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:  # nothing is judged: a finding would hide the test's own error
            self._cluster.rt.close()

    def __repr__(self) -> str:
        nodes = ", ".join(
            (
                counted(len(self._cluster.broker_ids), "broker"),
                counted(len(self._cluster.controller_ids), "controller"),
            )
        )
        return f"<MiniCluster of {nodes}, seed {self._cluster.seed}>"

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the brokers, as Kafka's clients take them.

        From the first use on a paced cluster runs by itself: a client may connect at any time. In
        a cluster with apps these are the addresses that they connect to, inside the simulation.

        Errors:  UserError for a cluster without listeners or apps, or before its start.
        """
        if self._cluster.programs is not None:
            return program_servers(self._cluster)
        return self._cluster.open_to_clients("bootstrap_servers").bootstrap_servers()

    def client_config(
        self,
        user: str | None = None,
        for_: str = "confluent-kafka",
        listener: str | None = None,
    ) -> dict[str, Any]:
        """The settings with which a client connects as somebody.

        Arguments: user: one of ``users``; on "SSL" a name for a certificate, which is signed for
                it; None: nobody in particular.
            for_: "confluent-kafka", "aiokafka", "kafka-python" or "java" (a properties file's).
            listener: one of several, or its protocol; by default the first that fits the user.
        Inside a simulation without listeners these are settings for apps: there a listener for each
        protocol is at hand.

        Errors:  UserError for an unknown library, user or listener; for a cluster on threads
                 without listeners.
        """
        from minicluster.actors.cluster.client_configs import client_config

        return client_config(self._cluster, user, for_, listener)

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of the controllers, for ``bootstrap.controllers`` (KIP-919).

        Errors:  UserError for a cluster without listeners, or before its start.
        """
        endpoints = self._cluster.open_to_clients("bootstrap_controllers")
        if not endpoints.bootstrap_controllers:
            why = "every controller is a broker as well, and listens as a broker"
            raise UserError(f"bootstrap_controllers: {why}")
        return endpoints.bootstrap_controllers

    # Time.

    run_for = _face(RunningCluster.run_for)

    def call_later(
        self, delay: Duration, call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> None:
        """Make a call once so much of the cluster's time has passed, while the test continues.

        ::

            mini_cluster.call_later("5s", mini_cluster.kill, "app(orders-1)")

        Errors:  those of the call come out of the wait in which its time has come.
        """
        self._cluster.check_running("call_later")
        if not callable(call):
            raise UserError(f"call_later: {shown(call)} is not a function, such as cluster.heal")
        at_ms = self._cluster.now_ms + read_duration(delay, "call_later")
        self._cluster.rt.schedule(at_ms, lambda _: call(*args, **kwargs), None)

    def wait_until(self, condition: Callable[[], Any], within: Duration = "60s") -> None:
        """Let the cluster run until a condition holds.

        The thread waits. In a test with an event loop, ``await until(…)`` lets its tasks continue.

        Errors:  WaitTimeout, which names the condition and shows the cluster; UserError for a
                 condition that is none, such as a method that is not called.
        """
        self._check_condition("wait_until", condition)
        self._cluster.wait(condition, read_duration(within, "wait_until: within"))

    async def until(self, condition: Callable[[], Any], within: Duration = "60s") -> None:
        """``wait_until`` for a test with an event loop, whose tasks continue meanwhile.

        Errors:  as ``wait_until``.
        """
        self._check_condition("until", condition)
        await self._cluster.until(condition, read_duration(within, "until: within"))

    def _check_condition(self, name: str, candidate: object) -> None:
        self._cluster.check_running(name)
        if not callable(candidate):
            expected = "a function, such as orders.fully_in_sync or lambda: broker.is_fenced"
            raise UserError(f"{name}: {shown(candidate)} is not a condition; give {expected}")

    @property
    def now_ms(self) -> int:
        """The cluster's clock."""
        return self._cluster.now_ms

    # Nodes and topics.

    @property
    def brokers(self) -> tuple[Node, ...]:
        """All brokers, running or not."""
        return tuple(Node(self._cluster, node_id) for node_id in self._cluster.broker_ids)

    @property
    def controllers(self) -> tuple[Node, ...]:
        """All controllers, running or not."""
        return tuple(Node(self._cluster, node_id) for node_id in self._cluster.controller_ids)

    @property
    def active_controller(self) -> Node | None:
        """The controller that leads the quorum in the highest epoch, None while there is none."""
        active = self._cluster.active_controller_id()
        return None if active is None else Node(self._cluster, active)

    @property
    def clients(self) -> tuple[ClientNode, ...]:
        """Kafka's clients that have sent a request so far."""
        return tuple(ClientNode(self._cluster, client) for client in self._cluster.client_ids())

    def node(self, node: Node | int) -> Node:
        """A node by its id, or by a handle of it.

        Errors:  UserError if there is none.
        """
        return Node(self._cluster, self._cluster.node_id(node))

    def client(self, client_id: str) -> ClientNode:
        """One of Kafka's clients by its ``client.id``, connected or not."""
        if not isinstance(client_id, str):
            raise UserError(f"client: {shown(client_id)} is not a client.id, such as app-1")
        return ClientNode(self._cluster, self._cluster.client_nodes.node(client_id))

    def topic(self, name: str | Topic) -> Topic:
        """A topic by its name, or by a handle of it; ``exists`` tells whether it is there."""
        name = name.name if isinstance(name, Topic) else name
        if not isinstance(name, str):
            raise UserError(f"topic: {shown(name)} is not the name of a topic")
        return Topic(self._cluster, name)

    # State.

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, with which nodes of Apache Kafka are formatted that join it."""
        return self._cluster.plan.cluster_id

    @property
    def image(self) -> MetadataImage:
        """The metadata image of everything that is committed."""
        return self._cluster.image

    state = _face(RunningCluster.state)

    @property
    def seed(self) -> int:
        """The seed of this run, which repeats it."""
        return self._cluster.seed

    @property
    def trace_hash(self) -> str:
        """A hash over every event so far: the same for the same seed, in every process."""
        return self._cluster.trace_hash

    # Evidence.

    def save(self, path: str | Path) -> Path:
        """Write the run folder: run.json, the controllers' logs, the trace.

        Errors:  UserError where the path cannot be a run folder; what is there already stays.
        """
        from minicluster.actors.cluster.run_folder import write_run

        cluster = self._cluster
        cluster.check_started("save")
        place = _path(path, "save")
        with cluster.rt.exclusive(), _writing("save", place):
            return write_run(cluster, place)

    def export(self, kafka: str | Path, *, port: int = DEFAULT_PORT) -> Exported:
        """Write a folder for each node from which Apache Kafka's own nodes start, data included.

        Arguments:  port: that of the first broker; the other nodes follow.
        Errors:  UserError where the folder is not empty, and for modes that Kafka does not have.
        """
        from minicluster.actors.export.kafka_folder import export_run
        from minicluster.own_folders import temporary_folder

        place = _path(kafka, "export")
        with temporary_folder("run") as folder:
            run = self.save(folder.path / "runs" / self._cluster.run_id)
            with _writing("export", place):
                now_ms, users = int(time.time() * 1000), self._cluster.security.users
                return export_run(run, place, port=port, now_ms=now_ms, users=users)

    def ingest(self, path: str | Path, form: str = "parquet") -> Path:
        """Write the committed metadata log to disk while the cluster runs, from its start on.

        Arguments:  form parquet: rows as the ``kraft`` source has them, a file every thousand
                    records and one at the end; form log: a segment that grows, for ``readStream``.
                    -> where.
        Errors:  UserError for another form.
        """
        place = _path(path, "ingest")
        with _writing("ingest", place):
            follower = stream(form, place)
        cluster = self._cluster
        with cluster.rt.exclusive():
            sink = cluster.rt.actor("metadata-sink")
            if sink is None:
                cluster.checks = (*cluster.checks, follower)
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

        Arguments:  path: where the run folder stays, with the report as a page and as JSON; without
                    it nothing stays, but for a test that fails (``--mini-cluster-save``). engine:
                    Spark, or ``process``, which judges a small run in a second and starts no JVM;
                    their verdicts are equal.
        """
        from minicluster.actors.cluster.run_folder import write_run
        from minicluster.own_folders import temporary_folder
        from minicluster.verify import verify

        cluster = self._cluster
        if path is not None:
            run = self.save(_path(path, "verify"))
            cluster.report = report = verify(run, engine=engine)
            with _writing("verify", run):
                report.leave(run)
            return report
        with temporary_folder("run") as folder:
            place = folder.path / "runs" / cluster.run_id
            with cluster.rt.exclusive():
                run = write_run(cluster, place, brokers=False)
                cluster.report = report = verify(run, engine=engine)
            report.hold()  # the page and the findings show the run when the folder is gone
        return report


def _path(value: object, name: str) -> Path:
    """A path that a caller gave.

    Errors:  UserError for a value of another type.
    """
    if not isinstance(value, str | os.PathLike):
        raise UserError(f"{name}: {shown(value)} is not a path")
    return Path(value)


@contextmanager
def _writing(method: str, path: Path) -> Iterator[None]:
    """Give an error of the file system the words of a method that writes to a path.

    Errors:  Unwritable for it, with the path that the caller gave.
    """
    try:
        yield
    except OSError as error:
        from minicluster.actors.recording.run_place import Unwritable

        reason = str(error.strerror or error).removeprefix("cannot be written: ")  # of an export
        raise Unwritable(f"{method}: {path}: cannot be written: {reason}") from None
