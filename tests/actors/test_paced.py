"""A simulated cluster at the pace of the wall clock: the same run, until clients may come."""

from __future__ import annotations

import threading
import time

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.runtime.runtime import ActorCrashed, ClusterActor
from minicluster.errors import UserError


def story(*, records: bool = True, **shape: object) -> tuple[str, int]:
    """A run with a topic, records, a dead leader: its trace hash and its end."""
    with MiniCluster(seed=5, **shape) as cluster:  # type: ignore[arg-type]
        orders = cluster.create_topic("orders", min_isr=2)
        if records:
            cluster.produce(orders, count=3)
        cluster.delay(cluster.brokers, cluster.controllers, mean="5ms", lasting="3s")
        cluster.bounce(orders[0].leader, down="2s")
        cluster.run_for("1500ms")
        if records:
            cluster.produce(orders, rate=20, lasting="2s")
        cluster.wait_until(orders.fully_in_sync, within="30s")
        cluster.run_for("2s")
        return cluster.trace_hash, cluster.now_ms


def test_a_paced_run_without_clients_is_the_same_run() -> None:
    assert story(pace=100) == story()


def test_listeners_to_which_no_client_comes_change_nothing() -> None:
    """But for the timestamps of records, which have the time of day for the sake of clients."""
    assert story(pace=100, listeners=True, records=False) == story(records=False)


@pytest.mark.parametrize("pace", [1, 20])
def test_time_passes_at_the_pace_of_the_wall_clock(pace: float) -> None:
    with MiniCluster(seed=1, brokers=1, controllers=1, pace=pace) as cluster:
        began_ms, began_s = cluster.now_ms, time.monotonic()
        cluster.run_for(f"{round(200 * pace)}ms")
        assert cluster.now_ms == began_ms + 200 * pace
        assert time.monotonic() - began_s >= 0.2


def test_a_cluster_that_clients_may_reach_runs_while_the_test_does_something_else() -> None:
    with MiniCluster(seed=1, listeners=True, pace=20) as cluster:
        orders = cluster.create_topic("orders")
        assert cluster.bootstrap_servers
        cluster.bounce(orders[0].leader, down="2s")
        restarted = threading.Event()
        deadline_s = time.monotonic() + 60
        starts = inside(cluster).starts
        while starts[1] + starts[2] + starts[3] < 4:
            assert not restarted.wait(0.01)
            assert time.monotonic() < deadline_s
        cluster.wait_until(orders.fully_in_sync, within="60s")
        cluster.produce(orders, count=5, acks="all")
        assert inside(cluster).high_watermark("orders", 0) == 5


def test_a_wait_may_look_at_a_client_meanwhile() -> None:
    with MiniCluster(seed=1, brokers=1, controllers=1, listeners=True, pace=20) as cluster:
        assert cluster.bootstrap_servers
        began_ms = cluster.now_ms

        def a_while_has_passed() -> bool:
            time.sleep(0.02)  # as a client's poll() does
            return cluster.now_ms - began_ms >= 1_000

        cluster.wait_until(a_while_has_passed, within="600s")
        assert not inside(cluster).run_until(lambda: False, 100)


def test_actions_of_several_threads_take_place_one_after_the_other() -> None:
    with MiniCluster(seed=1, listeners=True, pace=10) as cluster:
        assert cluster.bootstrap_servers
        names = [f"topic-{n}" for n in range(8)]
        threads = [threading.Thread(target=cluster.create_topic, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert all(cluster.topic(name).exists for name in names)


def test_a_crash_is_raised_by_the_next_wait() -> None:
    class Broken(ClusterActor):
        def on_receive(self, message: object) -> None:
            raise ValueError("broken")

    cluster = MiniCluster(seed=1, brokers=1, controllers=1, listeners=True, pace=1).start()
    assert cluster.bootstrap_servers
    with inside(cluster).rt.exclusive():
        inside(cluster).rt.spawn(Broken, "broken")
        inside(cluster).rt.actor("broken").deliver("a message")  # type: ignore[union-attr]
    with pytest.raises(ActorCrashed, match="broken"):
        cluster.run_for("10s")
    cluster.stop()


def test_no_thread_is_left_after_the_stop() -> None:
    before = set(threading.enumerate())
    with MiniCluster(seed=1, brokers=1, controllers=1, listeners=True, pace=1) as cluster:
        assert cluster.bootstrap_servers
        names = {thread.name for thread in set(threading.enumerate()) - before}
        assert names == {"minicluster-io", "minicluster-paced"}
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("pace", [0, -1, True, "fast", float("nan"), 10**9])
def test_a_pace_out_of_range_is_refused(pace: object) -> None:
    with pytest.raises(UserError, match="pace"):
        MiniCluster(pace=pace)  # type: ignore[arg-type]


def test_threads_have_no_pace() -> None:
    with pytest.raises(UserError, match="pace: threads run in real time"):
        MiniCluster(pace=1, runtime="threaded")
