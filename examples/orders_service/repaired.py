"""The service again, which commits what it has written."""

import asyncio
import logging

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

log = logging.getLogger("orders")


async def main(database, servers):
    """Store orders until the process ends; begin again where Kafka was out of reach."""
    while True:
        try:
            await store(database, servers)
        except KafkaError as error:
            log.error("%r", error)
            await asyncio.sleep(1)


async def store(database, servers):
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="orders",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    buffer: list[ConsumerRecord] = []

    async def write():
        while True:
            await asyncio.sleep(1)
            batch = buffer[:]
            buffer.clear()
            if not batch:
                continue
            await database.write({message.value for message in batch})
            # Not the position of the consumer, which is beyond the batch by now.
            written = {TopicPartition(m.topic, m.partition): m.offset + 1 for m in batch}
            try:
                await consumer.commit(written)
            except KafkaError as error:  # whoever has the partitions now reads them again
                log.warning("not committed: %s", error)

    async with consumer:
        writing = asyncio.create_task(write())
        try:
            async for message in consumer:
                buffer.append(message)
        finally:
            writing.cancel()
