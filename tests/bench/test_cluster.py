"""A whole cluster: how long it takes to start, and how much time it simulates in a second.

All in processor time, beside fixed work in the same run. Aims on a quiet machine: start 8 ms, 1,000
simulated seconds per second idle (600 for three and five with 20 partitions), 500 at ten produces
per second with all checks on. The bounds are far below, so that only a change of kind fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.play.campaign import Outcome
from minicluster.actors.play.many_seeds import campaign
from tests.bench.fixed_work import beside_fixed_work

pytestmark = pytest.mark.benchmark(timer=time.process_time)


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

    def start() -> None:
        clusters.append(started(1, **shape))

    ratio = beside_fixed_work(benchmark, start, rounds=10, setup=stop)
    stop()
    benchmark.extra_info["start_ms"] = round(1000 * benchmark.stats.stats.min, 1)
    return ratio


def test_a_simulated_cluster_starts(benchmark: Any) -> None:
    assert measure_start(benchmark) < 4


def test_a_threaded_cluster_starts(benchmark: Any) -> None:
    assert measure_start(benchmark, runtime="threaded") < 20


_FIRST_START = """
import time
from tests.bench.fixed_work import fixed_work
from minicluster import MiniCluster
with MiniCluster(seed=1) as cluster:
    cluster.wait_until(cluster.create_topic("orders", min_isr=2).fully_in_sync, within="20s")
    print(time.process_time(), fixed_work())
"""


def test_the_import_and_the_first_start_of_a_process(benchmark: Any, tmp_path: Path) -> None:
    """Python itself, which takes a tenth of it, is counted; the bytecode is there."""
    settings = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    environment, root = {**os.environ, **settings}, Path(__file__).parents[2]
    found: list[tuple[float, float]] = []

    def first_start() -> None:
        command = [sys.executable, "-c", _FIRST_START]
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=True
        )
        taken, fixed = map(float, done.stdout.split())
        found.append((taken, fixed))

    benchmark.pedantic(first_start, rounds=5, warmup_rounds=1)
    benchmark.extra_info["processor_ms"] = round(1000 * min(taken for taken, _ in found[1:]))
    ratio = median(taken / fixed for taken, fixed in found[1:])
    benchmark.extra_info["of_fixed_work"] = round(ratio, 2)
    assert ratio < 60


def measure_rate(benchmark: Any, cluster: MiniCluster, seconds: int) -> float:
    """Simulated seconds in the processor time of one round of fixed work."""
    ratio = beside_fixed_work(
        benchmark, lambda: cluster.run_for(f"{seconds}s"), rounds=7, setup=lambda: None
    )
    rate = seconds / benchmark.stats.stats.min
    benchmark.extra_info["simulated_seconds_per_second"] = round(rate)
    cluster.stop()
    return seconds / ratio


def test_an_idle_cluster_is_simulated_fast(benchmark: Any) -> None:
    assert measure_rate(benchmark, started(1), 30) > 3


def test_an_idle_cluster_of_20_partitions_is_simulated_fast(benchmark: Any) -> None:
    cluster = MiniCluster(seed=1, brokers=5).start()
    orders = cluster.create_topic("orders", partitions=20, replicas=3, min_isr=2)
    cluster.wait_until(orders.fully_in_sync, within="20s")
    assert measure_rate(benchmark, cluster, 15) > 1


def test_a_loaded_cluster_is_simulated_fast_with_all_checks_on(benchmark: Any) -> None:
    cluster = started(1)
    cluster.produce("orders", rate=10)
    assert measure_rate(benchmark, cluster, 15) > 0.7


def test_a_random_campaign_is_played_fast(benchmark: Any) -> None:
    played: list[Outcome] = []

    def play() -> None:
        played.extend(campaign(range(1, 3)))

    beside_fixed_work(benchmark, play, rounds=1, setup=played.clear)
    minutes = sum(outcome.cluster_ms for outcome in played) / 60_000
    rate = minutes / (benchmark.stats.stats.min / 60)
    benchmark.extra_info["cluster_minutes_per_processor_minute"] = round(rate, 1)
    assert rate > 2


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
import gc
import sys
import tracemalloc

tracemalloc.start(1)
from tests.bench.test_cluster import started

def held():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]

cluster = started(1)
from minicluster.actors.cluster.mini_cluster import inside
tables = inside(cluster).recorder.tables
tables.rows_in_memory = tables.piece_rows = int(sys.argv[1])
cluster.produce("orders", rate=10)
cluster.run_for("60s")
before = held()
cluster.run_for("240s")
print((held() - before) * 15)
"""


def growth_per_hour(rows_in_memory: int) -> int:
    """Bytes of Python's objects that stay of a simulated hour at ten produces per second.

    The chunks of rows that are in memory at one time or the other count 15 times: 3 MB.
    """
    command = [sys.executable, "-c", _GROWTH, str(rows_in_memory)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.slow
def test_a_simulated_hour_stays_in_60_megabytes(benchmark: Any) -> None:
    stays = benchmark.pedantic(lambda: growth_per_hour(200), rounds=1)
    benchmark.extra_info["megabytes_per_simulated_hour"] = round(stays / 1e6)
    assert stays < 60_000_000


@pytest.mark.slow
def test_the_trace_of_a_long_run_does_not_stay_in_memory(benchmark: Any) -> None:
    whole = benchmark.pedantic(lambda: growth_per_hour(1_000_000_000), rounds=1)
    benchmark.extra_info["megabytes_with_all_rows_in_memory"] = round(whole / 1e6)
    assert whole > 4 * 60_000_000
