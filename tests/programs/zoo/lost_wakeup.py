"""A worker that is cancelled while it waits leaves its wake-up behind, and nobody waits again.

A queue by hand, a worker per partition: a revocation cancels it. When the partition comes back the
next worker waits for the future that was cancelled, which cancels it, too.
"""

from __future__ import annotations

import asyncio
from collections import deque

import aiokafka
from aiokafka.structs import ConsumerRecord, TopicPartition

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import Run, Shop, committed, reading


class Inbox:
    """Messages for one worker."""

    def __init__(self) -> None:
        self.messages: deque[ConsumerRecord] = deque()
        self.waiter: asyncio.Future[None] | None = None

    def put(self, message: ConsumerRecord) -> None:
        self.messages.append(message)
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def get(self) -> ConsumerRecord:
        while not self.messages:
            if self.waiter is None:
                self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
            self.waiter = None
        return self.messages.popleft()


class Repaired(Inbox):
    async def get(self) -> ConsumerRecord:
        while not self.messages:
            self.waiter = asyncio.get_running_loop().create_future()
            try:
                await self.waiter
            finally:
                self.waiter = None
        return self.messages.popleft()


async def faulty(shop: Shop) -> None:
    await store(shop, Inbox)


async def repaired(shop: Shop) -> None:
    await store(shop, Repaired)


async def store(shop: Shop, kind: type[Inbox]) -> None:
    inboxes: dict[TopicPartition, Inbox] = {}
    workers: list[asyncio.Task[None]] = []

    async def work(place: TopicPartition) -> None:
        while True:
            message = await inboxes[place].get()
            shop.rows[int(message.value)] = True
            await committed(consumer, {place: message.offset + 1})

    class Workers(aiokafka.ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            workers.clear()
            for inbox in inboxes.values():
                inbox.messages.clear()

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            for place in sorted(assigned):
                inboxes.setdefault(place, kind())
                workers.append(asyncio.create_task(work(place)))

    consumer = reading()
    consumer.subscribe(["orders"], listener=Workers())
    async with consumer:
        async for message in consumer:
            place = TopicPartition(message.topic, message.partition)
            inboxes.setdefault(place, kind()).put(message)


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    shop = orders_and_members(cluster, run)
    cluster.wait_until(shop.has_all, within=within)
