"""Each process has a transactional id of its own, so nobody fences one that lost its partitions.

It was paused within a transaction, and commits it after another has billed the same orders.
Repaired, the id is that of the partition: whoever gets that fences the one before.
"""

from __future__ import annotations

import asyncio
import uuid
from functools import partial

import aiokafka
from aiokafka import AIOKafkaProducer
from aiokafka.structs import ConsumerRecord, TopicPartition

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import ORDERS, SERVERS, Run, Shop, reading, started

WORK_S = 0.2


def billing(transactional_id: str) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=SERVERS, transactional_id=transactional_id, transaction_timeout_ms=60_000
    )


async def bill(
    producer: AIOKafkaProducer, place: TopicPartition, messages: list[ConsumerRecord]
) -> None:
    """Bills of a batch, and where its partition goes on, in one transaction."""
    async with producer.transaction():
        for message in messages:
            await asyncio.sleep(WORK_S)
            await producer.send("bills", message.value)
        await producer.send_offsets_to_transaction({place: messages[-1].offset + 1}, "shop")


async def faulty(shop: Shop) -> None:
    async with billing(f"billing-{uuid.uuid4()}") as producer, reading("orders") as consumer:
        while True:
            batch = await consumer.getmany(timeout_ms=1_000)
            for place, messages in batch.items():
                await bill(producer, place, messages)


async def repaired(shop: Shop) -> None:
    producers: dict[TopicPartition, AIOKafkaProducer] = {}
    one_at_a_time = asyncio.Lock()  # a batch, or a rebalance
    rebalances = 0

    class Fencing(aiokafka.ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            nonlocal rebalances
            rebalances += 1
            async with one_at_a_time:
                while producers:
                    await producers.popitem()[1].stop()

        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            nonlocal rebalances
            async with one_at_a_time:
                for place in sorted(assigned):
                    producer = billing(f"billing-{place.topic}-{place.partition}")
                    await producer.start()
                    producers[place] = producer
                if assigned:  # what the one before has committed, now that it is fenced
                    committed = await consumer.seek_to_committed(*assigned)
                    # Where nobody has, that moves nothing, not even behind a batch that is dropped.
                    if first := [place for place in assigned if not committed[place]]:
                        await consumer.seek_to_beginning(*first)
                rebalances += 1

    consumer = reading()
    consumer.subscribe(["orders"], listener=Fencing())
    async with consumer:
        try:
            while True:
                batch = await consumer.getmany(timeout_ms=1_000)
                of = rebalances
                async with one_at_a_time:
                    for place, messages in batch.items():
                        if rebalances == of:  # otherwise whoever has the partition reads them again
                            await bill(producers[place], place, messages)
        finally:
            while producers:
                await producers.popitem()[1].stop()


async def reader(shop: Shop) -> None:
    """Bills, and how often each was written."""
    consumer = reading("bills", group_id=None, isolation_level="read_committed")
    async with started(consumer):
        async for message in consumer:
            order = int(message.value)
            shop.rows[order] = shop.rows.get(order, 0) + 1


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    cluster.create_topic("bills", partitions=2, min_isr=2)
    shop = orders_and_members(cluster, run)
    cluster.app("reader", partial(reader, shop))
    cluster.wait_until(shop.has_all, within=within)
    cluster.run_for("70s")  # what was paused comes back
    assert shop.rows == dict.fromkeys(range(ORDERS), 1)
