"""Nothing of a cluster stays: no object after its stop, no actor after its kill, no thread."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.cluster import RuntimeName
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import WaitTimeout
from tests.actors.many_clusters import one_cluster

RUNTIMES: tuple[RuntimeName, ...] = ("simulated", "threaded")


def alive(references: list[weakref.ref[Any]]) -> list[str]:
    gc.collect()
    return [type(value).__name__ for ref in references if (value := ref()) is not None]


@pytest.fixture(autouse=True)
def nothing_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster on threads sets aside what is old, and ``alive`` is to find it all the same.

    What the suite has set aside before, its modules and items, stays so: visiting it takes long.
    """
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "unfreeze", lambda: None)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_after_its_stop_nothing_of_a_cluster_is_alive(runtime: RuntimeName) -> None:
    references = [*one_cluster(1, runtime), *one_cluster(2, runtime)]
    assert alive(references) == []


def test_a_cluster_whose_wait_failed_is_not_kept_by_the_runtime() -> None:
    references: list[weakref.ref[Any]] = []

    def waits_in_vain() -> None:
        with MiniCluster(seed=1) as cluster:
            references.append(weakref.ref(inside(cluster).rt))
            cluster.wait_until(lambda: False, within="1s")

    with pytest.raises(WaitTimeout) as failed:
        waits_in_vain()
    del failed
    assert alive(references) == []


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_killed_process_is_not_kept_by_what_it_waited_for(runtime: RuntimeName) -> None:
    references: list[weakref.ref[Any]] = []
    with MiniCluster(seed=1, runtime=runtime) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        for _ in range(2):
            for node in (cluster.brokers[0], cluster.controllers[0]):
                names = inside(cluster).processes[node.id].actors
                references += [weakref.ref(inside(cluster).rt.actor(name)) for name in names]
                cluster.restart(node)
            cluster.wait_until(orders.fully_in_sync, within="60s")
        assert alive(references) == []


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_cluster_that_is_never_started_holds_nothing(runtime: RuntimeName) -> None:
    before, clock = set(threading.enumerate()), time.time
    reference = weakref.ref(MiniCluster(seed=1, runtime=runtime))
    assert alive([reference]) == []
    assert set(threading.enumerate()) == before
    assert time.time is clock


def test_a_simulated_cluster_that_is_never_stopped_takes_its_trip_wire_along() -> None:
    clock = time.time
    reference = weakref.ref(MiniCluster(seed=1).start())
    assert alive([reference]) == []
    assert time.time is clock


def test_threads_of_killed_processes_are_forgotten() -> None:
    with MiniCluster(seed=1, runtime="threaded", brokers=1, controllers=1) as cluster:
        before = threading.active_count()
        for _ in range(5):
            cluster.restart(1)
        cluster.wait_until(inside(cluster).all_unfenced, within="60s")
        assert threading.active_count() == before
        assert len(inside(cluster).rt._threads) <= before  # type: ignore[attr-defined]


def memory_growth_mb(runtime: str, count: int) -> float:
    """Memory after this many clusters less memory after five, in a process of its own."""
    command = [sys.executable, "-m", "tests.actors.many_clusters", runtime, str(count)]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_memory_does_not_grow_with_the_clusters_of_a_process() -> None:
    assert memory_growth_mb("simulated", 20) < 10


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_memory_after_200_clusters_is_that_after_five(runtime: RuntimeName) -> None:
    assert memory_growth_mb(runtime, 200) < 10
