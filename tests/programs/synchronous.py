"""Programs with a synchronous client, kafka-python: its own loop, in threads of its own.

They import it themselves, as a service does that is started by a framework.
"""

from __future__ import annotations

from tests.programs.service import SERVERS

ADDRESSES = SERVERS.split(",")


def read(name: str, seen: list[tuple[str, bytes]]) -> None:
    """Read orders until it is killed."""
    import kafka

    consumer = kafka.KafkaConsumer(
        "orders",
        bootstrap_servers=ADDRESSES,
        group_id="orders",
        auto_offset_reset="earliest",
        session_timeout_ms=10_000,
    )
    for message in consumer:
        seen.append((name, message.value))


def write(count: int = 40) -> int:
    """Write orders."""
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=ADDRESSES, acks="all")
    for number in range(count):
        value = b"%d" % number
        producer.send("orders", value, key=value).get(timeout=30)
    producer.close()
    return count
