"""It commits the consumer's position, which is beyond what the database has taken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiokafka.structs import ConsumerRecord, TopicPartition

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import Run, Shop, committed, reading

FLUSH_S, WRITE_S = 1, 0.2
Flush = Callable[[], Awaitable[None]]


async def faulty(shop: Shop) -> None:
    async with reading("orders") as consumer:
        buffer: list[ConsumerRecord] = []

        async def flush() -> None:
            batch = list(buffer)
            buffer.clear()
            await asyncio.sleep(WRITE_S)
            shop.rows |= {int(message.value): True for message in batch}
            if batch:
                await committed(consumer)

        flushing = asyncio.create_task(again_and_again(flush))
        try:
            async for message in consumer:
                buffer.append(message)
        finally:
            flushing.cancel()


async def repaired(shop: Shop) -> None:
    async with reading("orders") as consumer:
        buffer: list[ConsumerRecord] = []

        async def flush() -> None:
            batch = list(buffer)
            buffer.clear()
            await asyncio.sleep(WRITE_S)
            shop.rows |= {int(message.value): True for message in batch}
            # In the order of the buffer: the last one of a partition is its greatest offset.
            offsets = {TopicPartition(m.topic, m.partition): m.offset + 1 for m in batch}
            if offsets:
                await committed(consumer, offsets)

        flushing = asyncio.create_task(again_and_again(flush))
        try:
            async for message in consumer:
                buffer.append(message)
        finally:
            flushing.cancel()


async def again_and_again(flush: Flush) -> None:
    while True:
        await asyncio.sleep(FLUSH_S)
        await flush()


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    shop = orders_and_members(cluster, run)
    cluster.wait_until(shop.has_all, within=within)
