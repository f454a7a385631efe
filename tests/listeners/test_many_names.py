"""Peers choose their names: any number of client ids and replica ids leaves a bounded rest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.links import PEER_LINKS_MAX, Condition, Links
from minicluster.actors.listeners.client_nodes import LEFT_CLIENTS_MAX, ClientNodes
from minicluster.protocol.messages import ListOffsetsRequest
from tests.listeners.raw_client import SOFTWARE, RawClient, frame

CONNECTIONS = 4


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(brokers=1, controllers=1, seed=3, listeners=True, online=False) as built:
        yield built


def flood(
    cluster: MiniCluster, count: int, version: int, named: Callable[[int], tuple[Any, str]]
) -> None:
    """Send requests under changing names over a few connections, and take every response."""
    with ExitStack() as stack:
        for first in range(CONNECTIONS):
            client = stack.enter_context(RawClient(cluster))
            requests = [named(number) for number in range(first, count, CONNECTIONS)]
            data = b"".join(
                frame(request, version, number, client_id)
                for number, (request, client_id) in enumerate(requests)
            )
            sender = threading.Thread(target=client.write, args=(data,))
            sender.start()
            for number, (request, _) in enumerate(requests):
                assert client.response(request, version)[0] == number
            sender.join()


def test_ten_thousand_client_ids_over_a_few_connections(cluster: MiniCluster) -> None:
    own_links = len(inside(cluster).network.links)
    named = cluster.client("named")
    with RawClient(cluster, 1, "live") as live:
        with RawClient(cluster, 1, "gone") as gone:
            gone.request(SOFTWARE, 3)
            live.request(SOFTWARE, 3)
            cluster.delay("clients", cluster.brokers, mean="1ms")
            before = inside(cluster).client_nodes.known
        request = ListOffsetsRequest(replica_id=-1)
        flood(cluster, 10_000, 5, lambda number: (request, f"app-{number}"))
        known = inside(cluster).client_nodes.known
        assert before.items() <= known.items()  # connected, named by a test, or disturbed
        assert cluster.client("named") == named
        assert len(known) <= LEFT_CLIENTS_MAX + len(before) + CONNECTIONS
        assert len(cluster.clients) <= len(known)
        assert len(inside(cluster).network.links) <= own_links + PEER_LINKS_MAX + len(before)
        for node_id, client_id in before.items():
            link = inside(cluster).network.links.get(node_id, 1)
            assert (link is not None and bool(link.conditions)) is (client_id != "named")
        live.request(SOFTWARE, 3)
        assert cluster.client("live").is_connected and not cluster.client("gone").is_connected


def test_as_many_replica_ids_as_a_peer_likes(cluster: MiniCluster) -> None:
    own_links = len(inside(cluster).network.links)
    request = lambda number: ListOffsetsRequest(replica_id=1_000 + number)  # noqa: E731
    flood(cluster, 6_000, 5, lambda number: (request(number), "raw"))
    assert len(inside(cluster).network.links) <= own_links + PEER_LINKS_MAX


def test_a_link_that_is_used_or_disturbed_is_kept() -> None:
    links = Links(seed=3)
    used, disturbed, own = links.of_peer(-2, 1), links.of_peer(-3, 1), links.between(1, 2)
    disturbed.conditions.append(Condition(kind="loss", src=-3, dst=1))
    for number in range(2 * PEER_LINKS_MAX):
        links.of_peer(-4 - number, 1)
        assert links.of_peer(-2, 1) is used
    assert links.get(-3, 1) is disturbed and links.get(1, 2) is own
    assert links.get(-4, 1) is None
    assert len(links) == PEER_LINKS_MAX + 1


def test_a_client_that_comes_back_soon_has_its_node_and_no_node_is_given_twice() -> None:
    nodes = ClientNodes()
    first = nodes.sender("app", None)
    nodes.disconnected(first)
    assert nodes.sender("app", None) == first
    nodes.disconnected(first)
    others = set()
    for number in range(LEFT_CLIENTS_MAX):
        others.add(nodes.sender(f"other {number}", None))
        nodes.disconnected(max(others, key=abs))
    again = nodes.sender("app", None)
    assert again not in {first, *others}
    assert not nodes.is_connected(first)


def test_a_connection_is_that_of_the_client_which_its_latest_request_names() -> None:
    nodes = ClientNodes()
    first = nodes.sender("first", None)
    second = nodes.sender("second", first)
    assert (nodes.is_connected(first), nodes.is_connected(second)) == (False, True)
    assert nodes.sender("second", second) == second
    nodes.disconnected(second)
    assert not nodes.is_connected(second)
    assert nodes.ids == (first, second)
