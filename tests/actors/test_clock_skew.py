"""Clocks of single nodes: they jump, drift and go right again (``clock_skew``)."""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.time_bounds import healed_ms
from minicluster.actors.nodes.clock import NodeClock
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.errors import UserError


@pytest.mark.parametrize("rate", [100, 333, 1_000, 1_700, 10_000])
def test_a_timer_never_fires_before_its_time(rate: int) -> None:
    rt = SimulatedRuntime()
    rt.run_for(777)
    clock = NodeClock(rt)
    clock.skew(250, rate)
    for at_ms in range(clock.now_ms, clock.now_ms + 300):
        rt.now_ms = clock.reached_ms(at_ms)
        assert clock.now_ms >= at_ms
        rt.now_ms -= 1
        assert rt.now_ms < 777 or clock.now_ms < at_ms
        rt.now_ms = 777


def test_a_clock_never_goes_back() -> None:
    rt = SimulatedRuntime()
    clock, before = NodeClock(rt), 0
    for ahead_ms, rate in ((0, 1_000), (50, 300), (0, 1_000), (7, 9_000), (0, 1_000)):
        clock.skew(ahead_ms, rate)
        assert clock.now_ms == before + ahead_ms
        rt.run_for(90)
        before = clock.now_ms
    assert before == 57 + 90 + 27 + 90 + 810 + 90


def test_a_broker_with_a_slow_clock_is_fenced_until_it_goes_right(
    mini_cluster: MiniCluster,
) -> None:
    orders = mini_cluster.create_topic("orders", min_isr=2)
    slow = orders[0].followers[0]
    mini_cluster.clock_skew(slow, drift=-0.9)  # a heartbeat every 20 seconds
    mini_cluster.wait_until(lambda: slow.is_fenced, within="20s")
    assert healed_ms(inside(mini_cluster)) is None
    mini_cluster.clock_skew(slow, drift=0)
    mini_cluster.wait_until(lambda: not slow.is_fenced, within="20s")
    mini_cluster.wait_until(orders[0].fully_in_sync, within="60s")
    assert healed_ms(inside(mini_cluster)) == inside(mini_cluster).disturbed_ms


def test_a_request_that_a_slow_clock_lost_expires_soon_after_the_clock_goes_right(
    mini_cluster: MiniCluster,
) -> None:
    """Its sender waits 30 seconds by its clock, not the 300 that these would have lasted."""
    orders = mini_cluster.create_topic("orders", min_isr=1)
    leader, slow = orders[0].leader, orders[0].followers[0]
    mini_cluster.clock_skew(slow, drift=-0.9)
    mini_cluster.cut(slow, leader, api="Fetch")
    mini_cluster.run_for("60s")
    assert not orders[0].fully_in_sync()
    mini_cluster.heal()
    mini_cluster.clock_skew(slow, drift=0)
    mini_cluster.wait_until(orders[0].fully_in_sync, within="40s")


def test_a_controller_with_a_fast_clock_fences_brokers_that_are_in_time(
    mini_cluster: MiniCluster,
) -> None:
    active = mini_cluster.active_controller
    mini_cluster.clock_skew(active, drift=9, lasting="10s")
    mini_cluster.wait_until(lambda: any(b.is_fenced for b in mini_cluster.brokers), within="10s")
    mini_cluster.wait_until(lambda: healed_ms(inside(mini_cluster)) is not None, within="20s")
    mini_cluster.wait_until(inside(mini_cluster).all_unfenced, within="30s")


def test_what_a_clock_is_ahead_stays_over_a_restart(mini_cluster: MiniCluster) -> None:
    mini_cluster.clock_skew(2, offset="1m")
    mini_cluster.restart(2)
    mini_cluster.wait_until(inside(mini_cluster).all_unfenced, within="30s")
    assert inside(mini_cluster).clocks[2].now_ms == mini_cluster.now_ms + 60_000
    assert inside(mini_cluster).clocks[1].now_ms == mini_cluster.now_ms


def test_a_drift_has_bounds(mini_cluster: MiniCluster) -> None:
    with pytest.raises(UserError, match=r"drift: -1 is not a number from -0\.9 to 9"):
        mini_cluster.clock_skew(1, drift=-1)
