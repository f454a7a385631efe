"""Asked to end before its first assignment, it closes what it has not opened yet, and fails."""

from __future__ import annotations

import asyncio
import signal

import aiokafka
from aiokafka.structs import ConsumerRecord, TopicPartition

from minicluster import MiniCluster
from tests.programs.zoo.play import orders_and_members
from tests.programs.zoo.shop import Run, Shop, committed, reading

# The members of a large group: a new one waits for the heartbeats of the others.
QUIET = {"session_timeout_ms": 45_000, "heartbeat_interval_ms": 15_000}


class Writer:
    """Stores orders in batches, and commits what is stored."""

    def __init__(self, shop: Shop, consumer: aiokafka.AIOKafkaConsumer) -> None:
        self.shop, self.consumer = shop, consumer
        self.batch: list[ConsumerRecord] = []

    async def write(self, messages: list[ConsumerRecord]) -> None:
        self.batch += messages
        if len(self.batch) >= 5:
            await self.flush()

    async def flush(self) -> None:
        batch, self.batch = self.batch, []
        self.shop.rows |= {int(message.value): True for message in batch}
        offsets = {TopicPartition(m.topic, m.partition): m.offset + 1 for m in batch}
        if offsets:
            await committed(self.consumer, offsets)


class Opens(aiokafka.ConsumerRebalanceListener):
    """Has a writer from the first assignment on."""

    writer: Writer | None = None

    def __init__(self, shop: Shop, consumer: aiokafka.AIOKafkaConsumer) -> None:
        self.shop, self.consumer = shop, consumer

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        if self.writer is not None:
            await self.writer.flush()

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.writer = self.writer or Writer(self.shop, self.consumer)


def ends_at_sigterm() -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)


async def faulty(shop: Shop) -> None:
    ends_at_sigterm()
    consumer = reading(**QUIET)
    opens = Opens(shop, consumer)
    await consumer.start()
    try:
        consumer.subscribe(["orders"], listener=opens)
        while True:
            for messages in (await consumer.getmany(timeout_ms=500)).values():
                await opens.writer.write(messages)
            await opens.writer.flush()
    finally:
        await opens.writer.flush()
        await consumer.stop()


async def repaired(shop: Shop) -> None:
    ends_at_sigterm()
    consumer = reading(**QUIET)
    opens = Opens(shop, consumer)
    await consumer.start()
    try:
        consumer.subscribe(["orders"], listener=opens)
        while True:
            for messages in (await consumer.getmany(timeout_ms=500)).values():
                await opens.writer.write(messages)
            await opens.writer.flush()
    finally:
        try:
            if opens.writer is not None:
                await opens.writer.flush()
        finally:
            await consumer.stop()


def plays(cluster: MiniCluster, run: Run, within: str = "3m") -> None:
    shop = orders_and_members(cluster, run)
    cluster.wait_until(shop.has_all, within=within)
    assert not shop.problems
