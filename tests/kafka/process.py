"""A process of Apache Kafka: formatted, started, stopped and continued by signals."""

from __future__ import annotations

import base64
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.java import java_command
from tests.kafka.jars import jars_folder

LOOPBACK = "127.0.0.1"
LOG_LINES = 40
END_WITHIN_S = 30.0
PROGRAM_WITHIN_S = 180.0

BROKER = {
    "process.roles": "broker",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "5000",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
    "replica.fetch.backoff.ms": "100",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
}
CONTROLLER = {
    "process.roles": "controller",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "broker.session.timeout.ms": "4500",
    "default.replication.factor": "1",
}


def free_port() -> int:
    """A port that no program has now."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        return int(taken.getsockname()[1])


def free_ports(count: int) -> int:
    """The first of several ports in a row that no program has now."""
    while True:
        first = free_port()
        if first + count <= 65_536 and are_free(first + 1, count - 1):
            return first


def are_free(first: int, count: int) -> bool:
    """No program listens at any of several ports in a row."""
    return all(_is_free(first + n) for n in range(count))


def _is_free(port: int) -> bool:
    with socket.socket() as taken:
        try:
            taken.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def wait_for(holds: Callable[[], bool], within_s: float, state: Callable[[], str]) -> None:
    """Wait until a process of Apache Kafka has come so far."""
    ends = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < ends, state()
        time.sleep(0.2)


class JavaProgram:
    """A Java program that runs until its standard input ends, or until a test ends it.

    Shapes:  program: a class, or one source file; class_path: Kafka's jars if none is given.
    """

    def __init__(
        self,
        program: str | Path,
        *arguments: str,
        folder: Path,
        class_path: Sequence[Path | str] = (),
    ) -> None:
        self._log = folder / "java.log"
        class_path = class_path or [f"{jars_folder()}/*"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*java_command(program, class_path=class_path, heap="768m"), *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def lines(self, beginning: str) -> list[str]:
        """The lines of its output that begin so."""
        lines = self._log.read_text(errors="replace").splitlines()
        return [line for line in lines if line.startswith(beginning)]

    def log_lines(self) -> str:
        """The latest lines of its output."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_LINES:])

    def kill(self) -> None:
        """End the program at once."""
        self._process.kill()
        self._process.wait(END_WITHIN_S)
        assert self._process.stdin is not None
        self._process.stdin.close()


class KafkaProcess:
    """One node of Apache Kafka in a folder of its own.

    Shapes:  jars: those of its release, the current one if none are given.
    """

    def __init__(
        self,
        folder: Path,
        cluster_id: str,
        properties: Mapping[str, object],
        jars: Path | None = None,
    ) -> None:
        self.folder = folder
        self._jars = jars or jars_folder()
        self.node_id = int(str(properties["node.id"]))
        self._properties = folder / "server.properties"
        self._log = folder / "kafka.log"
        data = folder / "data"
        data.mkdir(parents=True)
        lines = {**properties, "log.dirs": data}
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        self._cluster_id = cluster_id
        self._process: subprocess.Popen[bytes] | None = None

    def format(self, *options: str) -> None:
        """Format the data folder as ``kafka-storage format`` does, bootstrap records included."""
        command = ["format", "-t", self._cluster_id, "-c", str(self._properties), *options]
        done = subprocess.run(
            [*self._command("kafka.tools.StorageTool"), *command], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def format_broker(self) -> None:
        """Write what a broker needs of a formatted folder, without the seconds of another JVM."""
        directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        (self.folder / "data" / "meta.properties").write_text(
            f"version=1\ncluster.id={self._cluster_id}\nnode.id={self.node_id}\n"
            f"directory.id={directory}\n"
        )

    @property
    def directory_id(self) -> uuid.UUID:
        """The id of its formatted data folder."""
        lines = (self.folder / "data" / "meta.properties").read_text().splitlines()
        text = dict(line.split("=", 1) for line in lines if "=" in line)["directory.id"]
        return uuid.UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))

    def start(self) -> None:
        """Start the process; its output goes to ``kafka.log``."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command("kafka.Kafka"), str(self._properties)], stdout=log, stderr=log
            )

    def pause(self) -> None:
        """Stop the process where it is (SIGSTOP); its connections stay open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a stopped process go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        """The id of the process, once it was started."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """It was started, and has not ended."""
        return self._process is not None and self._process.poll() is None

    def shut_down(self) -> None:
        """A controlled shutdown (SIGTERM), and its end."""
        self.terminate()
        self.wait()

    def terminate(self) -> None:
        """Begin a controlled shutdown (SIGTERM)."""
        self._signal(signal.SIGTERM)

    def wait(self) -> None:
        """Wait until the process has ended, and end it if it does not."""
        assert self._process is not None
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process at once, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(END_WITHIN_S)

    def log_lines(self) -> str:
        """The latest lines of its log, for a test that fails."""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])

    def _command(self, main: str) -> list[str]:
        return _command(main, jars=self._jars)

    def _signal(self, number: int) -> None:
        assert self._process is not None and self._process.poll() is None, self.log_lines()
        self._process.send_signal(number)


def _command(main: str, *, jars: Path | None = None, heap: str = "256m") -> list[str]:
    return java_command(main, class_path=[f"{jars or jars_folder()}/*"], heap=heap)


def output_of(program: Path, *arguments: str) -> str:
    """The output of a Java program in one source file."""
    command = [*_command(str(program)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_WITHIN_S)
    assert done.returncode == 0, done.stderr
    return done.stdout
