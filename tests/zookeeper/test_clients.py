"""Kafka's own clients on brokers that live on ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from minicluster import MiniCluster

pytestmark = pytest.mark.clients

COUNT = 5
WITHIN_S = 90.0


@pytest.mark.parametrize("level", ["2.6", "3.9"])
def test_a_topic_is_created_written_and_read_by_a_group(level: str) -> None:
    """Metadata names the controller, which alone creates topics; nothing is forwarded to it."""
    with MiniCluster(
        mode="zookeeper", inter_broker_protocol=level, seed=3, listeners=True
    ) as cluster:
        servers: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("orders", 2, 2)])["orders"].result(WITHIN_S)
        metadata = admin.list_topics(timeout=WITHIN_S)
        assert metadata.controller_id == cluster.active_controller
        assert len(metadata.topics["orders"].partitions) == 2

        producer = Producer({**servers, "enable.idempotence": True})
        for number in range(COUNT):
            producer.produce("orders", str(number).encode())
        assert producer.flush(WITHIN_S) == 0
        consumer = Consumer({**servers, "group.id": "app", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        try:
            values = [consumer.poll(WITHIN_S).value() for _ in range(COUNT)]
        finally:
            consumer.close()
        assert sorted(values) == [str(number).encode() for number in range(COUNT)]
