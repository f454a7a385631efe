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


@pytest.mark.parametrize("together", [False, True])
def test_the_changes_of_one_fetch_leave_one_by_one_or_together(together: bool) -> None:
    """KIP-497: one request for all partitions that one Fetch brings in sync."""
    text = f"kafka-4.3 isr_changes_of_one_fetch_leave_together={str(together).lower()}"
    with MiniCluster(seed=497, rules=text) as cluster:
        topics = [cluster.create_topic(name, assignment=[[1, 2, 3]]) for name in "abc"]
        cluster.run_for("1s")
        cluster.kill(3)
        cluster.wait_until(lambda: cluster.node(3).is_fenced, within="30s")
        killed_ms = cluster.now_ms
        cluster.restart(3)
        cluster.wait_until(lambda: all(topic[0].fully_in_sync() for topic in topics), within="60s")
        requests = [
            row["request"]
            for row in inside(cluster).recorder.table("rpc")
            if row["api"] == "AlterPartition" and row["src"] == 1 and row["sent_ms"] >= killed_ms
        ]
    assert [len(request["topics"]) for request in requests] == ([3] if together else [1, 2])
