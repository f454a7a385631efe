"""``kafka-reassign-partitions --throttle``: a move takes as long as its rate says (KIP-73)."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.protocol import messages as m
from tests.verify.in_process import verified

BYTES_PER_SECOND = 4_000
SIDES = ("leader", "follower")


@pytest.mark.parametrize("mode", ["kraft", "zookeeper"])
def test_a_throttled_reassignment_ends_by_its_rate_and_another_at_once(mode: str) -> None:
    # By default one fetch has a megabyte, and a rate below that holds back what comes after it.
    config = {"replica.fetch.max.bytes": 1_000}
    with MiniCluster(mode=mode, brokers=3, seed=7, config=config) as cluster:
        orders = cluster.create_topic("orders", assignment=[[1, 2]])
        cluster.produce(orders[0], count=400)
        dirs = cluster.admin(m.DescribeLogDirsRequest(topics=None), to=1)
        [stored] = [p.partition_size for t in dirs.results[0].topics for p in t.partitions]
        for side in SIDES:
            for broker in cluster.brokers:
                cluster.set_config(
                    f"{side}.replication.throttled.rate", BYTES_PER_SECOND, broker=broker.id
                )
        cluster.set_config("leader.replication.throttled.replicas", "0:1,0:2", topic="orders")
        cluster.set_config("follower.replication.throttled.replicas", "0:3", topic="orders")
        began_ms = cluster.now_ms
        cluster.reassign(orders[0], [1, 3])
        cluster.wait_until(lambda: not orders[0].is_reassigning, within="2m")
        took_s = (cluster.now_ms - began_ms) / 1_000
        assert 0.6 <= took_s * BYTES_PER_SECOND / stored <= 1.5

        for side in SIDES:
            cluster.set_config(f"{side}.replication.throttled.replicas", None, topic="orders")
        cluster.reassign(orders[0], [1, 2])
        cluster.wait_until(lambda: not orders[0].is_reassigning, within="5s")


def test_a_run_is_valid_whose_throttle_keeps_a_replica_out_of_the_isr(tmp_path: Path) -> None:
    with MiniCluster(brokers=3, seed=7) as cluster:
        orders = cluster.create_topic("orders", assignment=[[1, 2, 3]])
        cluster.set_config("leader.replication.throttled.rate", 1)
        cluster.set_config("leader.replication.throttled.replicas", "*", topic="orders")
        cluster.kill(3)
        cluster.produce(orders[0], count=50)
        cluster.run_for("40s")
        cluster.restart(3)
        cluster.run_for("2m")
        assert [broker.id for broker in orders[0].isr] == [1, 2]
    assert not verified(cluster.save(tmp_path / "run")).findings
