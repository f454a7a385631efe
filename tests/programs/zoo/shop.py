"""What the programs of the zoo share: orders that somebody writes, and what outlives a process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
from aiokafka.errors import IllegalOperation, KafkaConnectionError, KafkaError
from aiokafka.structs import TopicPartition

SERVERS = "node1:9091,node2:9092,node3:9093"
ORDERS, EVERY_S = 120, 0.2
PARTITIONS = 4
CUSTOMERS = 20  # each has one partition

log = logging.getLogger("shop")


class Shop:
    """A database, as a process finds it when it starts.

    Shapes:  written: the orders that the cluster has acknowledged. rows: what
             the programs have stored. problems: errors that no program should end with.
    """

    def __init__(self) -> None:
        self.written: list[int] = []
        self.rows: dict[Any, Any] = {}
        self.problems: list[Exception] = []

    def has_all(self) -> bool:
        """True once every order is stored."""
        return len(self.written) == ORDERS and self.rows.keys() >= set(self.written)


Run = Callable[[Shop], Awaitable[None]]


def customer_of(order: int) -> int:
    """Whose order it is."""
    return order % CUSTOMERS


@asynccontextmanager
async def started(
    client: aiokafka.AIOKafkaProducer | aiokafka.AIOKafkaConsumer,
) -> AsyncIterator[None]:
    """A client that waits for a broker to be there before it starts, and stops with the block."""
    while True:
        try:
            await client.start()
        except KafkaConnectionError as error:
            log.warning("not started yet: %r", error)
            await asyncio.sleep(1)
        else:
            break
    try:
        yield
    finally:
        await client.stop()


async def source(shop: Shop) -> None:
    """Write orders, and take note of those that the cluster has acknowledged.

    Each partition has a task, so that one that has no leader does not hold up the others.
    """
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=SERVERS, enable_idempotence=True, request_timeout_ms=120_000
    )
    async with started(producer), asyncio.TaskGroup() as tasks:
        for partition in range(PARTITIONS):
            tasks.create_task(write(shop, producer, partition))


async def write(shop: Shop, producer: aiokafka.AIOKafkaProducer, partition: int) -> None:
    for order in range(partition, ORDERS, PARTITIONS):
        await producer.send_and_wait("orders", b"%d" % order, partition=partition)
        shop.written.append(order)
        await asyncio.sleep(EVERY_S * PARTITIONS)


def reading(*topics: str, **options: Any) -> aiokafka.AIOKafkaConsumer:
    """A member of the shop's group, which commits by itself only where it is asked to."""
    given = {
        "bootstrap_servers": SERVERS,
        "group_id": "shop",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": 10_000,
        # aiokafka 0.14 asks a broker for its first offset, again and again until its metadata is
        # that old, though the broker does not lead any more.
        "metadata_max_age_ms": 10_000,
        **options,
    }
    return aiokafka.AIOKafkaConsumer(*topics, **given)


async def committed(
    consumer: aiokafka.AIOKafkaConsumer, offsets: dict[TopicPartition, int] | None = None
) -> None:
    """Commit; after a rebalance whoever has the partitions now reads them again."""
    try:
        await consumer.commit(offsets)
    except KafkaError as error:
        log.warning("not committed: %s", error)


async def supervised(run: Run, shop: Shop) -> None:
    """Run a service, and start it again when it fails, as systemd or Kubernetes would."""
    while True:
        try:
            return await run(shop)
        # aiokafka says IllegalOperation, which is no KafkaError, of a transaction that has failed.
        except (KafkaError, IllegalOperation) as error:
            log.warning("failed, and starts again: %r", error)
        except Exception as error:
            shop.problems.append(error)
            raise
        await asyncio.sleep(1)
