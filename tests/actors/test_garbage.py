"""While clients wait, no collection of garbage visits what a cluster has kept for long."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.cluster import RuntimeName
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.runtime import garbage


@pytest.fixture(autouse=True)
def collected_on_demand() -> Iterator[None]:
    """No collection comes between two lines of a test, from the threads of its cluster."""
    was_enabled = gc.isenabled()
    gc.disable()
    yield
    if was_enabled:
        gc.enable()


class Kept:
    """An object that the collector tracks."""


def visited(kept: list[Kept]) -> int:
    """The objects that a full collection would look at."""
    seen = {id(each) for each in gc.get_objects()}
    return sum(id(each) in seen for each in kept)


def circle() -> weakref.ref[Kept]:
    """Garbage that no reference count frees, once its maker has returned."""
    first: Any = Kept()
    first.itself = first
    return weakref.ref(first)


@pytest.mark.parametrize("runtime", ["threaded", "simulated"])
def test_old_objects_are_set_aside_while_clients_wait(runtime: RuntimeName) -> None:
    with MiniCluster(brokers=1, controllers=1, seed=1, runtime=runtime, listeners=True) as cluster:
        assert cluster.bootstrap_servers  # time passes by itself from here on
        kept = [Kept() for _ in range(1_000)]
        assert visited(kept) == 1_000
        gc.collect(1)
        assert visited(kept) == 0
        young = circle()
        gc.collect(1)
        assert young() is None
    assert visited(kept) == 1_000


def test_actors_that_ended_with_an_earlier_cluster_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "ENDED_MAX", 1)
    for _ in range(2):
        with MiniCluster(brokers=1, controllers=1, seed=1, runtime="threaded") as cluster:
            kept = [Kept()]
            gc.collect(1)
            assert visited(kept) == 0
            cluster.kill(cluster.brokers[0])


def test_a_simulated_cluster_that_was_never_stopped_is_found_by_the_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "_simulations", 0)  # a fixture of this worker may have one
    gc.enable()
    cluster = MiniCluster(brokers=1, controllers=1, seed=1).start()
    runtime = weakref.ref(inside(cluster).rt)
    assert not gc.isenabled()
    del cluster
    assert gc.isenabled()
    gc.collect()
    assert runtime() is None
    assert garbage._simulations == 0


def test_a_circle_that_becomes_garbage_when_it_is_old_is_freed_after_the_close() -> None:
    with MiniCluster(brokers=1, controllers=1, seed=1, runtime="threaded"):
        kept: Any = Kept()
        kept.itself = kept
        reference = weakref.ref(kept)
        gc.collect(1)
        del kept
        gc.collect()
        assert reference() is not None
    gc.collect()
    assert reference() is None


def test_after_many_nodes_have_ended_their_circles_are_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage, "ENDED_MAX", 3)
    with MiniCluster(brokers=1, controllers=1, seed=1, runtime="threaded") as cluster:
        actors = inside(cluster).processes[1].actors
        references = [weakref.ref(inside(cluster).rt.actor(name)) for name in actors]
        gc.collect(1)
        cluster.restart(cluster.brokers[0])
        gc.collect()
        assert [reference() for reference in references] == [None] * len(references)
        gc.collect(1)
        assert gc.get_freeze_count() > 0
