"""A producer and a consumer of the tests with Apache Kafka's own processes."""

from __future__ import annotations

import confluent_kafka

LIMIT_S = 60.0

# Roles stay as they are on a machine that is busy with other processes.
PATIENT = {
    "controller.quorum.election.timeout.ms": "10s",
    "controller.quorum.fetch.timeout.ms": "20s",
}


def produced(servers: str, topic: str, partitions: int, values: list[str]) -> None:
    """Produce values in turn to all partitions, each acknowledged by all replicas."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "acks": "all", "linger.ms": 1}
    )
    failed: list[object] = []

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            failed.append(error)

    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions, on_delivery=delivered)
    assert producer.flush(LIMIT_S) == 0
    assert not failed, failed


def consumed(servers: str, topic: str, partitions: int, count: int) -> list[str]:
    """The first records of all partitions."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False}
    )
    try:
        consumer.assign(
            [confluent_kafka.TopicPartition(topic, index, 0) for index in range(partitions)]
        )
        return [message.value().decode() for message in consumer.consume(count, timeout=LIMIT_S)]
    finally:
        consumer.close()
