"""The work whose instructions are counted; callgrind runs this file with a checkout in its path.

It uses only what every release of ``MiniCluster`` has, so that an earlier commit can be measured.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

from minicluster import MiniCluster

switch = ctypes.CDLL(sys.argv[1])


def counted(name: str, units: int, work: Callable[[], None]) -> None:
    """Count the instructions of some work, which is so many units."""
    switch.begin()
    work()
    switch.end(f"{name}:{units}".encode())


def start(seed: int) -> None:
    """Three controllers, three brokers, a topic in full ISR; the stop gives its verdict."""
    with MiniCluster(brokers=3, controllers=3, seed=seed) as cluster:
        orders = cluster.create_topic("orders", partitions=1, replicas=3)
        cluster.wait_until(orders.fully_in_sync, within="60s")


def starts() -> None:
    """Five, after one that loads what is loaded once; the election is another with each seed."""
    start(0)

    def work() -> None:
        for seed in range(1, 6):
            start(seed)

    counted("start", 5, work)


def idle() -> None:
    """Three controllers, five brokers, 20 partitions; nobody judges."""
    with MiniCluster(brokers=5, controllers=3, seed=5, online=False) as cluster:
        orders = cluster.create_topic("orders", partitions=20, replicas=3)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        cluster.run_for("10s")
        counted("idle", 20, lambda: cluster.run_for("20s"))


def loaded(minute: int = 0) -> None:
    """Ten produces a second to six partitions of 3+3, judged live; at first, or until a minute."""
    with MiniCluster(brokers=3, controllers=3, seed=5) as cluster:
        orders = cluster.create_topic("orders", partitions=6, replicas=3)
        cluster.wait_until(orders.fully_in_sync, within="60s")

        def run(seconds: int) -> None:
            for _ in range(10 * seconds):
                cluster.produce(orders, count=1)
                cluster.run_for("100ms")

        if minute:
            run(60 * minute - 20)
            counted(f"minute {minute}", 20, lambda: run(20))
        else:
            run(5)
            counted("loaded", 10, lambda: run(10))


WORKS = {"start": starts, "idle": idle, "loaded": loaded}

if __name__ == "__main__":
    for name in sys.argv[2:]:
        kind, _, minute = name.partition(" ")
        if kind == "minute":
            loaded(int(minute))
        else:
            WORKS[kind]()
