"""No handler that no request reaches: a node's router and the tables of its machines agree."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.links import Packet
from minicluster.actors.nodes.broker import BrokerRoles
from minicluster.actors.nodes.quorum_controller import QuorumController
from minicluster.actors.nodes.replica_manager import ReplicaManager
from minicluster.broker import kafka_apis
from minicluster.controller.controller_apis import CONTROLLER_APIS
from minicluster.coordinator.apis import COORDINATOR_APIS
from minicluster.protocol.messages import EnvelopeRequest
from minicluster.quorum.handlers import REQUEST_HANDLERS
from minicluster.replica.machine import HANDLERS as REPLICA_HANDLERS
from minicluster.server.controller_listener import RESPONDERS

HANDLED: dict[type, frozenset[Any]] = {
    ReplicaManager: frozenset({*REPLICA_HANDLERS, *COORDINATOR_APIS}),
    BrokerRoles: frozenset({*kafka_apis.HANDLERS, *kafka_apis.TOKEN_REQUESTS}),
    QuorumController: frozenset(
        {*CONTROLLER_APIS, *REQUEST_HANDLERS, *RESPONDERS, EnvelopeRequest}
    ),
}


class FromClient:
    """The part of an exchange that a router looks at."""

    src = -1


def reached(cluster: MiniCluster, node: int) -> dict[type, set[Any]]:
    """The requests that a node's router passes to an actor, by its kind, where that has a handler.

    A Fetch of the metadata log and one of a client are told apart by what they name.
    """
    route = inside(cluster).network.running[node].route
    found: dict[type, set[Any]] = {}
    for request in frozenset().union(*HANDLED.values()):
        target = route(Packet(FromClient(), request(), False))  # type: ignore[arg-type]
        kind = next(kind for kind in HANDLED if isinstance(target, kind))
        if request in HANDLED[kind]:
            found.setdefault(kind, set()).add(request)
    return found


@pytest.fixture(scope="module")
def by_kind() -> dict[type, set[Any]]:
    """What is reached on a broker and on a controller."""
    with MiniCluster(brokers=1, controllers=1, seed=1, online=False) as cluster:
        nodes = [node.id for node in (*cluster.brokers, *cluster.controllers)]
        found: dict[type, set[Any]] = {}
        for node in nodes:
            for kind, requests in reached(cluster, node).items():
                found.setdefault(kind, set()).update(requests)
        return found


@pytest.mark.parametrize("kind", HANDLED, ids=lambda kind: kind.__name__)
def test_every_handler_is_reached(by_kind: dict[type, set[Any]], kind: type) -> None:
    assert HANDLED[kind] - by_kind[kind] == set()


def test_a_broker_handles_what_it_advertises(by_kind: dict[type, set[Any]]) -> None:
    assert by_kind[ReplicaManager] | by_kind[BrokerRoles] >= kafka_apis.APIS
