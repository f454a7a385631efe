"""Kafka's own clients against a cluster in this process: they produce, consume, and fail over."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from minicluster import MiniCluster
from minicluster.errors import UserError

LIMIT_S = 30.0


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(seed=3, listeners=True) as built:
        yield built


def produced(cluster: MiniCluster, topic: str, values: list[str], **more: object) -> list[int]:
    """The offsets at which a producer's records were acknowledged."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 1, **more}
    producer = confluent_kafka.Producer(settings)
    offsets: list[int] = []

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
    assert producer.flush(LIMIT_S) == 0
    return offsets


def consumed(cluster: MiniCluster, topic: str, count: int) -> list[str]:
    """The first records of a topic's only partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        return [message.value().decode() for message in consumer.consume(count, timeout=LIMIT_S)]
    finally:
        consumer.close()


def connects(address: tuple[str, int]) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(address) == 0


def test_a_client_finds_every_broker_at_its_real_port(cluster: MiniCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    found = admin.list_topics(timeout=LIMIT_S).brokers
    addresses = ",".join(f"{found[i].host}:{found[i].port}" for i in sorted(found))
    assert addresses == cluster.bootstrap_servers


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed(cluster: MiniCluster, codec: str) -> None:
    cluster.create_topic("orders", min_isr=2)
    values = [f"order {n}" for n in range(50)]
    offsets = produced(cluster, "orders", values, **{"compression.type": codec, "acks": "all"})
    assert sorted(offsets) == list(range(50))
    assert consumed(cluster, "orders", 50) == values


def test_an_idempotent_producer_survives_the_death_of_the_leader(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", min_isr=2)
    produced(cluster, "orders", ["before"])
    leader = orders[0].leader
    assert leader is not None
    cluster.kill(leader)
    produced(cluster, "orders", ["after"], **{"enable.idempotence": True})
    assert consumed(cluster, "orders", 2) == ["before", "after"]
    cluster.restart(leader)
    cluster.wait_until(orders.fully_in_sync, within="30s")


def test_threads_sockets_and_ports_are_free_after_the_stop() -> None:
    before = set(threading.enumerate())
    with MiniCluster(seed=3, listeners=True, brokers=1, controllers=1) as cluster:
        address = ("127.0.0.1", int(cluster.bootstrap_servers.rpartition(":")[2]))
        held = socket.create_connection(address, timeout=LIMIT_S)
    with held:
        assert held.recv(1) == b""
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(address)
    assert set(threading.enumerate()) <= before


def test_a_killed_broker_refuses_connections_and_returns_on_its_port() -> None:
    with MiniCluster(seed=3, listeners=True, brokers=1, controllers=1) as cluster:
        address = ("127.0.0.1", int(cluster.bootstrap_servers.rpartition(":")[2]))
        with socket.create_connection(address, timeout=LIMIT_S) as held:
            cluster.kill(1)
            assert held.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=LIMIT_S)
        cluster.restart(1)
        cluster.wait_until(lambda: connects(address), within="30s")


def test_listeners_in_virtual_time_are_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="runtime"):
        MiniCluster(listeners=True, runtime="simulated")
