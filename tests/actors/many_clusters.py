"""Clusters one after another in one process: prints by how many MB the process grew.

Run as a program by ``test_nothing_stays.py``, with a runtime and a count.
"""

from __future__ import annotations

import gc
import resource
import sys
import weakref
from typing import Any

from minicluster import MiniCluster
from minicluster.actors.cluster.cluster import RuntimeName
from minicluster.actors.cluster.mini_cluster import inside

WARM = 5  # what the first few load stays for good


def one_cluster(seed: int, runtime: RuntimeName) -> list[weakref.ref[Any]]:
    """Start a cluster, replicate, restart a node, stop; references to what it was made of."""
    with MiniCluster(seed=seed, runtime=runtime) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.produce(orders, count=3)
        cluster.restart(cluster.controllers[0])
        running = inside(cluster)
        actors = [running.rt.actor(name) for name in running.rt.actors]
        parts = [cluster, running, running.rt, running.network, running.recorder, *actors]
        return [weakref.ref(part) for part in parts if type(part).__weakrefoffset__]


def resident_mb() -> float:
    """The process's greatest resident memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(runtime: RuntimeName, count: int) -> None:
    """Play the clusters, with one collection after each."""
    after_few = 0.0
    for seed in range(count):
        one_cluster(seed, runtime)
        gc.collect()
        if seed == WARM - 1:
            after_few = resident_mb()
    print(resident_mb() - after_few)


if __name__ == "__main__":
    main("threaded" if sys.argv[1] == "threaded" else "simulated", int(sys.argv[2]))
