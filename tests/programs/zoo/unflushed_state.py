"""It counts in memory and forgets at a revocation what it has not stored, though that is committed.

Repaired, the counts of a partition are stored with the offset up to which they count, before the
partition is given away, and whoever gets it reads on from that offset.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import aiokafka
from aiokafka.structs import TopicPartition

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import ORDERS, Run, Shop, customer_of, reading

STORE_S = 2


async def faulty(shop: Shop) -> None:
    counts: Counter[int] = Counter()

    class Fresh(aiokafka.ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            counts.clear()  # whoever has the customers now counts on

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            pass

    async def store() -> None:
        while True:
            await asyncio.sleep(STORE_S)
            for customer, count in counts.items():
                shop.rows[customer] = shop.rows.get(customer, 0) + count
            counts.clear()

    consumer = reading(enable_auto_commit=True)
    consumer.subscribe(["orders"], listener=Fresh())
    async with consumer:
        storing = asyncio.create_task(store())
        try:
            async for message in consumer:
                counts[customer_of(int(message.value))] += 1
        finally:
            storing.cancel()


async def repaired(shop: Shop) -> None:
    counts: dict[TopicPartition, Counter[int]] = {}
    offsets: dict[TopicPartition, int] = {}

    def store() -> None:
        for place, count in counts.items():
            if offsets[place] > shop.rows.get(place, (0,))[0]:  # a zombie changes nothing
                shop.rows[place] = offsets[place], Counter(count)

    class Stored(aiokafka.ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            store()
            counts.clear()

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            for place in assigned:
                offsets[place], count = shop.rows.get(place, (0, Counter()))
                counts[place] = Counter(count)
                consumer.seek(place, offsets[place])

    async def storing() -> None:
        while True:
            await asyncio.sleep(STORE_S)
            store()

    consumer = reading()
    consumer.subscribe(["orders"], listener=Stored())
    async with consumer:
        task = asyncio.create_task(storing())
        try:
            async for message in consumer:
                place = TopicPartition(message.topic, message.partition)
                if place in counts and message.offset >= offsets[place]:
                    counts[place][customer_of(int(message.value))] += 1
                    offsets[place] = message.offset + 1
        finally:
            task.cancel()


def counted(shop: Shop) -> Counter[int]:
    """The orders of each customer, as they are stored."""
    total: Counter[int] = Counter()
    for key, value in shop.rows.items():
        total.update(value[1] if isinstance(key, TopicPartition) else {key: value})
    return total


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    shop = orders_and_members(cluster, run)
    everything = Counter(map(customer_of, range(ORDERS)))
    cluster.wait_until(lambda: counted(shop) == everything, within=within)
    cluster.run_for("70s")  # what was paused comes back
    assert counted(shop) == everything
