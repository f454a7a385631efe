"""Requests of a test: to the active controller, or to a broker where controllers handle none."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.errors import NoResponse
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m

CONTROLLERS = 2  # DescribeCluster's kinds of endpoints

SHAPES: dict[str, dict[str, Any]] = {
    "apart": {},
    "combined": {"broker_ids": [1, 2, 3], "controller_ids": [1, 2, 3]},
    "zookeeper": {"mode": "zookeeper"},
}


def started(shape: str) -> MiniCluster:
    cluster = MiniCluster(seed=5, **SHAPES[shape])
    cluster.start()
    cluster.wait_until(lambda: not any(broker.is_fenced for broker in cluster.brokers))
    return cluster


@pytest.mark.parametrize("shape", SHAPES)
def test_what_brokers_alone_handle_goes_to_one_that_runs(shape: str) -> None:
    with started(shape) as cluster:
        cluster.create_topic("orders", partitions=2)
        ids = [broker.id for broker in cluster.brokers]
        described = cluster.admin(m.DescribeClusterRequest())
        assert described.error_code == ErrorCode.NONE
        assert sorted(broker.broker_id for broker in described.brokers) == ids
        [topic] = cluster.admin(m.MetadataRequest(topics=None)).topics
        assert topic.name == "orders" and len(topic.partitions) == 2
        if shape == "apart":
            cluster.kill(cluster.node(ids[0]))  # the one that had them
        assert cluster.admin(m.DescribeClusterRequest()).error_code == ErrorCode.NONE
        assert cluster.admin(m.ListGroupsRequest()).error_code == ErrorCode.NONE


@pytest.mark.parametrize("shape", ["apart", "combined"])
def test_what_controllers_handle_goes_to_the_active_one(shape: str) -> None:
    with started(shape) as cluster:
        described = cluster.admin(m.DescribeClusterRequest(endpoint_type=CONTROLLERS))
        assert described.error_code == ErrorCode.NONE
        controllers = [controller.id for controller in cluster.controllers]
        assert sorted(node.broker_id for node in described.brokers) == controllers
        active = cluster.active_controller
        assert active is not None and described.controller_id == active.id
        topics = (m.CreateTopicsRequest.CreatableTopic(name="a", num_partitions=1,
                                                       replication_factor=3),)  # fmt: skip
        [created] = cluster.admin(m.CreateTopicsRequest(topics=topics)).topics
        assert created.error_code == ErrorCode.NONE


def test_a_request_for_brokers_says_so_where_none_runs() -> None:
    with started("apart") as cluster:
        cluster.kill(cluster.brokers)
        with pytest.raises(NoResponse, match=r"no broker responded within 3s \(no broker runs\)"):
            cluster.admin(m.DescribeClusterRequest(), within="3s")
        asked = m.DescribeClusterRequest(endpoint_type=CONTROLLERS)
        assert cluster.admin(asked).error_code == ErrorCode.NONE
