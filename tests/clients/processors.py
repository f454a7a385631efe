"""Consume, transform, produce: exactly once, with every client in one form.

A step reads what has come, writes it to another topic with an exclamation mark, and commits both
the records and the offsets in one transaction.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors

from tests.clients.members import keep_joins_in_flight

POLL_S = 0.5
LIMIT_S = 60
TIMEOUT_MS = 30_000


class Fenced(Exception):
    """Another producer has taken over the transactional id."""


class Processor(Protocol):
    """One consumer and one transactional producer."""

    def step(self, *, abort: bool = False) -> int:
        """Process what has come; the number of records that are committed."""

    def write(self, value: str) -> None:
        """Begin a transaction with one record."""

    def commit(self) -> None:
        """Commit the transaction.

        Errors:  Fenced.
        """

    def close(self) -> None: ...


Make = Callable[[str, str, str, str], Processor]
"""Bootstrap servers, source, sink, and the group, which is the transactional id as well."""


class ConfluentProcessor:
    """On librdkafka, by the protocol of KIP-98."""

    def __init__(self, servers: str, source: str, sink: str, group: str) -> None:
        self.sink = sink
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
            }
        )
        self.consumer.subscribe([source])
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": group,
                "transaction.timeout.ms": TIMEOUT_MS,
            }
        )
        self._call(self.producer.init_transactions, LIMIT_S)

    def step(self, *, abort: bool = False) -> int:
        messages = [m for m in self.consumer.consume(100, POLL_S) if m.error() is None]
        if not messages:
            return 0
        self.producer.begin_transaction()
        try:
            for message in messages:
                self.producer.produce(self.sink, message.value() + b"!")
            positions = self.consumer.position(self.consumer.assignment())
            metadata = self.consumer.consumer_group_metadata()
            self._call(self.producer.send_offsets_to_transaction, positions, metadata, LIMIT_S)
            if not abort:
                self.commit()
                return len(messages)
        except confluent_kafka.KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise
        self._call(self.producer.abort_transaction, LIMIT_S)
        for partition in self.consumer.committed(self.consumer.assignment(), LIMIT_S):
            partition.offset = max(partition.offset, 0)
            self.consumer.seek(partition)
        return 0

    def write(self, value: str) -> None:
        self.producer.begin_transaction()
        self.producer.produce(self.sink, value.encode())
        self.producer.flush(LIMIT_S)

    def commit(self) -> None:
        self._call(self.producer.commit_transaction, LIMIT_S)

    def close(self) -> None:
        self.consumer.close()

    def _call(self, call: Callable[..., None], *args: Any) -> None:
        """Call again while the error is one that passes."""
        while True:
            try:
                call(*args)
            except confluent_kafka.KafkaException as failure:
                error = failure.args[0]
                if error.code() == confluent_kafka.KafkaError._FENCED:
                    raise Fenced from failure
                if not error.retriable():
                    raise
            else:
                return


class KafkaPythonProcessor:
    """On kafka-python."""

    def __init__(self, servers: str, source: str, sink: str, group: str) -> None:
        self.sink, self.group = sink, group
        self.consumer: Any = kafka.KafkaConsumer(
            source,
            bootstrap_servers=servers.split(","),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
        )
        keep_joins_in_flight(self.consumer._coordinator)
        self.producer: Any = kafka.KafkaProducer(
            bootstrap_servers=servers.split(","),
            transactional_id=group,
            transaction_timeout_ms=TIMEOUT_MS,
            acks="all",
            max_block_ms=LIMIT_S * 1000,
        )
        self.producer.init_transactions()

    def step(self, *, abort: bool = False) -> int:
        found = self.consumer.poll(timeout_ms=int(POLL_S * 1000))
        records = [record for of_partition in found.values() for record in of_partition]
        if not records:
            return 0
        self.producer.begin_transaction()
        for record in records:
            self.producer.send(self.sink, record.value + b"!")
        offsets = {
            partition: kafka.OffsetAndMetadata(of[-1].offset + 1, "", -1)
            for partition, of in found.items()
        }
        self.producer.send_offsets_to_transaction(offsets, self.group)
        if not abort:
            self.commit()
            return len(records)
        self.producer.abort_transaction()
        for partition in found:
            self.consumer.seek(partition, self.consumer.committed(partition) or 0)
        return 0

    def write(self, value: str) -> None:
        self.producer.begin_transaction()
        self.producer.send(self.sink, value.encode()).get(LIMIT_S)

    def commit(self) -> None:
        try:
            self.producer.commit_transaction()
        except (
            kafka.errors.ProducerFencedError,
            kafka.errors.InvalidProducerEpochError,
        ) as failure:
            raise Fenced from failure

    def close(self) -> None:
        self.consumer.close()
        self.producer.close(timeout=1)


class AiokafkaProcessor:
    """On aiokafka, its loop in a thread."""

    def __init__(self, servers: str, source: str, sink: str, group: str) -> None:
        self.sink, self.group = sink, group
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self._run(self._start(servers, source))

    async def _start(self, servers: str, source: str) -> None:
        self.consumer = aiokafka.AIOKafkaConsumer(
            source,
            bootstrap_servers=servers,
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
        )
        self.producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            transactional_id=self.group,
            transaction_timeout_ms=TIMEOUT_MS,
        )
        await self.consumer.start()
        await self.producer.start()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(LIMIT_S)

    def step(self, *, abort: bool = False) -> int:
        return int(self._run(self._step(abort)))

    async def _step(self, abort: bool) -> int:
        found = await self.consumer.getmany(timeout_ms=int(POLL_S * 1000))
        records = [record for of_partition in found.values() for record in of_partition]
        if not records:
            return 0
        await self.producer.begin_transaction()
        for record in records:
            await self.producer.send(self.sink, record.value + b"!")
        offsets = {partition: of[-1].offset + 1 for partition, of in found.items()}
        await self.producer.send_offsets_to_transaction(offsets, self.group)
        if not abort:
            await self.producer.commit_transaction()
            return len(records)
        await self.producer.abort_transaction()
        for partition in found:
            self.consumer.seek(partition, await self.consumer.committed(partition) or 0)
        return 0

    def write(self, value: str) -> None:
        async def begin() -> None:
            await self.producer.begin_transaction()
            await self.producer.send_and_wait(self.sink, value.encode())

        self._run(begin())

    def commit(self) -> None:
        try:
            self._run(self.producer.commit_transaction())
        except aiokafka.errors.ProducerFenced as failure:
            raise Fenced from failure

    def close(self) -> None:
        async def stop() -> None:
            await self.consumer.stop()
            await self.producer.stop()

        self._run(stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(LIMIT_S)
        self.loop.close()


PROCESSORS: dict[str, Make] = {
    "confluent-kafka": ConfluentProcessor,
    "kafka-python": KafkaPythonProcessor,
    "aiokafka": AiokafkaProcessor,
}
