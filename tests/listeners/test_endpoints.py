"""The ports of a cluster: which they are, and what is refused before anything starts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.listeners.address import ListenAddress
from minicluster.actors.listeners.endpoints import (
    AddressUnavailable,
    Advertised,
    Endpoints,
    is_loopback,
)
from minicluster.errors import UserError
from minicluster.protocol.messages import FetchResponse, MetadataResponse, ProduceResponse


def first_free(count: int) -> tuple[int, Endpoints]:
    """Endpoints at a port after which others are free as well, and the port."""
    for first in range(21_000, 60_000, 50):
        try:
            return first, Endpoints(range(1, count + 1), ListenAddress(port=first))
        except AddressUnavailable:
            continue
    raise AssertionError("no ports are free")


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    """A socket that listens at a port, with a free one before it."""
    while True:
        with socket.socket() as listening, socket.socket() as before:
            listening.bind(("127.0.0.1", 0))
            try:
                before.bind(("127.0.0.1", listening.getsockname()[1] - 1))
            except OSError:  # in use, or a connection of another test has just ended there
                continue
            before.close()
            listening.listen()
            yield listening
            return


def test_brokers_listen_on_consecutive_ports() -> None:
    first, endpoints = first_free(3)
    expected = ",".join(f"127.0.0.1:{first + n}" for n in range(3))
    assert endpoints.bootstrap_servers() == expected
    endpoints.close()


def test_a_port_in_use_is_one_line_and_nothing_is_left(taken: socket.socket) -> None:
    port = taken.getsockname()[1]
    before = set(threading.enumerate())
    cluster = MiniCluster(listeners=ListenAddress(port=port), brokers=1, controllers=1)
    with pytest.raises(AddressUnavailable) as refused:
        cluster.start()
    inside(cluster).rt.close()
    assert str(refused.value).startswith(f"127.0.0.1:{port}: is in use by another program; ")
    assert "\n" not in str(refused.value)
    assert set(threading.enumerate()) <= before


def test_a_port_in_use_frees_the_ports_before_it(taken: socket.socket) -> None:
    port = taken.getsockname()[1]
    with pytest.raises(AddressUnavailable):
        Endpoints((1, 2), ListenAddress(port=port - 1))
    with socket.socket() as free:
        free.bind(("127.0.0.1", port - 1))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"port": 65_536}, "port: 65536 is not from 0 to 65535"),
        ({"port": -1}, "port: -1 is not from"),
        ({"host": "0.0.0.0"}, "0.0.0.0 is every address of this machine; name the one that"),
        ({"host": "::"}, ":: is every address"),
        ({"host": ""}, "is every address"),
    ],
)
def test_an_address_that_no_client_reaches_is_refused(
    given: dict[str, object], expected: str
) -> None:
    with pytest.raises(UserError, match=expected):
        ListenAddress(**given)  # type: ignore[arg-type]


def test_ports_end_somewhere() -> None:
    with pytest.raises(UserError, match="port: 65535 leaves no port for broker 2"):
        Endpoints((1, 2), ListenAddress(port=65_535))


@pytest.mark.parametrize("host", ["no..such-host", "203.0.113.7"])
def test_a_host_that_is_not_here_is_one_line(host: str) -> None:
    with pytest.raises(AddressUnavailable, match=host):
        Endpoints((1,), ListenAddress(host=host))


def test_the_metadata_has_the_advertised_host() -> None:
    at = ListenAddress(host="0.0.0.0", advertised="kafka.test")
    endpoints = Endpoints((1,), at)
    port = endpoints.nodes[1][1]
    endpoints.close()
    assert endpoints.advertised == {"PLAINTEXT": {1: ("kafka.test", port)}}
    advertised = Advertised({("node1", 9_091): 1}, endpoints.advertised)
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="node1", port=9_091)
    [moved] = advertised.advertise(MetadataResponse(brokers=(broker,)), "PLAINTEXT").brokers
    assert (moved.host, moved.port) == ("kafka.test", port)
    for kind in (ProduceResponse, FetchResponse):
        node = kind.NodeEndpoint(node_id=1, host="node1", port=9_091)
        response = advertised.advertise(kind(node_endpoints=(node,)), "PLAINTEXT")
        [at_leader] = response.node_endpoints
        assert (at_leader.host, at_leader.port) == ("kafka.test", port)
    assert endpoints.bootstrap_servers() == f"kafka.test:{port}"
    assert not is_loopback(at) and is_loopback(ListenAddress(host="localhost"))


@pytest.mark.parametrize(("host", "warns"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_a_cluster_that_other_machines_reach_warns_in_one_line(
    host: str, warns: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ListenAddress(host=host, advertised="127.0.0.1")
    with MiniCluster(listeners=at, brokers=1, controllers=1) as cluster:
        entries = inside(cluster).log.entries
        logged = [entry["reason"] for entry in entries if entry["event"] == "listeners.open"]
    line = f"listening on {host}: every machine that reaches it reads and writes"
    assert logged == [line] * warns
    assert capsys.readouterr().err.splitlines() == logged


def test_an_address_of_the_next_protocol_is_written_in_brackets() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        endpoints = Endpoints((1,), ListenAddress(host="::1"))
    except AddressUnavailable:
        pytest.skip("the loopback of this machine has no IPv6")
    assert endpoints.bootstrap_servers() == f"[::1]:{endpoints.nodes[1][1]}"
    endpoints.close()
