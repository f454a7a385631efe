"""An unclean election in a whole cluster: what the leader does about it, by switch."""

from __future__ import annotations

import pytest

from minicluster.actors.cluster.mini_cluster import MiniCluster, inside

SHIPPED = "kafka-4.3"
TEXT = "kafka-4.3 unclean_leader_recovers=reported"


@pytest.mark.parametrize("rules", [SHIPPED, TEXT])
def test_alone_a_leader_stays_recovering_as_shipped_and_reports_in_kip_704s_text(
    rules: str,
) -> None:
    with MiniCluster(seed=704, rules=rules) as cluster:
        orders = cluster.create_topic("orders", assignment=[[1, 2]], min_isr=1)
        cluster.produce(orders, count=3)
        cluster.cut(2, 1, api="Fetch")
        cluster.produce(orders, count=3, acks=1)
        cluster.wait_until(lambda: orders[0].isr == (cluster.node(1),), within="60s")
        cluster.kill(1)
        cluster.wait_until(lambda: orders[0].leader is None, within="30s")
        cluster.elect(["orders-0"], "UNCLEAN")
        cluster.wait_until(lambda: orders[0].leader == cluster.node(2), within="5s")
        epoch = orders[0].partition_epoch
        cluster.run_for("20s")
        assert orders[0].isr == (cluster.node(2),)
        if rules == SHIPPED:
            assert orders[0].is_recovering and orders[0].partition_epoch == epoch
        else:
            assert not orders[0].is_recovering
        rows = inside(cluster).recorder.table("rpc")
        requested = [row for row in rows if row["api"] == "AlterPartition"]
        sizes = [
            len(part["newIsrWithEpochs"])
            for r in requested
            if r["src"] == 2
            for part in r["request"]["topics"][0]["partitions"]
        ]
        assert sizes == ([] if rules == SHIPPED else [1])
        # Either way the replica that comes back joins, and the recovery is over.
        cluster.heal()
        cluster.restart(1)
        cluster.wait_until(orders[0].fully_in_sync, within="60s")
        assert not orders[0].is_recovering
