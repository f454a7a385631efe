"""It commits a batch before it has processed it: what a dead process held is never read again."""

from __future__ import annotations

import asyncio

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import Run, Shop, committed, reading

WORK_S = 0.25


async def faulty(shop: Shop) -> None:
    async with reading("orders") as consumer:
        while True:
            batch = await consumer.getmany(timeout_ms=1_000)
            if batch:
                await committed(consumer)
            for messages in batch.values():
                for message in messages:
                    await asyncio.sleep(WORK_S)
                    shop.rows[int(message.value)] = True


async def repaired(shop: Shop) -> None:
    async with reading("orders") as consumer:
        while True:
            for place, messages in (await consumer.getmany(timeout_ms=1_000)).items():
                for message in messages:
                    await asyncio.sleep(WORK_S)
                    shop.rows[int(message.value)] = True
                await committed(consumer, {place: messages[-1].offset + 1})


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    shop = orders_and_members(cluster, run)
    cluster.wait_until(shop.has_all, within=within)
