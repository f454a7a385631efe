"""Records for and from the software under test, by confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Iterable

import confluent_kafka

WITHIN_S = 240.0
QUIET_S = 3.0


def write(servers: str, topic: str, values: Iterable[str]) -> None:
    """Produce values, each once: by an idempotent producer, acknowledged by all in sync."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5}
    )
    for value in values:
        producer.produce(topic, value)
        producer.poll(0)
    assert producer.flush(WITHIN_S) == 0


def read_committed(
    servers: str, topic: str, partitions: int, count: int, *, quiet: bool = True
) -> list[tuple[str, str]]:
    """The keys and values of a topic, committed ones only.

    Shapes:  quiet: what comes after ``count`` records as well, until no more comes for a while.
    """
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    records: list[tuple[str, str]] = []
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in range(partitions)])
        ends = time.monotonic() + WITHIN_S
        while time.monotonic() < ends:
            if len(records) >= count and not quiet:
                return records
            message = consumer.poll(1.0 if len(records) < count else QUIET_S)
            if message is not None and message.error() is None:
                records.append(((message.key() or b"").decode(), (message.value() or b"").decode()))
            elif message is None and len(records) >= count:
                return records
        raise AssertionError(f"{topic}: {len(records)} of {count} records in {WITHIN_S:.0f} s")
    finally:
        consumer.close()
