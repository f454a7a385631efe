"""The quorum: elections won per second of machine time, and the cost of an idle one.

Kafka's own Raft simulation wins about eight elections per second on one core of this kind of
machine; ten times that is the aim. The bounds are far below what was measured, so that only a
change of kind fails. Processor time is compared, since others may use the machine.
"""

from __future__ import annotations

import time
from typing import Any

from minicluster import MiniCluster
from tests.quorum.chaos import Chaos
from tests.quorum.network import Network

SEEDS = 10


class Deposing(Chaos):
    """Five voters whose leader is killed, isolated or made to resign every second or two."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, observers=0, write_ms=(200, 600), step_ms=(800, 2_500))
        self.actions = [
            (self.kill_leader, 4),
            (self.isolate_leader, 4),
            (self.resign, 4),
            (self.restart, 6),
            (self.heal, 6),
        ]


def test_elections_won_per_second_with_all_checks_on(benchmark: Any) -> None:
    def play() -> int:
        return sum(Deposing(seed).run(30_000).elections for seed in range(SEEDS))

    started = time.process_time()
    won = benchmark.pedantic(play, rounds=1, iterations=1)
    rate = won / (time.process_time() - started)
    benchmark.extra_info["elections_per_second"] = round(rate, 1)
    assert rate > 30


def test_an_idle_quorum_of_three_with_three_observers_is_simulated_fast(benchmark: Any) -> None:
    network = Network([1, 2, 3], [11, 12, 13], seed=2)
    network.wait_for_leader()
    network.advance(5_000)
    started = time.process_time()
    benchmark.pedantic(lambda: network.advance(200_000), rounds=1, iterations=1)
    rate = 200 / (time.process_time() - started)
    benchmark.extra_info["simulated_seconds_per_second"] = round(rate)
    assert rate > 200


def test_three_voters_are_simulated_at_no_less_than_half_the_speed_of_one(benchmark: Any) -> None:
    """The same brokers and topic under either, turn by turn."""
    clusters = []
    for controllers in (1, 3):
        cluster = MiniCluster(controllers=controllers, brokers=3, seed=7).start()
        orders = cluster.create_topic("orders", partitions=6)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        clusters.append(cluster)
    best = [float("inf"), float("inf")]

    def turn() -> None:
        for index, cluster in enumerate(clusters):
            started = time.process_time()
            cluster.run_for("30s")
            best[index] = min(best[index], time.process_time() - started)

    benchmark.pedantic(turn, rounds=6, iterations=1, warmup_rounds=1)
    one, three = (30 / seconds for seconds in best)
    benchmark.extra_info |= {
        "one_voter_seconds_per_second": round(one),
        "three_voters_seconds_per_second": round(three),
        "ratio": round(three / one, 2),
    }
    for cluster in clusters:
        cluster.stop()
    assert three > one / 2
