"""The requests that a broker routes to its coordinators."""

from __future__ import annotations

from typing import Any, get_type_hints

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.coordinator.group.machine import HANDLERS as OF_GROUPS
from minicluster.coordinator.transaction.machine import HANDLERS as OF_TRANSACTIONS


def test_each_request_of_a_coordinator_has_a_function_that_takes_it() -> None:
    for request, handle in (*OF_GROUPS.items(), *OF_TRANSACTIONS.items()):
        shapes = get_type_hints(handle, localns={"Any": Any})
        assert shapes["request"] is request
        assert shapes["return"] is type(None)
        assert list(shapes)[2:] == ["request", "version", "now_ms", "return"]


def test_a_coordinator_is_made_by_the_first_group_on_the_brokers_that_need_it() -> None:
    with MiniCluster(seed=1, brokers=3, config={"offsets.topic.num.partitions": "1"}) as cluster:
        cluster.create_topic("orders", partitions=1)
        replicas = [inside(cluster).processes[broker.id].replicas for broker in cluster.brokers]
        assert not any(each._coordinators for each in replicas)
        cluster.produce("orders", count=2)
        assert len(cluster.consume("orders", group="g", count=2)) == 2
        assert all(each._coordinators for each in replicas)  # each follows the topic
