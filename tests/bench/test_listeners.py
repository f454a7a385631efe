"""Clusters with listeners under confluent-kafka, beside librdkafka's own mock cluster.

Aims on a quiet machine: 3 and 3 with listeners give a client its first metadata 50 ms after the
start; produce to consume 2 ms; 50,000 messages of 100 bytes per second to three replicas. The mock
cluster does not replicate. The bounds are far below, so that only a change of kind fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import confluent_kafka
import pytest

from minicluster import MiniCluster

pytestmark = pytest.mark.clients

MESSAGE = b"x" * 100
MESSAGES = 50_000
CLIENTS = 100
LIMIT_S = 120.0
OURS, MOCK = "minicluster", "librdkafka's mock cluster"


class Servers:
    """A cluster of three brokers: ours, or librdkafka's, which lives in a producer."""

    def __init__(self, kind: str) -> None:
        self.ours = MiniCluster(seed=1, listeners=True) if kind == OURS else None
        self.mock: confluent_kafka.Producer | None = None

    def start(self) -> str:
        """Start, and give the addresses."""
        if self.ours is not None:
            return self.ours.start().bootstrap_servers
        self.mock = confluent_kafka.Producer(
            {"bootstrap.servers": "-", "test.mock.num.brokers": 3, "log_level": 0}
        )
        brokers = self.mock.list_topics(timeout=LIMIT_S).brokers.values()
        return ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def topic(self, name: str, replicas: int) -> None:
        if self.ours is not None:
            self.ours.create_topic(name, replicas=replicas, min_isr=min(2, replicas))

    def stop(self) -> None:
        if self.ours is not None:
            self.ours.stop()
        self.mock = None


@pytest.fixture(params=[OURS, MOCK], ids=["minicluster", "mock"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def servers(kind: str) -> Iterator[tuple[Servers, str]]:
    built = Servers(kind)
    yield built, built.start()
    built.stop()


def consumer_of(addresses: str, topic: str) -> confluent_kafka.Consumer:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": addresses, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    return consumer


def consumed(consumer: confluent_kafka.Consumer) -> None:
    message = consumer.poll(LIMIT_S)
    assert message is not None and message.error() is None, message


def measure_start(benchmark: Any, kind: str, use: Callable[[Servers, str], None]) -> float:
    """Milliseconds from nothing until a client is served, the least of many."""
    running: list[Servers] = []

    def stop() -> None:
        while running:
            running.pop().stop()

    def start() -> None:
        running.append(Servers(kind))
        use(running[-1], running[-1].start())

    benchmark.pedantic(start, setup=stop, rounds=8, warmup_rounds=2)
    stop()
    milliseconds: float = 1000 * benchmark.stats.stats.min
    benchmark.extra_info["ms"] = round(milliseconds, 1)
    return milliseconds


def test_start_until_the_first_metadata(benchmark: Any, kind: str) -> None:
    def use(_: Servers, addresses: str) -> None:
        client = confluent_kafka.Producer({"bootstrap.servers": addresses})
        assert len(client.list_topics(timeout=LIMIT_S).brokers) == 3

    assert measure_start(benchmark, kind, use) < 2_000


def test_start_until_the_first_record_is_consumed(benchmark: Any, kind: str) -> None:
    def use(servers: Servers, addresses: str) -> None:
        servers.topic("orders", 3)
        producer = confluent_kafka.Producer({"bootstrap.servers": addresses, "linger.ms": 0})
        producer.produce("orders", MESSAGE, partition=0)
        assert producer.flush(LIMIT_S) == 0
        consumer = consumer_of(addresses, "orders")
        consumed(consumer)
        consumer.close()

    assert measure_start(benchmark, kind, use) < 3_000


def test_produce_to_consume(benchmark: Any, servers: tuple[Servers, str]) -> None:
    """The steady time of one record, from produce() to poll(), with acks=all in three replicas."""
    cluster, addresses = servers
    cluster.topic("orders", 3)
    producer = confluent_kafka.Producer({"bootstrap.servers": addresses, "linger.ms": 0})
    producer.produce("orders", MESSAGE, partition=0)
    assert producer.flush(LIMIT_S) == 0
    consumer = consumer_of(addresses, "orders")
    consumed(consumer)

    def one() -> None:
        producer.produce("orders", MESSAGE, partition=0)
        producer.poll(0)
        consumed(consumer)

    benchmark.pedantic(one, rounds=100, warmup_rounds=10)
    consumer.close()
    benchmark.extra_info["median_ms"] = round(1000 * benchmark.stats.stats.median, 2)
    assert benchmark.stats.stats.median < 2


@pytest.mark.parametrize(("acks", "replicas"), [("1", 1), ("all", 1), ("all", 3)])
def test_messages_per_second(
    benchmark: Any, servers: tuple[Servers, str], acks: str, replicas: int
) -> None:
    """Messages of 100 bytes from one producer to one partition."""
    cluster, addresses = servers
    cluster.topic("orders", replicas)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": addresses,
            "acks": acks,
            "linger.ms": 5,
            "queue.buffering.max.messages": 2 * MESSAGES,
        }
    )
    producer.produce("orders", MESSAGE, partition=0)
    assert producer.flush(LIMIT_S) == 0

    def many() -> None:
        for _ in range(MESSAGES):
            producer.produce("orders", MESSAGE, partition=0)
        assert producer.flush(LIMIT_S) == 0

    benchmark.pedantic(many, rounds=5, warmup_rounds=1)
    rate = MESSAGES / benchmark.stats.stats.min
    benchmark.extra_info["messages_per_second"] = round(rate)
    assert rate > 5_000


def test_a_hundred_clients_at_once(benchmark: Any, servers: tuple[Servers, str]) -> None:
    """Each produces ten records with acks=all and reads their metadata; all at the same time."""
    cluster, addresses = servers
    cluster.topic("orders", 3)
    producers = [
        confluent_kafka.Producer(
            {"bootstrap.servers": addresses, "client.id": f"app-{number}", "linger.ms": 0}
        )
        for number in range(CLIENTS)
    ]

    def use(producer: confluent_kafka.Producer) -> None:
        for _ in range(10):
            producer.produce("orders", MESSAGE, partition=0)
        assert producer.flush(LIMIT_S) == 0
        assert producer.list_topics(timeout=LIMIT_S).topics

    with ThreadPoolExecutor(CLIENTS) as pool:

        def all_at_once() -> float:
            began_s = time.perf_counter()
            list(pool.map(use, producers))
            return time.perf_counter() - began_s

        benchmark.pedantic(all_at_once, rounds=5, warmup_rounds=1)
    benchmark.extra_info["ms"] = round(1000 * benchmark.stats.stats.min)
    assert benchmark.stats.stats.min < 30
