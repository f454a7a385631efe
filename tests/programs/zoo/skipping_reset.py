"""It starts at the end of a partition without a committed offset: aiokafka's default.

What came between the first assignment and the first commit is skipped by whoever comes next.
"""

from __future__ import annotations

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import Run, Shop, committed, reading


async def faulty(shop: Shop) -> None:
    await store(shop, "latest")


async def repaired(shop: Shop) -> None:
    await store(shop, "earliest")


async def store(shop: Shop, auto_offset_reset: str) -> None:
    async with reading("orders", auto_offset_reset=auto_offset_reset) as consumer:
        unsaid = 0
        while True:
            for messages in (await consumer.getmany(timeout_ms=1_000)).values():
                shop.rows |= {int(message.value): True for message in messages}
                unsaid += len(messages)
            if unsaid >= 20:
                await committed(consumer)
                unsaid = 0


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    shop = orders_and_members(cluster, run)
    cluster.wait_until(shop.has_all, within=within)
