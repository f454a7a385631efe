"""Records of 100 bytes that Kafka's own producer sends, beside one node of Apache Kafka.

Both are one broker and one controller with a topic of one partition; a batch of 16 KB has some 150
records, and acks=all acknowledges it once the one replica has it. ``ProducerPerformance`` sends to
one and to the other in turn, so that what else the machine does meets both. What a server needs of
the processor does not depend on that, nor on what the producer needs beside it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import confluent_kafka.admin
import pytest

from tests.java import java_command
from tests.kafka.jars import jars_folder, missing
from tests.kafka.process import LOOPBACK, KafkaProcess, free_ports

TOPIC = "orders"
RECORDS, WARM_UP_RECORDS = 400_000, 100_000
ROUNDS = 3
START_WITHIN_S = 60.0
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"

_SPEED = re.compile(r"^\d+ records sent, ([\d.]+) records/sec", re.MULTILINE)


class Server(NamedTuple):
    """A server that runs."""

    address: str
    pid: int

    @property
    def processor_s(self) -> float:
        """Seconds of the processor that it has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Round(NamedTuple):
    """Some records, and what they took of the processor on the side of the server."""

    records_per_s: float
    processor_s: float


@contextmanager
def ours(folder: Path) -> Iterator[Server]:
    """``minicluster serve``."""
    command = [
        *(sys.executable, "-m", "minicluster", "serve", "--brokers", "1", "--controllers", "1"),
        *("--port", "0", "--topic", f"{TOPIC}:1:1", "--runs", str(folder)),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip().partition("=")[2], process.pid)
        finally:
            process.kill()


@contextmanager
def of_kafka(folder: Path) -> Iterator[Server]:
    """One node of Apache Kafka that is both."""
    port = free_ports(2)
    node = KafkaProcess(
        folder / "kafka",
        CLUSTER_ID,
        {
            "node.id": 1,
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{port + 1}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{LOOPBACK}:{port + 1}",
            "offsets.topic.replication.factor": 1,
        },
    )
    node.format()
    node.start()
    address = f"{LOOPBACK}:{port}"
    try:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": address, "log_level": 0})
        topic = confluent_kafka.admin.NewTopic(TOPIC, num_partitions=1, replication_factor=1)
        admin.create_topics([topic], operation_timeout=START_WITHIN_S)[TOPIC].result(START_WITHIN_S)
        yield Server(address, node.pid)
    finally:
        node.kill()


def produced(server: Server, records: int) -> Round:
    """Let the producer send records, and report how many of them it sends in a second."""
    command = [
        *java_command(
            "org.apache.kafka.tools.ProducerPerformance",
            class_path=[f"{jars_folder()}/*"],
            heap="256m",
        ),
        *("--topic", TOPIC, "--num-records", str(records), "--record-size", "100"),
        *("--throughput", "-1", "--producer-props", "acks=all"),
        f"bootstrap.servers={server.address}",
    ]
    before_s = server.processor_s
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return Round(float(_SPEED.findall(done.stdout)[-1]), server.processor_s - before_s)


@pytest.mark.kafka
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_produce_beside_a_node_of_apache_kafka(benchmark: Any, tmp_path: Path) -> None:
    with ours(tmp_path / "runs") as our_server, of_kafka(tmp_path) as server_of_kafka:
        both = our_server, server_of_kafka
        for server in both:
            produced(server, WARM_UP_RECORDS)

        def rounds() -> list[tuple[Round, ...]]:
            return [tuple(produced(server, RECORDS) for server in both) for _ in range(ROUNDS)]

        our_rounds, rounds_of_kafka = zip(*benchmark.pedantic(rounds, rounds=1), strict=True)
    ours_per_s = median(each.records_per_s for each in our_rounds)
    kafka_per_s = median(each.records_per_s for each in rounds_of_kafka)
    benchmark.extra_info.update(
        ours_per_s=round(ours_per_s),
        kafka_per_s=round(kafka_per_s),
        our_processor_s=median(each.processor_s for each in our_rounds),
        processor_s_of_kafka=median(each.processor_s for each in rounds_of_kafka),
    )
    assert ours_per_s > 0.2 * kafka_per_s
