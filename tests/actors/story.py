"""A run with everything in it, for tests that compare runs: prints its trace hash.

Run as a program by ``test_determinism.py``: ``python -m tests.actors.story SEED``.
"""

from __future__ import annotations

import sys

from minicluster.actors.cluster.mini_cluster import MiniCluster


def play(seed: int, *, wire: bool = False) -> str:
    """Load, lost links, losses, delays, a crash, a restart, a shutdown, a new controller."""
    config = {"replica.lag.time.max.ms": 10_000}
    with MiniCluster(seed=seed, wire=wire, config=config) as cluster:
        orders = cluster.create_topic("orders", partitions=2, min_isr=2)
        cluster.produce(orders, rate=10)
        cluster.run_for("2s")
        first = orders[0].followers[0]
        cluster.cut(first, cluster.brokers, api="Fetch", lasting="14s")
        cluster.loss(cluster.brokers, cluster.controllers, 0.1)
        cluster.delay(cluster.brokers, cluster.brokers, "5ms", lasting="12s")
        cluster.duplicate(cluster.controllers, cluster.controllers, 0.2)
        cluster.run_for("17s")
        cluster.heal()
        leader = orders[1].leader
        if leader is not None:
            cluster.kill(leader, lose_tail="unflushed")
            cluster.run_for("12s")
            cluster.restart(leader)
        active = cluster.active_controller
        if active is not None:
            cluster.kill(active)
            cluster.run_for("8s")
            cluster.restart(active)
        cluster.controlled_shutdown(first)
        cluster.run_for("10s")
        return cluster.trace_hash


if __name__ == "__main__":
    print(play(int(sys.argv[1])))
