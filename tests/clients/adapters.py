"""Three clients of Kafka behind one protocol, so that each story is written once for all."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol

import aiokafka
import aiokafka.admin
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.admin

LIMIT_S = 90.0
LIMIT_MS = 90_000
POLL_S = 0.05
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class ClientUnderTest(Protocol):
    """A client library: it produces to partition 0, reads it from the start, and administers."""

    def produce(
        self,
        topic: str,
        values: Sequence[str],
        *,
        codec: str = "none",
        acks: int | str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """The offsets at which the values were acknowledged, in their order; -1 where unknown."""

    def consume(self, topic: str, count: int) -> list[str]:
        """The first values of the partition."""

    def write(self, topic: str, written: list[str], stop: threading.Event) -> None:
        """Write with acks=all and idempotence, one record after the other, until the stop.

        Each value is added to ``written`` once it is acknowledged.
        """

    def follow(self, topic: str, seen: list[str], stop: threading.Event) -> None:
        """Add each value of the partition to ``seen`` until the stop."""

    def create_topic(self, name: str, partitions: int, replicas: int) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def add_partitions(self, name: str, total: int) -> None: ...

    def topics(self) -> set[str]: ...

    def topic_config(self, name: str, config: str) -> str: ...

    def set_topic_config(self, name: str, config: str, value: str) -> None: ...

    def cluster_id(self) -> str: ...


def _values() -> Iterator[str]:
    return (f"order {n}" for n in itertools.count())


class ConfluentKafka:
    """confluent-kafka: librdkafka."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.common = {
            "bootstrap.servers": bootstrap_servers,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "topic.metadata.refresh.fast.interval.ms": 20,
        }
        self.admin = confluent_kafka.admin.AdminClient(self.common)

    def produce(
        self,
        topic: str,
        values: Sequence[str],
        *,
        codec: str = "none",
        acks: int | str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = confluent_kafka.Producer(
            {
                **self.common,
                "acks": acks,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "linger.ms": 1,
            }
        )
        offsets: list[int] = []

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            assert error is None, error
            offsets.append(-1 if message.offset() is None else message.offset())

        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=delivered)
        assert producer.flush(LIMIT_S) == 0
        return offsets

    def consume(self, topic: str, count: int) -> list[str]:
        consumer = confluent_kafka.Consumer(
            {**self.common, "group.id": "unused", "enable.auto.commit": False}
        )
        try:
            start = confluent_kafka.OFFSET_BEGINNING
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, start)])
            values = []
            while len(values) < count:
                message = consumer.poll(LIMIT_S)
                assert message is not None, f"{len(values)} of {count} records"
                if message.error() is None:
                    values.append(message.value().decode())
            return values
        finally:
            consumer.close()

    def write(self, topic: str, written: list[str], stop: threading.Event) -> None:
        producer = confluent_kafka.Producer({**self.common, "enable.idempotence": True})
        errors: list[object] = []
        for value in _values():
            producer.produce(
                topic, value, partition=0, on_delivery=lambda error, _: errors.append(error)
            )
            assert producer.flush(LIMIT_S) == 0, f"no response for {value}"
            assert errors.pop() is None
            written.append(value)
            if stop.is_set():
                return

    def follow(self, topic: str, seen: list[str], stop: threading.Event) -> None:
        consumer = confluent_kafka.Consumer(
            {**self.common, "group.id": "unused", "enable.auto.commit": False}
        )
        try:
            start = confluent_kafka.OFFSET_BEGINNING
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, start)])
            while not stop.is_set():
                message = consumer.poll(POLL_S)
                if message is not None and message.error() is None:
                    seen.append(message.value().decode())
        finally:
            consumer.close()

    def create_topic(self, name: str, partitions: int, replicas: int) -> None:
        topic = confluent_kafka.admin.NewTopic(name, partitions, replicas)
        self.admin.create_topics([topic])[name].result(LIMIT_S)

    def delete_topic(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(LIMIT_S)

    def add_partitions(self, name: str, total: int) -> None:
        more = confluent_kafka.admin.NewPartitions(name, total)
        self.admin.create_partitions([more])[name].result(LIMIT_S)

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=LIMIT_S).topics)

    def topic_config(self, name: str, config: str) -> str:
        resource = confluent_kafka.admin.ConfigResource("topic", name)
        entries = self.admin.describe_configs([resource])[resource].result(LIMIT_S)
        return str(entries[config].value)

    def set_topic_config(self, name: str, config: str, value: str) -> None:
        entry = confluent_kafka.admin.ConfigEntry(
            config,
            value,
            incremental_operation=confluent_kafka.admin.AlterConfigOpType.SET,
        )
        resource = confluent_kafka.admin.ConfigResource("topic", name, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(LIMIT_S)

    def cluster_id(self) -> str:
        return str(self.admin.describe_cluster().result(LIMIT_S).cluster_id)


class KafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.common: dict[str, Any] = {
            "bootstrap_servers": bootstrap_servers,
            "reconnect_backoff_ms": 10,
            "reconnect_backoff_max_ms": 100,
            "retry_backoff_ms": 20,
        }

    def produce(
        self,
        topic: str,
        values: Sequence[str],
        *,
        codec: str = "none",
        acks: int | str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        producer = kafka.KafkaProducer(
            **self.common,
            acks=acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=1,
        )
        try:
            sent = [producer.send(topic, value.encode(), partition=0) for value in values]
            return [future.get(LIMIT_S).offset for future in sent]
        finally:
            producer.close(LIMIT_S)

    def consume(self, topic: str, count: int) -> list[str]:
        consumer = kafka.KafkaConsumer(
            **self.common, enable_auto_commit=False, consumer_timeout_ms=LIMIT_MS
        )
        try:
            partition = kafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            return [next(consumer).value.decode() for _ in range(count)]
        finally:
            consumer.close()

    def write(self, topic: str, written: list[str], stop: threading.Event) -> None:
        producer = kafka.KafkaProducer(**self.common, acks="all", enable_idempotence=True)
        try:
            for value in _values():
                producer.send(topic, value.encode(), partition=0).get(LIMIT_S)
                written.append(value)
                if stop.is_set():
                    return
        finally:
            producer.close(LIMIT_S)

    def follow(self, topic: str, seen: list[str], stop: threading.Event) -> None:
        consumer = kafka.KafkaConsumer(**self.common, enable_auto_commit=False)
        try:
            partition = kafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            while not stop.is_set():
                for records in consumer.poll(timeout_ms=int(1000 * POLL_S)).values():
                    seen.extend(record.value.decode() for record in records)
        finally:
            consumer.close()

    def create_topic(self, name: str, partitions: int, replicas: int) -> None:
        topic = kafka.admin.NewTopic(name, partitions, replicas)
        self._with_admin(lambda admin: admin.create_topics([topic]))

    def delete_topic(self, name: str) -> None:
        self._with_admin(lambda admin: admin.delete_topics([name]))

    def add_partitions(self, name: str, total: int) -> None:
        more = {name: kafka.admin.NewPartitions(total)}
        self._with_admin(lambda admin: admin.create_partitions(more))

    def topics(self) -> set[str]:
        return set(self._with_admin(lambda admin: admin.list_topics()))

    def topic_config(self, name: str, config: str) -> str:
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, name)
        found = self._with_admin(
            lambda admin: admin.describe_configs([resource], config_filter="all")
        )
        return str(found["topic"][name][config]["value"])

    def set_topic_config(self, name: str, config: str, value: str) -> None:
        resource = kafka.admin.ConfigResource(
            kafka.admin.ConfigResourceType.TOPIC, name, {config: value}
        )
        self._with_admin(lambda admin: admin.alter_configs([resource]))

    def cluster_id(self) -> str:
        return str(self._with_admin(lambda admin: admin.describe_cluster())["cluster_id"])

    def _with_admin(self, call: Callable[[kafka.admin.KafkaAdminClient], Any]) -> Any:
        admin = kafka.admin.KafkaAdminClient(**self.common)
        try:
            return call(admin)
        finally:
            admin.close()


class Aiokafka:
    """aiokafka, each call in an event loop of its own."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.common: dict[str, Any] = {
            "bootstrap_servers": bootstrap_servers,
            "retry_backoff_ms": 20,
        }

    def produce(
        self,
        topic: str,
        values: Sequence[str],
        *,
        codec: str = "none",
        acks: int | str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        async def produced() -> list[int]:
            producer = aiokafka.AIOKafkaProducer(
                **self.common,
                acks=acks,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                linger_ms=1,
            )
            await producer.start()
            try:
                sent = [await producer.send(topic, v.encode(), partition=0) for v in values]
                done = await asyncio.gather(*sent)
                return [-1 if each is None else each.offset for each in done]
            finally:
                await producer.stop()

        return _run(produced())

    def consume(self, topic: str, count: int) -> list[str]:
        async def consumed() -> list[str]:
            consumer = aiokafka.AIOKafkaConsumer(**self.common, enable_auto_commit=False)
            await consumer.start()
            try:
                partition = aiokafka.TopicPartition(topic, 0)
                consumer.assign([partition])
                await consumer.seek_to_beginning(partition)
                return [(await consumer.getone()).value.decode() for _ in range(count)]
            finally:
                await consumer.stop()

        return _run(consumed())

    def write(self, topic: str, written: list[str], stop: threading.Event) -> None:
        async def write() -> None:
            producer = aiokafka.AIOKafkaProducer(**self.common, enable_idempotence=True)
            await producer.start()
            try:
                for value in _values():
                    sent = producer.send_and_wait(topic, value.encode(), partition=0)
                    await asyncio.wait_for(sent, LIMIT_S)
                    written.append(value)
                    if stop.is_set():
                        return
            finally:
                await producer.stop()

        asyncio.run(write())

    def follow(self, topic: str, seen: list[str], stop: threading.Event) -> None:
        async def follow() -> None:
            consumer = aiokafka.AIOKafkaConsumer(**self.common, enable_auto_commit=False)
            await consumer.start()
            try:
                partition = aiokafka.TopicPartition(topic, 0)
                consumer.assign([partition])
                await consumer.seek_to_beginning(partition)
                while not stop.is_set():
                    found = await consumer.getmany(timeout_ms=int(1000 * POLL_S))
                    for records in found.values():
                        seen.extend(record.value.decode() for record in records)
            finally:
                await consumer.stop()

        asyncio.run(follow())

    def create_topic(self, name: str, partitions: int, replicas: int) -> None:
        topic = aiokafka.admin.NewTopic(name, partitions, replicas)
        self._with_admin(lambda admin: admin.create_topics([topic]))

    def delete_topic(self, name: str) -> None:
        self._with_admin(lambda admin: admin.delete_topics([name]))

    def add_partitions(self, name: str, total: int) -> None:
        more = {name: aiokafka.admin.NewPartitions(total)}
        self._with_admin(lambda admin: admin.create_partitions(more))

    def topics(self) -> set[str]:
        return set(self._with_admin(lambda admin: admin.list_topics()))

    def topic_config(self, name: str, config: str) -> str:
        kind = aiokafka.admin.config_resource.ConfigResourceType.TOPIC
        resource = aiokafka.admin.config_resource.ConfigResource(kind, name)
        [response] = self._with_admin(lambda admin: admin.describe_configs([resource]))
        [(_, _, _, _, entries)] = response.resources
        [value] = [entry[1] for entry in entries if entry[0] == config]
        return str(value)

    def set_topic_config(self, name: str, config: str, value: str) -> None:
        kind = aiokafka.admin.config_resource.ConfigResourceType.TOPIC
        resource = aiokafka.admin.config_resource.ConfigResource(kind, name, {config: value})
        self._with_admin(lambda admin: admin.alter_configs([resource]))

    def cluster_id(self) -> str:
        return str(self._with_admin(lambda admin: admin.describe_cluster())["cluster_id"])

    def _with_admin(
        self, call: Callable[[aiokafka.admin.AIOKafkaAdminClient], Coroutine[Any, Any, Any]]
    ) -> Any:
        async def called() -> Any:
            admin = aiokafka.admin.AIOKafkaAdminClient(**self.common)
            await admin.start()
            try:
                return await call(admin)
            finally:
                await admin.close()

        return _run(called())


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, LIMIT_S))


ADAPTERS: dict[str, Callable[[str], ClientUnderTest]] = {
    "confluent-kafka": ConfluentKafka,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
}
