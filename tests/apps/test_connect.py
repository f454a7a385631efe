"""Connect, distributed, with an exactly-once source (KIP-618): its worker is killed, or logs in."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from tests.apps.programs import jars, needs_kafka
from tests.apps.records import read_committed
from tests.java import compile_java
from tests.kafka.process import LOOPBACK, JavaProgram, free_port, wait_for

pytestmark = [pytest.mark.apps, pytest.mark.slow, needs_kafka()]

CONNECTOR = Path(__file__).with_name("java") / "CountingConnector.java"
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
COUNT = 1_500
SOME = 300
UP_WITHIN_S = 180.0


class Worker:
    """A worker of Connect and its REST API.

    Shapes:  login: the configs of its clients besides their servers.
    """

    def __init__(
        self, servers: str, classes: Path, folder: Path, replicas: int, login: Mapping[str, Any]
    ) -> None:
        folder.mkdir()
        self._url = f"http://{LOOPBACK}:{free_port()}"
        converter = "org.apache.kafka.connect.storage.StringConverter"
        config = {
            "bootstrap.servers": servers,
            "group.id": "connect",
            "listeners": self._url,
            "exactly.once.source.support": "enabled",
            "offset.flush.interval.ms": 200,
            "key.converter": converter,
            "value.converter": converter,
            "plugin.discovery": "only_scan",
        }
        for name in ("config", "offset", "status"):
            config[f"{name}.storage.topic"] = f"connect-{name}"
            config[f"{name}.storage.replication.factor"] = replicas
        for name in ("offset", "status"):
            config[f"{name}.storage.partitions"] = 2
        for client in ("", "producer.", "consumer.", "admin."):
            config |= {f"{client}{name}": value for name, value in login.items()}
        properties = folder / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
        self._process = JavaProgram(
            WORKER, str(properties), folder=folder, class_path=[classes, f"{jars()}/*"]
        )

    def wait_until_up(self) -> None:
        wait_for(lambda: self._get("/connectors") is not None, UP_WITHIN_S, self._process.log_lines)

    def create_numbers(self, count: int) -> None:
        """A connector that writes the numbers, in exactly-once transactions."""
        config = {
            "connector.class": "minicluster.apps.CountingConnector",
            "tasks.max": "1",
            "topic": "numbers",
            "count": str(count),
            "exactly.once.support": "required",
            "transaction.boundary": "poll",
        }
        assert self._send("PUT", "/connectors/numbers/config", config) == 201

    def restart_task(self) -> None:
        assert self._send("POST", "/connectors/numbers/tasks/0/restart") == 204

    def states(self) -> list[str]:
        """Of the connector and its tasks."""
        status = self._get("/connectors/numbers/status")
        if status is None:
            return []
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    def why_it_failed(self) -> str:
        """The stack trace of its task."""
        return str(self._get("/connectors/numbers/tasks/0/status")["trace"])

    def _send(self, method: str, path: str, body: dict[str, str] | None = None) -> int:
        request = urllib.request.Request(
            f"{self._url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=UP_WITHIN_S) as response:
            return int(response.status)

    def _get(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(f"{self._url}{path}", timeout=UP_WITHIN_S) as response:
                return json.load(response)
        except (urllib.error.URLError, ConnectionError):
            return None

    def log_lines(self) -> str:
        return self._process.log_lines()

    def kill(self) -> None:
        self._process.kill()


@contextmanager
def worker(
    cluster: MiniCluster, classes: Path, folder: Path, login: Mapping[str, Any] | None = None
) -> Iterator[Worker]:
    """A worker that is up; it is killed at the end."""
    replicas = len(cluster.brokers)
    running = Worker(cluster.bootstrap_servers, classes, folder, replicas, login or {})
    try:
        running.wait_until_up()
        yield running
    finally:
        print(running.log_lines())  # shown where the test has failed
        running.kill()


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    return compile_java(CONNECTOR, classes=tmp_path / "classes", class_path=[f"{jars()}/*"])


def test_every_number_is_there_once_though_a_worker_was_killed(
    classes: Path, tmp_path: Path
) -> None:
    with MiniCluster(brokers=3, controllers=3, seed=24, listeners=True) as cluster:
        cluster.create_topic("numbers", partitions=1, replicas=3, min_isr=2)
        servers = cluster.bootstrap_servers
        with worker(cluster, classes, tmp_path / "first") as first:
            first.create_numbers(COUNT)
            assert len(read_some(servers)) >= SOME
        cluster.bounce(cluster.topic("numbers")[0].leader, down="4s")
        with worker(cluster, classes, tmp_path / "second") as second:
            values = [value for _, value in read_committed(servers, "numbers", 1, COUNT)]
            assert values == [str(number) for number in range(COUNT)]
            wait_for(
                lambda: second.states() == ["RUNNING", "RUNNING"],
                UP_WITHIN_S,
                second.log_lines,
            )
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()


def test_a_worker_logs_in_and_its_task_fails_for_the_right_that_it_lacks(
    classes: Path, tmp_path: Path
) -> None:
    """What it keeps for itself it may make and use; WRITE on numbers comes later."""
    with MiniCluster(
        brokers=1,
        controllers=1,
        seed=24,
        listeners="SASL_PLAINTEXT",
        users={"admin": "admin-secret", "worker": "secret"},
        super_users=["admin"],
    ) as cluster:
        numbers = cluster.create_topic("numbers")
        cluster.grant("worker", "ALL", topic="connect-", prefixed=True)
        cluster.grant("worker", "READ", group="connect")
        cluster.grant("worker", ["WRITE", "DESCRIBE"], transactional_id="connect", prefixed=True)
        cluster.grant("worker", "DESCRIBE", topic="numbers")
        login = cluster.client_config("worker", for_="java")
        del login["bootstrap.servers"]
        with worker(cluster, classes, tmp_path / "worker", login) as running:
            running.create_numbers(SOME)
            wait_for(lambda: "FAILED" in running.states()[1:], UP_WITHIN_S, running.log_lines)
            why = running.why_it_failed()
            assert "TopicAuthorizationException: Not authorized to access topics: [numbers]" in why
            assert numbers[0].log_end_offset == 0
            cluster.grant("worker", "WRITE", topic="numbers")
            running.restart_task()
            wait_for(lambda: numbers[0].log_end_offset >= SOME, UP_WITHIN_S, running.log_lines)
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()


def read_some(servers: str) -> list[str]:
    """The first numbers, while others still come."""
    return [value for _, value in read_committed(servers, "numbers", 1, SOME, quiet=False)]
