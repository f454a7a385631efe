"""A process of ZooKeeper's own server, empty at its start."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from tests.java import java
from tests.kafka.process import LOOPBACK, free_port
from tests.zookeeper.real.jars import jars_folder

TICK_MS = 200
UP_WITHIN_S = 30.0
END_WITHIN_S = 30.0
LOG_LINES = 40


class ServerProcess:
    """One server in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder / "zookeeper"
        self._folder.mkdir()
        self._log = self._folder / "zookeeper.log"
        self._process: subprocess.Popen[bytes] | None = None
        lines = {
            "dataDir": self._folder / "data",
            "clientPort": self.port,
            "clientPortAddress": LOOPBACK,
            "tickTime": TICK_MS,
            "minSessionTimeout": 2 * TICK_MS,
            "maxSessionTimeout": 60_000,
            "maxClientCnxns": 0,
            "forceSync": "no",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "dump,ruok",
        }
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        (self._folder / "zoo.cfg").write_text(text)

    @property
    def hosts(self) -> str:
        """The address that a client connects to."""
        return f"{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Start the process, and wait until it serves."""
        program = java()
        assert program is not None
        command = [program, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.forceSync=no"]
        command += ["-cp", f"{jars_folder()}/*"]
        command += ["org.apache.zookeeper.server.ZooKeeperServerMain"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(self._folder / "zoo.cfg")], stdout=log, stderr=log
            )
        ends = time.monotonic() + UP_WITHIN_S
        while self._command("ruok") != "imok":
            assert time.monotonic() < ends and self._process.poll() is None, self.log_lines()
            time.sleep(0.1)

    def has_session(self, session: int) -> bool:
        """The server has not expired or closed a session."""
        dump = self._command("dump")
        assert dump, self.log_lines()
        return f"{session:#x}" in dump.split()

    def kill(self) -> None:
        """End the process, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(END_WITHIN_S)

    def log_lines(self) -> str:
        """The latest lines of its log, for a test that fails."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_LINES:])

    def _command(self, word: str) -> str:
        """The response to one of ZooKeeper's four-letter words, empty while nothing listens."""
        try:
            with socket.create_connection((LOOPBACK, self.port), 10.0) as connection:
                connection.sendall(word.encode())
                received = b""
                while data := connection.recv(1 << 16):
                    received += data
                return received.decode()
        except OSError:
            return ""
