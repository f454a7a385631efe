"""The cluster of the zoo: a topic, two members that run a program, and a source of orders."""

from __future__ import annotations

from functools import partial

from minicluster import MiniCluster
from tests.programs.zoo.shop import PARTITIONS, Run, Shop, source, supervised

MEMBERS = ("one", "two")


def orders_and_members(cluster: MiniCluster, run: Run, replicas: int = 3) -> Shop:
    """Start all of it; orders come when both members have joined."""
    shop = Shop()
    min_isr = min(replicas, 2)
    cluster.create_topic("orders", partitions=PARTITIONS, replicas=replicas, min_isr=min_isr)
    for name in MEMBERS:
        cluster.app(name, partial(supervised, run, shop))
    cluster.run_for("8s")
    cluster.app("source", partial(source, shop))
    return shop
