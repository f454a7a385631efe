"""What is done to the three nodes of a release while their logs are recorded."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from minicluster.protocol.uuids import format_uuid
from tests.java import java_command
from tests.kafka.process import LOOPBACK, KafkaProcess, are_free, wait_for

OPERATE = Path(__file__).parents[1] / "java" / "Operate.java"
NODES = (1, 2, 3)
WITHIN_S = 120.0
PORTS = range(21_000, 29_000, 10)  # no other program gets one of these while a node is down

# The first patch of each minor release, and the metadata.version that its folders begin with.
FROM = {
    "3.3.1": "3.3-IV0",
    "3.4.0": "3.3-IV3",
    "3.5.0": "3.4-IV0",
    "3.6.0": "3.3-IV0",
    "3.7.0": "3.6-IV2",
    "3.8.0": "3.5-IV2",
    "3.9.0": "3.8-IV0",
    "4.0.0": "3.3-IV3",
    "4.1.0": "4.0-IV3",
    "4.2.0": "3.9-IV0",
    "4.3.0": "4.2-IV1",
    "4.4.0": "3.7-IV4",
}

NODE = {
    "process.roles": "broker,controller",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.backoff.ms": "100",
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
    # An idle log grows little, and there are some snapshots beside it.
    "metadata.max.idle.interval.ms": "5000",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}


class Operator:
    """Kafka's admin client, in a process of its own."""

    def __init__(self, jars: Path, servers: str, log: Path) -> None:
        self._errors = log.open("wb")
        self._process = subprocess.Popen(
            [*java_command(OPERATE, class_path=[f"{jars}/*"], heap="128m"), servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ask(self, command: str) -> str | None:
        """The result of a command, None where it failed."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(f"{command}\n")
        stdin.flush()
        line = stdout.readline().strip()
        if not line.startswith("ok "):
            print(f"  {command}: {line}", flush=True)
            return None
        return line.removeprefix("ok ")

    def until(self, command: str, result: str) -> None:
        """Repeat a command until it has a result."""
        seen: list[str | None] = [None]

        def holds() -> bool:
            seen[0] = self.ask(command)
            return seen[0] == result

        wait_for(holds, WITHIN_S, lambda: f"{command}: {seen[0]}")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


class Run:
    """Three combined nodes of a release."""

    def __init__(self, version: str, jars: Path, folder: Path) -> None:
        first = next(first for first in PORTS if are_free(first, 2 * len(NODES)))
        self._ports = {node: (first + 2 * n, first + 2 * n + 1) for n, node in enumerate(NODES)}
        voters = ",".join(f"{node}@{LOOPBACK}:{own[1]}" for node, own in self._ports.items())
        cluster_id = format_uuid(uuid.UUID(int=first))
        self.nodes = {
            node: KafkaProcess(
                folder / str(node),
                cluster_id,
                {
                    **NODE,
                    "node.id": node,
                    "controller.quorum.voters": voters,
                    "listeners": f"PLAINTEXT://{LOOPBACK}:{broker},"
                    f"CONTROLLER://{LOOPBACK}:{controller}",
                    "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{broker}",
                },
                jars,
            )
            for node, (broker, controller) in self._ports.items()
        }
        for node in self.nodes.values():
            node.format("--release-version", FROM[version])
        servers = ",".join(f"{LOOPBACK}:{broker}" for broker, _ in self._ports.values())
        self.operator = Operator(jars, servers, folder / "operate.log")

    def do(self, *commands: str) -> None:
        """Commands of the operator; one that this release rejects is shown."""
        for command in commands:
            self.operator.ask(command)

    def start(self, *nodes: int) -> None:
        """Start nodes, and wait until all replicas are in sync."""
        for node in nodes:
            self.nodes[node].start()
        self.settle()

    def end(self, how: Callable[[KafkaProcess], None], nodes: Iterable[int]) -> None:
        """End the processes of nodes."""
        for node in nodes:
            how(self.nodes[node])

    def settle(self) -> None:
        """Wait until all brokers are there and all replicas in sync."""
        self.operator.until("brokers", str(len(NODES)))
        self.operator.until("unsettled", "0")

    def active_controller(self) -> int:
        """The node whose controller is active."""
        return int(self.operator.ask("controller") or NODES[0])

    def close(self) -> None:
        """End everything."""
        self.end(KafkaProcess.kill, NODES)
        self.operator.close()


def play(version: str, jars: Path, folder: Path) -> None:
    """Play a run of a release; its nodes have ended then."""
    run = Run(version, jars, folder)
    try:
        _play(run)
    except AssertionError as error:
        logs = (f"node {number}:\n{node.log_lines()}" for number, node in run.nodes.items())
        error.add_note("\n".join(logs))
        raise
    finally:
        run.close()


def _play(run: Run) -> None:
    run.start(*NODES)
    run.do("create orders 3 3", "create single 1 1", "create pairs 2 2")
    run.do("topic-config orders min.insync.replicas 2", "topic-config pairs retention.ms 60000")
    run.do("broker-config all log.retention.ms 86400000", "broker-config 1 log.cleaner.threads 2")
    run.do("quota app", "produce orders 5")
    run.settle()
    _move(run, "move single 0 3", "move pairs 0 3,1", "move orders 0 2,3")
    _move(run, "move orders 0 1,2,3")
    run.do("partitions single 2", "move single 0 1,2", "move single 0 cancel")

    paused = next(node for node in NODES if node != run.active_controller())
    run.nodes[paused].pause()
    time.sleep(6)
    run.nodes[paused].resume()
    run.settle()
    run.do("elect preferred")

    levels = (run.operator.ask("levels") or "").split()
    levels.sort(key=lambda level: not level.startswith("metadata.version"))  # others depend on it
    for feature, _, highest in (level.partition("=") for level in levels):
        run.do(f"raise {feature} {highest}")
        time.sleep(1)  # from 3.7-IV0 on controllers register what they support

    run.nodes[2].kill()
    run.do("create while-2-is-dead 1 2")
    run.start(2)
    run.nodes[3].shut_down()
    run.do("produce orders 3", "unregister 3")
    run.start(3)
    run.do("elect preferred", "delete pairs")

    run.nodes[run.active_controller()].kill()
    run.do("create after-fail-over 2 2")
    run.start(*(node for node in NODES if not run.nodes[node].is_running))
    for _ in range(2):
        run.end(KafkaProcess.terminate, NODES)
        run.end(KafkaProcess.wait, NODES)
        run.start(*NODES)
    run.end(KafkaProcess.kill, NODES)
    run.start(*NODES)
    run.do("elect preferred", "delete single", "create last 1 3", "produce last 3")
    run.settle()


def _move(run: Run, *moves: str) -> None:
    run.do(*moves)
    run.operator.until("moving", "0")
