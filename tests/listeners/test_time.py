"""The time of records: clients have the time of day, so what they read and write has it."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka
import pytest

from minicluster import MiniCluster

LIMIT_S = 60.0


@pytest.mark.parametrize("more", [{}, {"pace": 1.0}], ids=["threaded", "paced"])
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_records_have_the_time_of_day(more: dict[str, Any], kind: str) -> None:
    with MiniCluster(seed=3, listeners=True, brokers=1, controllers=1, **more) as cluster:
        cluster.create_topic("orders", replicas=1, configs={"message.timestamp.type": kind})
        began_ms = time.time() * 1000
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        [own] = cluster.produce("orders")
        assert own.ok
        errors: list[object] = []
        producer = confluent_kafka.Producer(servers)
        producer.produce("orders", "first", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(LIMIT_S) == 0 and errors == [None]
        consumer = confluent_kafka.Consumer(
            {**servers, "group.id": "unused", "enable.auto.commit": False}
        )
        consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
        found = consumer.consume(2, timeout=LIMIT_S)
        consumer.close()
    times_ms = [message.timestamp()[1] for message in found]
    assert len(times_ms) == 2
    assert all(abs(time_ms - began_ms) < 2 * LIMIT_S * 1000 for time_ms in times_ms)
