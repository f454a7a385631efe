"""The same actors on threads and real time: slower to test, needed where real clients connect."""

from __future__ import annotations

import threading
import time

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording.metadata_sink import MetadataSink

QUICK = {"broker.heartbeat.interval.ms": "200ms", "broker.session.timeout.ms": "1500ms"}


def test_a_threaded_cluster_starts_replicates_fails_over_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with MiniCluster(seed=1, runtime="threaded", config=QUICK) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        assert [outcome.offset for outcome in cluster.produce(orders, count=5)] == [0, 1, 2, 3, 4]

        leader = orders[0].leader
        assert leader is not None
        cluster.kill(leader, lose_tail="unflushed")
        cluster.wait_until(lambda: orders[0].leader not in (None, leader), within="60s")
        cluster.restart(leader)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        [after] = cluster.produce(orders)
        assert after.offset == 5
    assert set(threading.enumerate()) <= before


def test_a_threaded_broker_can_be_paused_and_cut_and_shut_down() -> None:
    with MiniCluster(seed=2, runtime="threaded", config=QUICK) as cluster:
        first, second, third = cluster.brokers
        cluster.pause(first)
        cluster.cut(second, cluster.controllers)
        cluster.wait_until(lambda: first.is_fenced and second.is_fenced, within="60s")
        cluster.resume(first)
        cluster.heal()
        cluster.wait_until(lambda: not first.is_fenced and not second.is_fenced, within="60s")
        cluster.controlled_shutdown(third)
        cluster.wait_until(lambda: not third.is_running, within="60s")
        assert third.in_controlled_shutdown or third.is_fenced


def test_what_ended_a_wait_is_in_the_image_though_the_sink_is_slow() -> None:
    with MiniCluster(seed=4, runtime="threaded", brokers=1, controllers=1) as cluster:
        sink = inside(cluster).rt.actor("metadata-sink")
        assert isinstance(sink, MetadataSink)
        inside(cluster).rt.pause((sink.name,))
        inside(cluster).rt.schedule(
            cluster.now_ms + 400, lambda name: inside(cluster).rt.resume((name,)), sink.name
        )
        [broker] = cluster.brokers
        cluster.controlled_shutdown(broker)
        cluster.wait_until(lambda: not broker.is_running, within="60s")
        assert broker.is_fenced


def test_a_broker_restarts_only_after_all_actors_of_its_last_process_have_ended() -> None:
    """A process that ends by itself does so on another thread than the test's."""
    with MiniCluster(seed=6, runtime="threaded", brokers=1, controllers=1) as cluster:
        runtime = inside(cluster).rt
        kill, restarted = runtime.kill, threading.Event()

        def restart() -> None:
            cluster.restart(1)
            restarted.set()

        other = threading.Thread(target=restart, daemon=True)

        def kill_while_it_restarts(name: str) -> None:
            if other.ident is None:
                other.start()
                other.join(0.5)  # it waits for this thread, or fails at once
            kill(name)

        runtime.kill = kill_while_it_restarts  # type: ignore[method-assign]
        cluster.controlled_shutdown(1)
        cluster.wait_until(restarted.is_set, within="10s")
        cluster.wait_until(lambda: not cluster.brokers[0].is_fenced, within="60s")


def test_another_threaded_controller_takes_over() -> None:
    with MiniCluster(seed=3, runtime="threaded") as cluster:
        active = cluster.active_controller
        cluster.kill(active)
        cluster.wait_until(lambda: cluster.active_controller not in (None, active), within="60s")
        assert cluster.create_topic("orders").exists


def test_a_stall_of_the_machine_ends_no_session() -> None:
    """The machine did not run the process for a minute: no broker was slow, and no controller."""
    with MiniCluster(seed=5, runtime="threaded") as cluster:
        active, began_ms = cluster.active_controller, cluster.now_ms
        inside(cluster).rt.clock.monotonic_s = lambda: time.monotonic() + 60  # type: ignore[attr-defined]
        assert cluster.now_ms < began_ms + 60_000
        changed = lambda: cluster.active_controller != active or not inside(cluster).all_unfenced()  # noqa: E731
        assert not inside(cluster).run_until(changed, 500)
