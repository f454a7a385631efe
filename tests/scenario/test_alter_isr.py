"""A whole cluster whose leaders send AlterIsr, over the wire."""

from __future__ import annotations

import pytest

from minicluster.actors.cluster.mini_cluster import MiniCluster, inside


@pytest.mark.parametrize("text", ["alter_isr_of_kip_497", "alter_isr_of_kip_704"])
def test_isrs_shrink_and_grow_and_survive_a_change_of_controller(text: str) -> None:
    with MiniCluster(seed=497, wire=True, rules=f"kafka-4.3 isr_changes_by={text}") as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.produce(orders, rate=10)
        follower = orders[0].followers[0]
        cluster.cut(follower, orders[0].leader, api="Fetch")
        cluster.wait_until(lambda: follower not in orders[0].isr, within="50s")
        active = cluster.active_controller
        assert active is not None
        cluster.kill(active)
        cluster.wait_until(lambda: cluster.active_controller not in (None, active), within="30s")
        cluster.heal()
        cluster.wait_until(orders[0].fully_in_sync, within="60s")
        requested = {row["api"] for row in inside(cluster).recorder.table("rpc")}
        assert "AlterIsr" in requested and "AlterPartition" not in requested
