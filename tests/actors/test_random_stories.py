"""Random disturbances, drawn from a seed; then all is mended, and the cluster must come back whole.

The log rules watch every commit (``InvariantViolated``), an actor that raises ends the run
(``ActorCrashed``), and a cluster that does not converge is a timeout.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import UserError

DISTURBANCES = 12


def disturbances(cluster: MiniCluster, chance: random.Random) -> list[Callable[[], Any]]:
    """One of each kind, on nodes that are drawn now."""
    nodes = [*cluster.brokers, *cluster.controllers]
    one, other = chance.choice(nodes), chance.choice(nodes)
    broker = chance.choice(cluster.brokers)
    api = chance.choice(["Fetch", "BrokerHeartbeat", "AlterPartition", "Vote"])
    few = chance.sample(nodes, chance.randint(1, len(nodes) - 1))
    rest = [node for node in nodes if node not in few]
    down = [node for node in nodes if not node.is_running]
    return [
        lambda: cluster.cut(one, nodes, api=api, lasting="40s"),
        lambda: cluster.cut(one, nodes, lasting="15s"),
        lambda: cluster.partition(few, rest, lasting="10s"),
        lambda: cluster.isolate(one, lasting="12s"),
        lambda: cluster.loss(one, nodes, 0.2),
        lambda: cluster.delay(one, nodes, chance.choice(["5ms", "500ms", "3s"]), lasting="30s"),
        lambda: cluster.duplicate(one, nodes, 0.3),
        lambda: cluster.reorder(one, nodes, 0.3),
        lambda: cluster.hold(one, other),
        lambda: cluster.pause(one, lasting="10s"),
        lambda: cluster.kill(one),
        lambda: cluster.kill(broker, lose_tail="unflushed"),
        lambda: [cluster.restart(node) for node in down],
        lambda: cluster.controlled_shutdown(broker),
        lambda: cluster.publish_delay(broker, "5s", lasting="30s"),
        lambda: cluster.elect("orders-0", within="3s"),
        lambda: cluster.set_config(
            "min.insync.replicas", chance.randint(1, 3), topic="orders", within="3s"
        ),
        cluster.heal,
    ]


def mend(cluster: MiniCluster) -> None:
    """Undo everything, start everyone, and wait until all is well again."""
    cluster.heal()
    cluster.publish_delay(cluster.brokers, "0s")
    cluster.run_for("30s")  # who is shutting down may end that first
    for node in (*cluster.brokers, *cluster.controllers):
        if not node.is_running:
            cluster.restart(node)
        cluster.resume(node)
    cluster.wait_until(inside(cluster).all_unfenced, within="120s")
    orders = cluster.topic("orders")
    cluster.wait_until(orders.fully_in_sync, within="180s")


def play(seed: int, shape: dict[str, Any]) -> None:
    chance = random.Random(f"story/{seed}")
    with MiniCluster(seed=seed, **shape) as cluster:
        orders = cluster.create_topic("orders", partitions=2, min_isr=2)
        cluster.produce(orders, rate=5)
        for _ in range(DISTURBANCES):
            disturb = chance.choice(disturbances(cluster, chance))
            with contextlib.suppress(UserError):  # perhaps no node is there to respond
                disturb()
            cluster.run_for(f"{chance.randint(1, 15)}s")
        mend(cluster)
        assert cluster.produce(orders)[0].ok


SHAPES: list[dict[str, Any]] = [
    {},
    {"wire": True},
    {"metadata_version": "3.3-IV3"},
    {"metadata_version": "4.0-IV3"},
    {"rules": "kafka-3.9", "metadata_version": "3.7-IV4"},
    {"brokers": 5, "controllers": 5},
]


@pytest.mark.parametrize(
    ("seed", "shape"),
    list(enumerate(SHAPES)),
    ids=[" ".join(str(value) for value in shape.values()) or "default" for shape in SHAPES],
)
def test_a_cluster_comes_back_from_whatever_happened_to_it(
    seed: int, shape: dict[str, Any]
) -> None:
    play(seed, shape)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_clusters_come_back(seed: int) -> None:
    play(seed, SHAPES[seed % len(SHAPES)])
