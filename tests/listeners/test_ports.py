"""The ports of a cluster: where they are, when they refuse, and that nothing is left of them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside

LIMIT_S = 60.0


@pytest.fixture(params=["threaded", "simulated"])
def cluster(request: pytest.FixtureRequest) -> Iterator[MiniCluster]:
    with MiniCluster(seed=3, listeners=True, runtime=request.param) as built:
        yield built


def open_descriptors() -> int:
    """The number of files and sockets of this process; 0 on a system without /proc."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def has_ended(connection: socket.socket) -> bool:
    """Wait for the end of a connection: a FIN, or an RST where it was not accepted yet."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def connects(address: tuple[str, int]) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(address) == 0


def test_a_client_finds_every_broker_at_its_real_port(cluster: MiniCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    found = admin.list_topics(timeout=LIMIT_S).brokers
    addresses = ",".join(f"{found[i].host}:{found[i].port}" for i in sorted(found))
    assert addresses == cluster.bootstrap_servers


def test_every_broker_knows_all_of_them_before_the_first_client_comes(
    cluster: MiniCluster,
) -> None:
    """Otherwise a Metadata response of the first second names a part of the cluster."""
    assert cluster.bootstrap_servers
    for process in inside(cluster).processes.values():
        if process.publisher is not None:
            brokers = process.publisher.image.cluster.brokers.rows.values()
            unfenced = sorted(broker.id for broker in brokers if not broker.fenced)
            assert unfenced == list(inside(cluster).broker_ids)


def test_threads_sockets_and_ports_are_free_after_the_stop() -> None:
    before, descriptors = set(threading.enumerate()), open_descriptors()
    with MiniCluster(seed=3, listeners=True, brokers=1, controllers=1) as cluster:
        address = ("127.0.0.1", int(cluster.bootstrap_servers.rpartition(":")[2]))
        held = socket.create_connection(address, timeout=LIMIT_S)
    with held:
        assert has_ended(held)
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(address)
    assert set(threading.enumerate()) <= before
    assert open_descriptors() <= descriptors


def test_a_killed_broker_refuses_connections_and_returns_on_its_port() -> None:
    with MiniCluster(seed=3, listeners=True, brokers=1, controllers=1) as cluster:
        address = ("127.0.0.1", int(cluster.bootstrap_servers.rpartition(":")[2]))
        with socket.create_connection(address, timeout=LIMIT_S) as held:
            cluster.kill(1)
            assert has_ended(held)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=LIMIT_S)
        cluster.restart(1)
        cluster.wait_until(lambda: connects(address), within="60s")
