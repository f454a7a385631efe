"""An hour of real time under real clients, and a day of simulated time: memory stays what it is.

``make soak`` prints a table of memory over time. ``SOAK_MINUTES`` (60) and ``SOAK_HOURS`` (24, of
the simulated day) make it shorter or longer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from minicluster import MiniCluster
from minicluster.actors.cluster.client import CLIENT_ID
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.exchange import Sender
from minicluster.actors.network import Completion, Network
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.actors.serve.serving import TRACE_BYTES
from minicluster.clients.produce import produce_request
from minicluster.log import Record
from minicluster.protocol.messages import FetchRequest
from minicluster.trace import TABLES
from tests.soak.table import Sample, Table, resident_bytes

RECORDS_PER_S = 1_000
VALUE = b"x" * 100
MINUTES = float(os.environ.get("SOAK_MINUTES", "60"))
HOURS = float(os.environ.get("SOAK_HOURS", "24"))
PARTITIONS = 6
CONFIG = {
    "log.retention.bytes": 4 << 20,
    "log.segment.bytes": 1 << 20,
    "log.retention.ms": -1,
    "log.retention.check.interval.ms": 30_000,
    "metadata.log.max.snapshot.interval.ms": 30 * 60_000,
    "metadata.max.retention.ms": 60 * 60_000,
}

pytestmark = pytest.mark.soak


# --- An hour of real clients ----------------------------------------------------------------


class Clients:
    """Producers and consumers of librdkafka, at a steady rate; they run in threads."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._stopping = threading.Event()
        self.acknowledged = self.failed = self.consumed = 0
        self._threads = [
            threading.Thread(target=self._produce, daemon=True),
            *(threading.Thread(target=self._consume, args=(n,), daemon=True) for n in range(4)),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": self._servers, "enable.idempotence": True, "linger.ms": 20}
        )
        sent, began_s = 0, time.monotonic()
        while not self._stopping.is_set():
            while sent < (time.monotonic() - began_s) * RECORDS_PER_S:
                try:
                    producer.produce("orders", VALUE, key=str(sent), on_delivery=self._delivered)
                except BufferError:
                    break
                sent += 1
            producer.poll(0.01)
        producer.flush(30)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failed += 1

    def _consume(self, number: int) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": f"group-{number % 2}",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        while not self._stopping.is_set():
            messages = consumer.consume(500, 0.5)
            self.consumed += sum(1 for message in messages if not message.error())
        consumer.close()


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``minicluster serve`` in a process of its own, and its addresses."""
    ready = folder / "ready.json"
    words = ["serve", "--port", "0", "--name", "soak", "--topic", f"orders:{PARTITIONS}:3"]
    for name, value in CONFIG.items():
        words += ["--config", f"{name}={value}"]
    words += ["--runs", str(folder / "runs"), "--ready-file", str(ready)]
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "minicluster", *words], stdout=log, stderr=log, text=True
        )
        try:
            until_s = time.monotonic() + 120
            while not ready.exists():
                assert process.poll() is None and time.monotonic() < until_s, "it does not serve"
                time.sleep(0.1)
            yield process, json.loads(ready.read_text())["bootstrap_servers"]
        finally:
            process.kill()
            process.wait()


def stored_bytes(servers: str) -> int:
    """What the brokers' logs have now, by DescribeLogDirs; replicas count each."""
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=servers.split(","))
    try:
        found = 0
        for broker in admin.describe_log_dirs():
            for directory in broker["log_dirs"]:
                for topic in directory["topics"]:
                    found += sum(one["partition_size"] for one in topic["partitions"])
        return found
    finally:
        admin.close()


def test_an_hour_of_clients_takes_no_more_memory_than_its_first_minutes(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("kafka")
    with serving(tmp_path) as (process, servers):
        clients, table = Clients(servers), Table()
        began_s = time.monotonic()
        rows = max(12, int(MINUTES / 2))
        for row in range(1, rows + 1):
            time.sleep(max(0.0, began_s + row * MINUTES * 60 / rows - time.monotonic()))
            assert process.poll() is None, (tmp_path / "serve.log").read_text()
            table.add(
                Sample(
                    at_s=time.monotonic() - began_s,
                    records=clients.acknowledged,
                    memory=resident_bytes(process.pid),
                    stored=stored_bytes(servers),
                )
            )
        clients.stop()
        ends_s = time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait(300)
        print(f"ended in {time.monotonic() - ends_s:.1f} s; consumed {clients.consumed:,}")
    table.check()
    assert code == 0 and clients.failed == 0
    assert clients.acknowledged > 0 and clients.consumed > 0
    [run] = (tmp_path / "runs").iterdir()
    trace = sum(file.stat().st_size for file in run.glob("trace/*.parquet"))
    assert trace < 1.5 * TRACE_BYTES


# --- A day in simulated time ----------------------------------------------------------------


class SteadyClient(ClusterActor):
    """A client that produces a batch and reads it, four times a second, to each partition in turn.

    Its batches have the bytes that a real client sends, the same ones each time.
    """

    EVERY_MS = 250

    def __init__(self, cluster: RunningCluster, network: Network) -> None:
        super().__init__()
        self._cluster, self._network = cluster, network
        self._turns = count()
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        size, time_ms = RECORDS_PER_S * self.EVERY_MS // 1_000, self.rt.record_time_ms()
        self._records = [Record(n, time_ms, None, VALUE) for n in range(size)]
        self._batch = b""  # of these records, as bytes
        self.acknowledged = self.failed = 0

    def on_start(self) -> None:
        self.after(self.EVERY_MS, "produce")

    def on_receive(self, message: Any) -> None:
        if not isinstance(message, Completion):
            self._produce(next(self._turns) % PARTITIONS)
            self.after(self.EVERY_MS, message)
            return
        index = message.exchange.context
        response = message.response
        if index is None or response is None:
            self.failed += response is None
            return
        [partition] = response.responses[0].partition_responses
        if partition.error_code:
            self.failed += 1
            return
        self.acknowledged += RECORDS_PER_S * self.EVERY_MS // 1_000
        self._fetch(index, self._ends[index])
        self._ends[index] = partition.base_offset + RECORDS_PER_S * self.EVERY_MS // 1_000

    def _produce(self, index: int) -> None:
        request = produce_request(("orders", index), *self._records, acks=-1, timeout_ms=30_000)
        [topic] = request.topic_data
        [data] = topic.partition_data
        self._batch = self._batch or bytes(data.records)
        topic = replace(topic, partition_data=(replace(data, records=self._batch),))
        self._send(index, replace(request, topic_data=(topic,)), 9, context=index)

    def _fetch(self, index: int, offset: int) -> None:
        partition = FetchRequest.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        topic = FetchRequest.FetchTopic(topic="orders", partitions=(partition,))
        request = FetchRequest(
            replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=(topic,)
        )
        self._send(index, request, 12, context=None)

    def _send(self, index: int, request: Any, version: int, *, context: int | None) -> None:
        leader = self._cluster.leader_id("orders", index)
        assert leader is not None
        self._network.request(
            src=CLIENT_ID,
            dst=leader,
            body=request,
            version=version,
            caller=self,
            context=context,
            timeout_ms=30_000,
            sender=Sender(client_id="steady"),
        )


def test_a_day_of_simulated_load_takes_no_more_memory_than_its_first_hours() -> None:
    with MiniCluster(seed=1, config=CONFIG) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS)
        running = inside(cluster)
        running.recorder.bound_for_hours(TRACE_BYTES)
        running.rt.spawn(SteadyClient, "steady", running, running.network)
        client = running.rt.actor("steady")
        assert isinstance(client, SteadyClient)
        table = Table()
        for row in range(1, 25):
            cluster.run_for(f"{HOURS * 3600 / 24:.0f}s")
            tables = running.recorder.tables
            table.add(
                Sample(
                    at_s=cluster.now_ms / 1000,
                    records=client.acknowledged,
                    memory=resident_bytes(),
                    stored=stored_in(running),
                    trace=tables.bytes,
                    dropped=sum(tables[name].dropped for name in TABLES),
                )
            )
            assert row and client.failed == 0
        assert client.acknowledged > 0.99 * HOURS * 3600 * RECORDS_PER_S
    table.check()


def stored_in(cluster: RunningCluster) -> int:
    """What the brokers' logs have; the replicas of a simulated cluster share their batches."""
    batches = {
        id(batch): batch.size
        for disk in cluster.disks.values()
        for log in disk.logs.values()
        for batch in log.batches
    }
    return sum(batches.values())
