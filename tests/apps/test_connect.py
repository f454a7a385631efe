"""Connect, distributed, with an exactly-once source (KIP-618): its worker is killed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
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
    """A worker of Connect and its REST API."""

    def __init__(self, servers: str, classes: Path, folder: Path) -> None:
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
            config[f"{name}.storage.replication.factor"] = 3
        for name in ("offset", "status"):
            config[f"{name}.storage.partitions"] = 2
        properties = folder / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
        self._process = JavaProgram(
            WORKER, str(properties), folder=folder, class_path=[classes, f"{jars()}/*"]
        )

    def wait_until_up(self) -> None:
        wait_for(lambda: self._get("/connectors") is not None, UP_WITHIN_S, self._process.log_lines)

    def create(self, name: str, config: dict[str, str]) -> None:
        request = urllib.request.Request(
            f"{self._url}/connectors/{name}/config",
            data=json.dumps(config).encode(),
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=UP_WITHIN_S) as response:
            assert response.status == 201

    def states(self, name: str) -> list[str]:
        """Of the connector and its tasks."""
        status = self._get(f"/connectors/{name}/status")
        if status is None:
            return []
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

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
def worker(cluster: MiniCluster, classes: Path, folder: Path) -> Iterator[Worker]:
    """A worker that is up; it is killed at the end."""
    running = Worker(cluster.bootstrap_servers, classes, folder)
    try:
        running.wait_until_up()
        yield running
    finally:
        print(running.log_lines())  # shown where the test has failed
        running.kill()


def test_every_number_is_there_once_though_a_worker_was_killed(tmp_path: Path) -> None:
    classes = compile_java(CONNECTOR, classes=tmp_path / "classes", class_path=[f"{jars()}/*"])
    with MiniCluster(brokers=3, controllers=3, seed=24, listeners=True) as cluster:
        cluster.create_topic("numbers", partitions=1, replicas=3, min_isr=2)
        servers = cluster.bootstrap_servers
        with worker(cluster, classes, tmp_path / "first") as first:
            first.create(
                "numbers",
                {
                    "connector.class": "minicluster.apps.CountingConnector",
                    "tasks.max": "1",
                    "topic": "numbers",
                    "count": str(COUNT),
                    "exactly.once.support": "required",
                    "transaction.boundary": "poll",
                },
            )
            assert len(read_some(servers)) >= SOME
        cluster.bounce(cluster.topic("numbers")[0].leader, down="4s")
        with worker(cluster, classes, tmp_path / "second") as second:
            values = [value for _, value in read_committed(servers, "numbers", 1, COUNT)]
            assert values == [str(number) for number in range(COUNT)]
            wait_for(
                lambda: second.states("numbers") == ["RUNNING", "RUNNING"],
                UP_WITHIN_S,
                second.log_lines,
            )
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()


def read_some(servers: str) -> list[str]:
    """The first numbers, while others still come."""
    return [value for _, value in read_committed(servers, "numbers", 1, SOME, quiet=False)]
