"""Records of real clients have dates, and so has the clock of a cluster that they reach."""

from __future__ import annotations

import time
from collections.abc import Iterator

import confluent_kafka
import pytest

from minicluster import MiniCluster

pytestmark = pytest.mark.clients

HOUR_MS = 3_600_000
LIMIT_S = 60.0


@pytest.fixture(params=[None, 1], ids=["threaded", "paced"])
def cluster(request: pytest.FixtureRequest) -> Iterator[MiniCluster]:
    with MiniCluster(seed=3, brokers=1, controllers=1, listeners=True, pace=request.param) as built:
        built.create_topic("dated", replicas=1)
        yield built


def delivered(cluster: MiniCluster, timestamp_ms: int) -> confluent_kafka.KafkaError | int:
    """The error of a record with a timestamp, or the timestamp that it has in the log."""
    common = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "unused"}
    producer = confluent_kafka.Producer(common)
    found: list[confluent_kafka.KafkaError | int] = []

    def report(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        found.append(message.offset() if error is None else error)

    producer.produce("dated", "x", partition=0, timestamp=timestamp_ms, on_delivery=report)
    assert producer.flush(LIMIT_S) == 0
    [offset] = found
    if not isinstance(offset, int):
        return offset
    consumer = confluent_kafka.Consumer({**common, "enable.auto.commit": False})
    try:
        consumer.assign([confluent_kafka.TopicPartition("dated", 0, offset)])
        message = consumer.poll(LIMIT_S)
        assert message is not None and message.error() is None
        return int(message.timestamp()[1])
    finally:
        consumer.close()


def test_a_record_of_today_is_taken_and_one_of_tomorrow_is_not(cluster: MiniCluster) -> None:
    """message.timestamp.after.max.ms is an hour by default."""
    now_ms = int(time.time() * 1000)
    assert delivered(cluster, now_ms) == now_ms
    refused = delivered(cluster, now_ms + 24 * HOUR_MS)
    assert isinstance(refused, confluent_kafka.KafkaError)
    assert refused.code() == confluent_kafka.KafkaError.INVALID_TIMESTAMP


def test_the_time_of_an_append_is_the_date_of_today(cluster: MiniCluster) -> None:
    cluster.set_config("message.timestamp.type", "LogAppendTime", topic="dated")
    began_ms = int(time.time() * 1000)
    dated = delivered(cluster, 0)
    assert isinstance(dated, int)
    assert abs(dated - began_ms) < HOUR_MS  # its clock leaves out stalls of the machine
