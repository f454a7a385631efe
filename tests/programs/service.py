"""Programs as users write them: a member of a group, and what it reads."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import Any

import aiokafka

SERVERS = "node1:9091,node2:9092,node3:9093"

SEEN: list[tuple[str, bytes]] = []


async def member(
    name: str = "member",
    seen: list[tuple[str, bytes]] = SEEN,
    topics: str = "orders",
    **options: Any,
) -> None:
    """Read topics, words of a text, until it is killed."""
    consumer = aiokafka.AIOKafkaConsumer(
        *topics.split(),
        bootstrap_servers=SERVERS,
        auto_offset_reset="earliest",
        **{"group_id": "orders", **options},
    )
    await consumer.start()
    try:
        async for message in consumer:
            seen.append((name, message.value))
    finally:
        await consumer.stop()


async def polite(name: str, seen: list[tuple[str, bytes]], **options: Any) -> str:
    """Read orders until SIGTERM comes, then leave the group."""
    ends = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ends.set)
    reading = asyncio.create_task(member(name, seen, **options))
    await ends.wait()
    reading.cancel()
    await asyncio.wait([reading])
    return "left"


async def source(count: int = 40, pause_s: float = 0.0, **options: Any) -> None:
    """Write orders."""
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=SERVERS, acks="all", **options)
    async with producer:
        for number in range(count):
            value = b"%d" % number
            await producer.send_and_wait("orders", value, key=value)
            await asyncio.sleep(pause_s)


forty = partial(source, 40)
