"""The compiled wheel beside the pure package in one run, in processor time (docs/compiled.md)."""

from __future__ import annotations

from statistics import median
from typing import Any

from tests.compiled.builds import COMPILED, PURE, needs_compiled, output, start

ROUNDS = 5
_IDLE_AND_LOADED = """
import time
from minicluster import MiniCluster
with MiniCluster(seed=1) as cluster:
    orders = cluster.create_topic("orders", min_isr=2)
    cluster.wait_until(orders.fully_in_sync, within="20s")
    begun = time.process_time()
    cluster.run_for("60s")
    cluster.produce("orders", rate=10, lasting="31s")
    cluster.run_for("30s")
    print(time.process_time() - begun)
"""


@needs_compiled
def test_a_compiled_cluster_beside_a_pure_one(benchmark: Any) -> None:
    """A minute at rest and half a minute at 10 produces per second, by each in turn."""
    times: dict[str, list[float]] = {PURE: [], COMPILED: []}

    def play() -> None:
        for python, found in times.items():
            found.append(float(output(start(python, "-c", _IDLE_AND_LOADED))))

    benchmark.pedantic(play, rounds=ROUNDS)
    ratio = median(times[PURE]) / median(times[COMPILED])
    benchmark.extra_info["times_as_quick"] = round(ratio, 2)
    assert ratio > 1.2
