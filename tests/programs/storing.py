"""A service as people write them, with a planted fault: it commits what it has not written yet.

A task takes messages into a buffer; another writes the buffer to a database once a second and
commits. ``commit()`` without offsets commits the position of the consumer, and messages that came
while the database wrote are before it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

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


async def store(database: Database) -> None:
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

    async def flush() -> None:
        while True:
            await asyncio.sleep(1)
            rows = set(buffer)
            buffer.clear()
            await database.write(rows)
            with suppress(aiokafka.errors.KafkaError):
                await consumer.commit()

    flushing = asyncio.create_task(flush())
    try:
        async for message in consumer:
            buffer.add(message.value)
    finally:
        flushing.cancel()
        await consumer.stop()
