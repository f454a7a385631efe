"""The processes of a cluster: started, killed, restarted, paused, shut down.

A crash is a crash: the mailboxes are gone, connections break, soft state is lost, and of the disk
goes what the crash is told to take. What starts again is a new incarnation on the same disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minicluster.actors.cluster.chaos import Duration, NetworkChaos, Nodes, milliseconds
from minicluster.actors.cluster.config import ClusterConfig
from minicluster.actors.nodes.broker import BeginShutdown, Broker
from minicluster.actors.nodes.disk import Disk, LoseTail
from minicluster.actors.nodes.metadata_publisher import MetadataPublisher, SetDelay
from minicluster.actors.nodes.quorum_controller import QuorumController
from minicluster.actors.nodes.quorum_shell import QuorumPlan
from minicluster.actors.nodes.replica_manager import REPLICA_APIS, FailDirectory, ReplicaManager
from minicluster.actors.nodes.shell import NodeContext
from minicluster.actors.recording.metadata_sink import Inlet
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.errors import UserError
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.replica.log_manager import ReplicaStore

if TYPE_CHECKING:
    from minicluster.actors.cluster.live import LiveFaults
    from minicluster.actors.recording.logging import ClusterLog
    from minicluster.protocol.records import VersionedRecord
    from minicluster.rules import Rules


@dataclass(slots=True, kw_only=True)
class Process:
    """One incarnation of a node."""

    node_id: int
    incarnation: uuid.UUID
    actors: tuple[str, ...]
    controller: QuorumController | None = None
    broker: Broker | None = None
    replicas: ReplicaManager | None = None
    publisher: MetadataPublisher | None = None
    paused: bool = False


class Processes(NetworkChaos):
    """What a test can do to processes; mixed into the cluster."""

    broker_ids: tuple[int, ...]
    controller_ids: tuple[int, ...]
    config: ClusterConfig
    rules: Rules
    faults: LiveFaults
    log: ClusterLog
    inlet: Inlet
    plan: QuorumPlan
    bootstrap: tuple[VersionedRecord, ...]
    disks: dict[int, Disk]
    processes: dict[int, Process]
    _starts: dict[int, int]

    @property
    def node_ids(self) -> tuple[int, ...]:
        return (*self.broker_ids, *self.controller_ids)

    def is_running(self, node_id: int) -> bool:
        """Whether the node's process runs; a paused process runs, too."""
        return node_id in self.processes

    # The vocabulary.

    def kill(self, node: Nodes, *, lose_tail: LoseTail = "none") -> None:
        """Stop nodes at once; lose nothing that was written, what was not flushed, or all."""
        for node_id in self._ids(node):
            if node_id not in self.processes:
                self.note("kill", [node_id], "note", "it is down already")
                continue
            self._record_logs(node_id, "crash")
            self._end_process(node_id)
            lost = self.disks[node_id].crash(lose_tail)
            told = ", ".join(f"{name} lost {count}" for name, count in lost.items())
            self.note("kill", [node_id], "start", told)

    def restart(self, node: Nodes) -> None:
        """Start nodes again, as new incarnations; one that runs is killed first."""
        for node_id in self._ids(node):
            if node_id in self.processes:
                self.kill(node_id)
            self.note("restart", [node_id], "start")
            self.start_node(node_id)

    def wipe(self, node: Nodes) -> None:
        """Give nodes new, empty disks, each with other directory ids; one that runs is killed."""
        for node_id in self._ids(node):
            if node_id in self.processes:
                self.kill(node_id)
            self.disks[node_id].wipe(self._new_directories(node_id))
            self.note("wipe", [node_id], "start")

    def pause(self, node: Nodes, *, lasting: Duration | None = None) -> None:
        """Let nodes take no step; their messages wait, time goes on (SIGSTOP)."""
        ids = self._ids(node)
        lasting_ms = None if lasting is None else milliseconds(lasting, what="pause: lasting")
        for node_id in ids:
            process = self.processes.get(node_id)
            if process is None or process.paused:
                self.note("pause", [node_id], "note", "it does not run")
                continue
            process.paused = True
            self.rt.pause(process.actors)
            self.note("pause", [node_id], "start")
            if lasting_ms is not None:
                self.rt.schedule(self.rt.now() + lasting_ms, self._resume_process, process)

    def resume(self, node: Nodes) -> None:
        """Let paused nodes go on (SIGCONT)."""
        for node_id in self._ids(node):
            process = self.processes.get(node_id)
            if process is None or not process.paused:
                self.note("resume", [node_id], "note", "it is not paused")
            else:
                self._resume_process(process)

    def _resume_process(self, process: Process) -> None:
        if process.paused:
            process.paused = False
            self.rt.resume(process.actors)
            self.note("resume", [process.node_id], "stop")

    def controlled_shutdown(self, node: Nodes) -> None:
        """Ask brokers to hand over and stop (SIGTERM); a controller just stops."""
        for node_id in self._ids(node):
            process = self.processes.get(node_id)
            if process is None:
                self.note("controlled_shutdown", [node_id], "note", "it is down already")
            elif process.broker is not None:
                process.broker.hear(BeginShutdown())
                self.note("controlled_shutdown", [node_id], "start")
            else:
                self._end_process(node_id)
                self.disks[node_id].log(METADATA_DIRECTORY).flush()
                self.note("controlled_shutdown", [node_id], "start")

    def publish_delay(
        self, broker: Nodes, delay: Duration, *, lasting: Duration | None = None
    ) -> None:
        """Let brokers see committed metadata late; "0s" ends it."""
        delay_ms = milliseconds(delay, what="publish_delay")
        ids = self._ids(broker)
        for node_id in ids:
            self._set_publish_delay((node_id, delay_ms))
        if lasting is not None:
            until_ms = self.rt.now() + milliseconds(lasting, what="publish_delay: lasting")
            for node_id in ids:
                self.rt.schedule(until_ms, self._set_publish_delay, (node_id, 0))

    def _set_publish_delay(self, what: tuple[int, int]) -> None:
        node_id, delay_ms = what
        process = self.processes.get(node_id)
        if process is None or process.publisher is None:
            self.note("publish_delay", [node_id], "note", "it publishes nothing")
            return
        process.publisher.hear(SetDelay(delay_ms))
        phase = "start" if delay_ms else "stop"
        self.note("publish_delay", [node_id], phase, f"{delay_ms}ms")

    def fail_dir(self, broker: Nodes, dir: int = 0) -> None:
        """Break a log directory of brokers, counted from 0.

        A broker without any other, or whose metadata log lies in it (``metadata.log.dir``), halts.
        """
        for node_id, store, directory in self._directories("fail_dir", broker, dir):
            process = self.processes.get(node_id)
            if directory not in store.online_directories:
                self.note("fail_dir", [node_id], "note", f"directory {dir} has failed already")
                continue
            if process is None or process.replicas is None:
                store.fail_directory(directory)
            else:
                process.replicas.hear(FailDirectory(dir))
            self.note("fail_dir", [node_id], "start", str(dir))

    def repair_dir(self, broker: Nodes, dir: int = 0) -> None:
        """Mend a log directory of brokers; a broker that runs notices when it starts again."""
        for node_id, store, directory in self._directories("repair_dir", broker, dir):
            if directory in store.online_directories:
                self.note("repair_dir", [node_id], "note", f"directory {dir} works")
                continue
            store.repair_directory(directory)
            self.note("fail_dir", [node_id], "stop", str(dir))

    def repair_all_dirs(self) -> None:
        """Mend every log directory, and start the brokers anew that had lost one."""
        for node_id in self.broker_ids:
            store = ReplicaStore(self.disks[node_id])
            ids, online = store.directory_ids, store.online_directories
            for index, directory in enumerate(ids):
                if directory not in online:
                    self.repair_dir(node_id, index)
            if len(online) < len(ids) and node_id in self.processes:
                self.restart(node_id)

    def _directories(
        self, action: str, broker: Nodes, index: int
    ) -> Iterator[tuple[int, ReplicaStore, uuid.UUID]]:
        for node_id in self._ids(broker):
            ids = self.disks[node_id].directory_ids
            if node_id not in self.broker_ids or not 0 <= index < len(ids):
                count = len(ids) if node_id in self.broker_ids else 0
                raise UserError(
                    f"{action}: node {node_id} has {count} log directories, not {index}"
                )
            yield node_id, ReplicaStore(self.disks[node_id]), ids[index]

    def mutate(self, fault: str, *, off: bool = False) -> None:
        """Plant a fault from here on, or take it out again."""
        self.faults.plant(fault, not off)
        self.note("mutate", [fault], "stop" if off else "start")

    # How it is done.

    def start_node(self, node_id: int) -> None:
        """Start a node's process on its disk; on a broken one it ends before it begins."""
        self._starts[node_id] = count = self._starts.get(node_id, 0) + 1
        disk = self.disks[node_id]
        metadata_directory = self.config.metadata_directory(disk.directory_ids)
        if node_id in self.broker_ids and (
            why := ReplicaStore(disk).cannot_run(metadata_directory)
        ):
            self.note("exit", [node_id], "note", why)
            return
        chance = self.rt.rng(f"incarnation/{node_id}/{count}")
        context = NodeContext(
            node_id=node_id,
            incarnation=uuid.UUID(int=chance.getrandbits(128), version=4),
            network=self.network,
            recorder=self.recorder,
            disk=disk,
            config=self.config,
            rules=self.rules,
            faults=self.faults,
            log=self.log.bind(node=node_id),
            exited=self._exited,
        )
        start = self._start_broker if node_id in self.broker_ids else self._start_controller
        process = start(context)
        self.processes[node_id] = process
        self.recorder.event("start", node_id, str(context.incarnation))

    def _start_controller(self, context: NodeContext) -> Process:
        name = f"controller-{context.node_id}"
        actor: Any = None  # until it is there, connections are refused
        self.network.attach(context.node_id, str(context.incarnation), lambda _: actor)
        self.rt.spawn(QuorumController, name, context, self.plan, self.inlet, self.bootstrap)
        actor = self.rt.actor(name)
        return Process(
            node_id=context.node_id,
            incarnation=context.incarnation,
            actors=(name,),
            controller=actor,
        )

    def _start_broker(self, context: NodeContext) -> Process:
        node_id = context.node_id
        names = (f"replica-manager-{node_id}", f"publisher-{node_id}", f"broker-{node_id}")
        self.rt.spawn(ReplicaManager, names[0], context)
        replicas: Any = self.rt.actor(names[0])
        self.rt.spawn(MetadataPublisher, names[1], context, None)
        publisher: Any = self.rt.actor(names[1])
        broker: Any = None

        def route(api: str) -> ClusterActor | None:
            target: ClusterActor | None = replicas if api in REPLICA_APIS else broker
            return target

        self.network.attach(node_id, str(context.incarnation), route)
        self.rt.spawn(Broker, names[2], context, self.plan, publisher, replicas)
        broker = self.rt.actor(names[2])
        return Process(
            node_id=node_id,
            incarnation=context.incarnation,
            actors=names,
            broker=broker,
            replicas=replicas,
            publisher=publisher,
        )

    def _end_process(self, node_id: int) -> None:
        process = self.processes.pop(node_id)
        for name in reversed(process.actors):
            self.rt.kill(name)
        self.network.detach(node_id)
        self.recorder.event("end", node_id, str(process.incarnation))

    def _exited(self, node_id: int, halted: str) -> None:
        """A process has ended by itself; it is taken away when its actor's step is over."""
        self.rt.schedule(self.rt.now(), self._take_away, (self.processes.get(node_id), halted))

    def _take_away(self, what: tuple[Process | None, str]) -> None:
        process, halted = what
        if process is not None and self.processes.get(process.node_id) is process:
            self._record_logs(process.node_id, "crash" if halted else "end")
            self._end_process(process.node_id)
            self.note("exit", [process.node_id], "note", halted)

    def _new_directories(self, node_id: int) -> tuple[uuid.UUID, ...]:
        count = self._starts.get(node_id, 0)
        chance = self.rt.rng(f"directory/{node_id}/{count}")
        return tuple(
            uuid.UUID(int=chance.getrandbits(128), version=4) for _ in self.config.log_dirs
        )

    def _record_logs(self, node_id: int, at: str) -> None:
        raise NotImplementedError
