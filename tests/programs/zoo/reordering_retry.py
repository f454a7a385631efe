"""What could not be sent is sent again later, after what came behind it."""

from __future__ import annotations

import asyncio
from functools import partial

import aiokafka
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import PARTITIONS, SERVERS, Run, Shop, committed, log, reading, started

PENDING = 10


async def faulty(shop: Shop) -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=SERVERS, request_timeout_ms=2_000)
    sending: list[asyncio.Task[None]] = []
    async with producer, reading("orders") as consumer:
        while True:
            for messages in (await consumer.getmany(timeout_ms=1_000)).values():
                sending += [asyncio.create_task(send(producer, message)) for message in messages]
            if len(sending) >= PENDING:
                await asyncio.gather(*sending)
                sending.clear()
                await committed(consumer)


async def repaired(shop: Shop) -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=SERVERS, enable_idempotence=True)
    async with producer, reading("orders") as consumer:
        while True:
            for place, messages in (await consumer.getmany(timeout_ms=1_000)).items():
                for message in messages:
                    await send(producer, message)
                await committed(consumer, {place: messages[-1].offset + 1})


async def send(producer: aiokafka.AIOKafkaProducer, message: ConsumerRecord) -> None:
    """Send a bill, again and again."""
    while True:
        try:
            await producer.send_and_wait("bills", message.value, partition=message.partition)
        except KafkaError as error:
            log.warning("not sent yet: %r", error)
            await asyncio.sleep(1)
        else:
            return


async def reader(shop: Shop) -> None:
    """The bills of each partition, each where it comes first."""
    consumer = reading("bills", group_id="bills")
    async with started(consumer):
        async for message in consumer:
            shop.rows.setdefault(int(message.value), (message.partition, message.offset))


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    # One replica each: a broker that is down holds up its own partitions, and no others.
    cluster.create_topic("bills", partitions=PARTITIONS, replicas=1)
    shop = orders_and_members(cluster, run, replicas=1)
    cluster.app("reader", partial(reader, shop))
    cluster.wait_until(shop.has_all, within=within)
    for partition in range(PARTITIONS):
        bills = [(offset, order) for order, (of, offset) in shop.rows.items() if of == partition]
        assert [order for _, order in sorted(bills)] == sorted(order for _, order in bills)
