"""A whole cluster: how long it takes to start, and how much time it simulates in a second.

Aims on a quiet machine: start 10 ms simulated and 50 ms threaded, 1,000 simulated seconds per
second idle, 200 at ten produces per second with all checks on. The bounds are far below, so that
only a change of kind fails on a loaded one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster


def started(seed: int, **shape: Any) -> MiniCluster:
    """Three and three, every broker unfenced, a topic with its full ISR."""
    cluster = MiniCluster(seed=seed, **shape).start()
    orders = cluster.create_topic("orders", min_isr=2)
    cluster.wait_until(orders.fully_in_sync, within="20s")
    return cluster


def measure_start(benchmark: Any, **shape: Any) -> float:
    clusters: list[MiniCluster] = []

    def stop() -> None:
        while clusters:
            clusters.pop().stop()

    benchmark.pedantic(
        lambda: clusters.append(started(1, **shape)), setup=stop, rounds=10, warmup_rounds=2
    )
    stop()
    milliseconds: float = 1000 * benchmark.stats.stats.min
    benchmark.extra_info["start_ms"] = round(milliseconds, 1)
    return milliseconds


def test_a_simulated_cluster_starts(benchmark: Any) -> None:
    assert measure_start(benchmark) < 100


def test_a_threaded_cluster_starts(benchmark: Any) -> None:
    assert measure_start(benchmark, runtime="threaded") < 1_000


def measure_rate(benchmark: Any, cluster: MiniCluster, seconds: int) -> float:
    benchmark.pedantic(lambda: cluster.run_for(f"{seconds}s"), rounds=5, warmup_rounds=1)
    rate: float = seconds / benchmark.stats.stats.min
    benchmark.extra_info["simulated_seconds_per_second"] = round(rate)
    cluster.stop()
    return rate


def test_an_idle_cluster_is_simulated_fast(benchmark: Any) -> None:
    assert measure_rate(benchmark, started(1), 60) > 100


def test_a_loaded_cluster_is_simulated_fast_with_all_checks_on(benchmark: Any) -> None:
    cluster = started(1)
    cluster.produce("orders", rate=10)
    assert measure_rate(benchmark, cluster, 30) > 20


def test_alter_partition_round_trips(benchmark: Any) -> None:
    """A follower is isolated and healed in turn; each time the ISR shrinks and grows."""
    cluster = MiniCluster(seed=1, config={"replica.lag.time.max.ms": "1s"}).start()
    orders = cluster.create_topic("orders", min_isr=1)
    cluster.produce(orders, rate=10)
    follower, leader = orders[0].followers[0], orders[0].leader

    def shrink_and_grow() -> None:
        cluster.cut(follower, leader, api="Fetch")
        cluster.wait_until(lambda: follower not in orders[0].isr, within="60s")
        cluster.heal()
        cluster.wait_until(orders[0].fully_in_sync, within="60s")

    before = orders[0].partition_epoch
    benchmark.pedantic(shrink_and_grow, rounds=5, warmup_rounds=1)
    changes = orders[0].partition_epoch - before
    benchmark.extra_info["changes_per_second"] = round(2 / benchmark.stats.stats.min)
    assert changes >= 12
    cluster.stop()


_GROWTH = """
import sys
from pathlib import Path
from tests.bench.test_cluster import started

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

cluster = started(1)
cluster.recorder.rows_in_memory, cluster.recorder.chunk_rows = int(sys.argv[1]), 4_000
cluster.recorder.fold_at = 10_000
cluster.produce("orders", rate=10)
cluster.run_for("240s")
before = resident()
cluster.run_for("360s")
print((resident() - before) * 10)
"""


def growth_per_hour(rows_in_memory: int) -> int:
    """Bytes by which a process grows in a simulated hour at ten produces per second."""
    command = [sys.executable, "-c", _GROWTH, str(rows_in_memory)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
def test_the_trace_of_a_long_run_does_not_stay_in_memory(benchmark: Any) -> None:
    whole = growth_per_hour(1_000_000_000)
    shelved = benchmark.pedantic(lambda: growth_per_hour(4_000), rounds=1)
    benchmark.extra_info["megabytes_per_simulated_hour"] = round(shelved / 1e6)
    benchmark.extra_info["without_the_shelf"] = round(whole / 1e6)
    assert shelved < whole / 2
