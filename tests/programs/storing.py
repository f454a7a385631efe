"""A service as people write them, with a planted fault: it commits what it has not written yet.

A task takes messages into a buffer; another writes the buffer to a database once a second and
commits. ``commit()`` without offsets commits the position of the consumer, and messages that came
while the database wrote are before it.
"""

from __future__ import annotations

import asyncio

import aiokafka

SERVERS = "node1:9091,node2:9092,node3:9093"
WRITE_S = 0.3


class Database:
    """Rows; a write takes its time."""

    def __init__(self) -> None:
        self.rows: set[bytes] = set()

    async def write(self, rows: set[bytes]) -> None:
        await asyncio.sleep(WRITE_S)
        self.rows |= rows


async def store(database: Database, *, repaired: bool = False) -> None:
    """Store orders until the process ends."""
    consumer = aiokafka.AIOKafkaConsumer(
        "orders",
        bootstrap_servers=SERVERS,
        group_id="storing",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
    )
    await consumer.start()
    buffer: set[bytes] = set()
    offsets: dict[aiokafka.TopicPartition, int] = {}

    async def flush() -> None:
        nonlocal offsets
        while True:
            await asyncio.sleep(1)
            rows, written = set(buffer), dict(offsets)
            buffer.clear()
            offsets.clear()
            await database.write(rows)
            try:
                if not repaired:
                    await consumer.commit()
                elif written:
                    await consumer.commit(written)
            except aiokafka.errors.KafkaError:
                # What is still this consumer's is committed next time; the rest is read again.
                kept = {
                    place: written[place] for place in written if place in consumer.assignment()
                }
                offsets = kept | offsets

    flushing = asyncio.create_task(flush())
    try:
        async for message in consumer:
            buffer.add(message.value)
            place = aiokafka.TopicPartition(message.topic, message.partition)
            offsets[place] = message.offset + 1
    finally:
        flushing.cancel()
        await consumer.stop()
