"""Members of groups, one thread each, with every client in one form."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

SESSION_MS = 30_000  # a client that the machine does not run for seconds stays a member
SHORT_SESSION_MS = 3_000  # of a member that is killed
POLL_S = 0.1

Run = Callable[..., None]
"""Reads a topic as a member of a group until a stop.

Bootstrap servers, topic, group, values, stop; the session of a classic group in milliseconds.
"""


COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
CONSUMER = {"group.protocol": "consumer"}
"""KIP-848: the coordinator has the time-outs and assigns."""


def confluent_member(
    servers: str,
    topic: str,
    group: str,
    seen: list[str],
    stop: threading.Event,
    session_ms: int = SESSION_MS,
    protocol: Mapping[str, object] = {},
) -> None:
    """One member on librdkafka."""
    classic = {"session.timeout.ms": session_ms, "heartbeat.interval.ms": 500}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **({} if protocol is CONSUMER else classic),
            **protocol,
        }
    )
    consumer.subscribe([topic])
    while not stop.is_set():
        message = consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            seen.append(message.value().decode())
            consumer.commit(message=message, asynchronous=False)
    consumer.close()


def kafka_python_member(
    servers: str,
    topic: str,
    group: str,
    seen: list[str],
    stop: threading.Event,
    session_ms: int = SESSION_MS,
    assignors: Sequence[type] = (RangePartitionAssignor,),
) -> None:
    """One member on kafka-python."""
    consumer: Any = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=servers.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=500,
        partition_assignment_strategy=assignors,
    )
    keep_joins_in_flight(consumer._coordinator)
    while not stop.is_set():
        for records in consumer.poll(timeout_ms=int(POLL_S * 1000)).values():
            seen.extend(record.value.decode() for record in records)
            consumer.commit()
    consumer.close()


def keep_joins_in_flight(coordinator: Any) -> None:
    """Let a poll complete the join that the poll before it began.

    kafka-python 3.0.12 takes new metadata for assigned as soon as the leader assigns. A poll whose
    time ends between JoinGroup and SyncGroup leaves a join that no later poll completes, with the
    heartbeats disabled: the member expires and owns nothing.
    """
    need_rejoin = coordinator.need_rejoin
    coordinator.need_rejoin = lambda: coordinator._join_task is not None or need_rejoin()


def aiokafka_member(
    servers: str,
    topic: str,
    group: str,
    seen: list[str],
    stop: threading.Event,
    session_ms: int = SESSION_MS,
) -> None:
    """One member on aiokafka."""

    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=500,
            partition_assignment_strategy=(AiokafkaRange,),
        )
        await consumer.start()
        try:
            while not stop.is_set():
                found = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
                for records in found.values():
                    seen.extend(record.value.decode() for record in records)
                if found:
                    await consumer.commit()
        finally:
            await consumer.stop()

    asyncio.run(run())


MEMBERS: dict[str, Run] = {
    "confluent-kafka": confluent_member,
    "confluent-kafka-cooperative": partial(confluent_member, protocol=COOPERATIVE),
    "confluent-kafka-consumer-protocol": partial(confluent_member, protocol=CONSUMER),
    "kafka-python": kafka_python_member,
    "kafka-python-cooperative": partial(
        kafka_python_member, assignors=(CooperativeStickyAssignor,)
    ),
    "aiokafka": aiokafka_member,
}


def main(name: str, servers: str, topic: str, group: str) -> None:
    """Read as one member in a process of its own, which prints what it reads until it is killed."""

    class Printed(list[str]):
        def append(self, value: str) -> None:
            print(value, flush=True)

        def extend(self, values: Iterable[str]) -> None:
            for value in values:
                self.append(value)

    MEMBERS[name](servers, topic, group, Printed(), threading.Event(), SHORT_SESSION_MS)


if __name__ == "__main__":
    main(*sys.argv[1:])
