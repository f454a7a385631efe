"""Each setting of a cluster takes effect in the machine that has it."""

from __future__ import annotations

import ast
from dataclasses import fields

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.nodes.config import ClusterConfig
from tests.house.sources import nodes_of, sources


def test_every_setting_is_read_by_somebody() -> None:
    read = {
        node.attr
        for path in sources("actors")
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    assert [field.name for field in fields(ClusterConfig) if field.name not in read] == []


@pytest.mark.parametrize(("interval", "known"), [("5s", 0), ("1s", 3)])
def test_high_watermarks_are_written_as_often_as_configured(interval: str, known: int) -> None:
    config = {"replica.high.watermark.checkpoint.interval.ms": interval}
    with MiniCluster(seed=1, controllers=1, config=config) as cluster:
        orders = cluster.create_topic("orders")
        cluster.wait_until(orders.fully_in_sync, within="30s")
        cluster.produce(orders, count=3)
        cluster.run_for("1200ms")
        for broker in cluster.brokers:
            noted = inside(cluster).disks[broker.id].files.get("replication-offset-checkpoint", {})
            assert noted.get("orders-0", 0) == known
