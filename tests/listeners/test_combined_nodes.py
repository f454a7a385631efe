"""Nodes that are broker and controller have a port, at which they listen as brokers."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from minicluster import MiniCluster, UserError
from tests.actors.test_from_log import LOGS

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("how", [{"runtime": "threaded"}, {"runtime": "simulated", "pace": 5}])
def test_a_client_writes_to_combined_nodes_while_one_dies(how: dict[str, Any]) -> None:
    nodes = [1, 2, 3]
    with MiniCluster(broker_ids=nodes, controller_ids=nodes, listeners=True, **how) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("orders", b"one")
        assert producer.flush(30) == 0
        cluster.kill(orders[0].leader)
        producer.produce("orders", b"two")
        assert producer.flush(60) == 0
        read = cluster.consume(orders, count=2)
        assert [record.value for record in read] == [b"one", b"two"]
        with pytest.raises(UserError, match="every controller is a broker as well"):
            cluster.bootstrap_controllers  # noqa: B018
        del producer


def test_clients_come_to_a_cluster_of_a_log_of_combined_nodes() -> None:
    with MiniCluster.from_log(LOGS / "smoke", listeners=True) as cluster:
        assert {node.id for node in cluster.brokers} & {node.id for node in cluster.controllers}
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        known = admin.list_topics(timeout=20)
        assert set(known.topics) == {topic.name for topic in cluster.image.topics}
        del admin
