"""The cost of a step does not grow with what the step is not about.

Each test compares two sizes in one run, in processor time.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside

pytestmark = pytest.mark.benchmark(timer=time.process_time)


def cluster_of(*, brokers: int, partitions: int) -> MiniCluster:
    """Three controllers, and one topic in full ISR."""
    cluster = MiniCluster(seed=1, brokers=brokers).start()
    orders = cluster.create_topic("orders", partitions=partitions, replicas=3, min_isr=2)
    cluster.wait_until(orders.fully_in_sync, within="120s")
    return cluster


def cost_of_a_step(cluster: MiniCluster, seconds: int) -> float:
    """Seconds of the processor for each step of an actor, the least of three rounds."""
    costs = []
    for _ in range(3):
        steps, begun = inside(cluster).rt.steps, time.process_time()  # type: ignore[attr-defined]
        cluster.run_for(f"{seconds}s")
        taken = time.process_time() - begun
        costs.append(taken / (inside(cluster).rt.steps - steps))  # type: ignore[attr-defined]
    return min(costs)


def growth(benchmark: Any, small: MiniCluster, large: MiniCluster, seconds: int) -> float:
    """The cost of a step in the large cluster as a multiple of that in the small one."""
    few, many = cost_of_a_step(small, seconds), 0.0

    def measure() -> None:
        nonlocal many
        many = cost_of_a_step(large, seconds)

    benchmark.pedantic(measure, rounds=1)
    small.stop()
    large.stop()
    benchmark.extra_info["microseconds"] = [round(1e6 * cost, 1) for cost in (few, many)]
    benchmark.extra_info["ratio"] = round(many / few, 2)
    return many / few


@pytest.mark.parametrize("brokers", [10, 30])
def test_a_step_among_many_brokers_costs_what_it_does_among_three(
    benchmark: Any, brokers: int
) -> None:
    small, large = (cluster_of(brokers=count, partitions=20) for count in (3, brokers))
    assert growth(benchmark, small, large, 4) < 2.5


@pytest.mark.parametrize("partitions", [1_000, 6_000])
def test_a_fetch_that_finds_nothing_costs_the_same_among_many_partitions(
    benchmark: Any, partitions: int
) -> None:
    small, large = (cluster_of(brokers=3, partitions=count) for count in (100, partitions))
    for cluster in (small, large):
        cluster.run_for("5s")
    assert growth(benchmark, small, large, 2) < 2


def test_a_step_under_heavy_load_costs_what_it_does_under_a_light_one(benchmark: Any) -> None:
    small, large = (cluster_of(brokers=3, partitions=20) for _ in range(2))
    small.produce("orders", rate=10)
    large.produce("orders", rate=300)
    assert growth(benchmark, small, large, 2) < 3


@pytest.mark.parametrize(("minutes", "more", "most"), [(0, 10, 1.3), (8, 4, 1.2)])
def test_a_later_step_costs_what_an_earlier_one_does(
    benchmark: Any, minutes: int, more: int, most: float
) -> None:
    """At first the record needs no hash and no disk, a fifth of a step, which comes later."""
    small, large = (cluster_of(brokers=3, partitions=1) for _ in range(2))
    for cluster in (small, large):
        cluster.produce("orders", rate=10)
        cluster.run_for(f"{60 * minutes}s")
    large.run_for(f"{60 * more}s")
    assert growth(benchmark, small, large, 10) < most
