"""It stores each customer's latest order; a process that was paused stores an older one over it.

Repaired, a row has the offset that it comes from, and an older one does not replace a newer one.
The rows here have all that was ever stored, so that a test sees it.
"""

from __future__ import annotations

import asyncio

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import CUSTOMERS, ORDERS, Run, Shop, committed, customer_of, reading

WORK_S = 0.3
QUICK = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 2_000}


async def faulty(shop: Shop) -> None:
    async with reading("orders", **QUICK) as consumer:
        while True:
            for place, messages in (await consumer.getmany(timeout_ms=1_000)).items():
                for message in messages:
                    await asyncio.sleep(WORK_S)
                    row = shop.rows.setdefault(customer_of(int(message.value)), [])
                    row.append(message.offset)
                await committed(consumer, {place: messages[-1].offset + 1})


async def repaired(shop: Shop) -> None:
    async with reading("orders", **QUICK) as consumer:
        while True:
            for place, messages in (await consumer.getmany(timeout_ms=1_000)).items():
                for message in messages:
                    await asyncio.sleep(WORK_S)
                    row = shop.rows.setdefault(customer_of(int(message.value)), [])
                    if not row or message.offset > row[-1]:
                        row.append(message.offset)
                await committed(consumer, {place: messages[-1].offset + 1})


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    shop = orders_and_members(cluster, run)
    of_each = ORDERS // CUSTOMERS
    cluster.wait_until(
        lambda: sum(len({*row}) == of_each for row in shop.rows.values()) == CUSTOMERS,
        within=within,
    )
    cluster.run_for("70s")  # what was paused comes back
    assert [row for row in shop.rows.values() if row != sorted(row)] == []
