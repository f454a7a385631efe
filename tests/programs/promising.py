"""Programs that break what programs promise, each beside one that nearly does."""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka
from aiokafka import TopicPartition

from tests.programs.service import SERVERS


def consumer(*topics: str, **options: Any) -> aiokafka.AIOKafkaConsumer:
    """A consumer of group orders that commits when it is told to."""
    chosen = {"group_id": "orders", "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return aiokafka.AIOKafkaConsumer(*topics, bootstrap_servers=SERVERS, **(chosen | options))


async def reads(commits: bool = True, beyond: int = 0, count: int = 10**9, **options: Any) -> None:
    """Commit each record that it read, or a position beyond it; so many, and then it only reads."""
    reader = consumer("orders", **options)
    await reader.start()
    async for message in reader:
        count -= 1
        if commits and count >= 0:
            partition = TopicPartition(message.topic, message.partition)
            await reader.commit({partition: message.offset + 1 + beyond})


async def reads_without_a_group(**options: Any) -> None:
    """Read the partition that it has assigned to itself, and commit for a group all the same."""
    reader = consumer(**options)
    reader.assign([TopicPartition("orders", 0)])
    await reader.start()
    async for _ in reader:
        await reader.commit()


async def skips_to_the_end() -> None:
    """Read the first record, then go to the end on purpose, and commit."""
    reader = consumer("orders")
    await reader.start()
    await reader.getone()
    await asyncio.sleep(10)
    await reader.seek_to_end()
    await reader.getone()
    await reader.commit()


async def bills(holds_s: float, ends: bool = True, stays: bool = True) -> None:
    """Write a bill in a transaction, which takes a while; perhaps never end it."""
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=SERVERS, transactional_id="billing", transaction_timeout_ms=20_000
    )
    await producer.start()
    await producer.begin_transaction()
    await producer.send_and_wait("orders", b"bill")
    await asyncio.sleep(holds_s)
    if ends:
        await producer.commit_transaction()
    while stays:
        await asyncio.sleep(1)


async def fails() -> None:
    """End with an error after a second."""
    await asyncio.sleep(1)
    raise ValueError("no such order")
