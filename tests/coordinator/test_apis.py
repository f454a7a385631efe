"""A broker routes requests of coordinators before it has loaded them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_type_hints

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.coordinator.apis import GROUP_APIS, TRANSACTION_APIS
from minicluster.coordinator.group.machine import HANDLERS as OF_GROUPS
from minicluster.coordinator.transaction.machine import HANDLERS as OF_TRANSACTIONS

_LOADED = """
import sys
from typing import Any, get_type_hints
from minicluster import MiniCluster
with MiniCluster(seed=1) as cluster:
    cluster.wait_until(cluster.create_topic("orders").fully_in_sync)
    cluster.produce("orders", count=3)
    cluster.run_for("10s")
    print(*(name for name in sys.modules if name.startswith("minicluster.coordinator.")))
"""


def test_each_request_of_a_coordinator_has_a_function_that_takes_it() -> None:
    """The tables name functions, so that no code is loaded: here they are found and checked."""
    assert set(OF_GROUPS) == set(GROUP_APIS) and set(OF_TRANSACTIONS) == set(TRANSACTION_APIS)
    for request, handle in (*OF_GROUPS.items(), *OF_TRANSACTIONS.items()):
        shapes = get_type_hints(handle, localns={"Any": Any})
        assert shapes["request"] is request
        assert shapes["return"] is type(None)
        assert list(shapes)[2:] == ["request", "version", "now_ms", "return"]


def test_a_cluster_without_groups_loads_no_coordinator() -> None:
    """While it runs; what its end is judged by reads the words of a transaction's log."""
    command = [sys.executable, "-c", _LOADED]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    light = ("apis", "internal_topics")
    assert sorted(loaded) == [f"minicluster.coordinator.{name}" for name in light]


def test_a_coordinator_is_made_by_the_first_group_on_the_brokers_that_need_it() -> None:
    with MiniCluster(seed=1, brokers=3, config={"offsets.topic.num.partitions": "1"}) as cluster:
        cluster.create_topic("orders", partitions=1)
        replicas = [inside(cluster).processes[broker.id].replicas for broker in cluster.brokers]
        assert not any(each._coordinators for each in replicas)
        cluster.produce("orders", count=2)
        assert len(cluster.consume("orders", group="g", count=2)) == 2
        assert all(each._coordinators for each in replicas)  # each follows the topic
