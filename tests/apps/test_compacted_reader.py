"""A store of schemas on a compacted topic, as Confluent's and Karapace's registries keep theirs.

Every instance reads the whole topic into a map; the one that registers writes a record and waits
until its own reader has seen it. An instance that starts later sees the same map, though old
records have been compacted and brokers have died.
"""

from __future__ import annotations

import json
import time
from types import TracebackType

import confluent_kafka
import pytest

from minicluster import MiniCluster
from tests.apps.records import read_committed
from tests.kafka.process import wait_for

pytestmark = [pytest.mark.apps, pytest.mark.slow, pytest.mark.clients]

TOPIC = "_schemas"
WITHIN_S = 120.0
SUBJECTS = 5
ROUNDS = 40


class Registry:
    """One instance: a map of the topic's records, and a producer."""

    def __init__(self, servers: str) -> None:
        self.schemas: dict[str, str] = {}
        self.read_offset = -1  # the latest offset that is in the map
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True}
        )
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])

    def register(self, subject: str, version: int, schema: str | None) -> None:
        """Write a schema, or delete one, and wait until the map has it."""
        key = json.dumps({"subject": subject, "version": version})
        written: list[int] = []

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            assert error is None, error
            written.append(message.offset())

        self._producer.produce(TOPIC, key=key, value=schema, on_delivery=delivered)
        assert self._producer.flush(WITHIN_S) == 0
        self.read_up_to(written[0])

    def catch_up(self) -> None:
        """Read all that is there, as an instance does at its start."""
        end = self._consumer.get_watermark_offsets(
            confluent_kafka.TopicPartition(TOPIC, 0), timeout=WITHIN_S
        )[1]
        self.register("start", 0, "{}")
        assert self.read_offset >= end

    def read_up_to(self, offset: int) -> None:
        ends = time.monotonic() + WITHIN_S
        while self.read_offset < offset:
            assert time.monotonic() < ends, f"{TOPIC}: read up to {self.read_offset} of {offset}"
            message = self._consumer.poll(1.0)
            if message is None or message.error() is not None:
                continue
            key, value = message.key().decode(), message.value()
            if value is None:
                self.schemas.pop(key, None)
            else:
                self.schemas[key] = value.decode()
            self.read_offset = message.offset()

    def __enter__(self) -> Registry:
        self.catch_up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._consumer.close()


def stored(servers: str) -> int:
    """How many records a new reader of the whole topic gets."""
    return len(read_committed(servers, TOPIC, 1, 1))


def test_instances_agree_after_compaction_and_a_death() -> None:
    config = {"log.cleaner.backoff.ms": 200, "log.cleaner.min.compaction.lag.ms": 0}
    with MiniCluster(brokers=3, controllers=3, seed=24, listeners=True, config=config) as cluster:
        schemas = cluster.create_topic(
            TOPIC,
            replicas=3,
            min_isr=2,
            configs={
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": 0.01,
                "segment.bytes": 1_048_576,
                "segment.ms": 500,
                "delete.retention.ms": 100,
            },
        )
        with Registry(cluster.bootstrap_servers) as first:
            for number in range(ROUNDS):
                for subject in range(SUBJECTS):
                    first.register(f"subject-{subject}", 1, json.dumps({"edition": number}))
                if number == ROUNDS // 2:
                    cluster.bounce(schemas[0].leader, down="4s")
            first.register("subject-0", 1, None)
            servers, written = cluster.bootstrap_servers, ROUNDS * SUBJECTS

            def is_compacted() -> bool:
                # An active segment is never compacted, and only an append begins the next one.
                first.register("start", 0, "{}")
                return stored(servers) < written / 2

            wait_for(is_compacted, WITHIN_S, lambda: f"no compaction: {stored(servers)} records")
            with Registry(cluster.bootstrap_servers) as second:
                first.read_up_to(second.read_offset)
                assert second.schemas == first.schemas
                editions = {
                    json.loads(key)["subject"]: value for key, value in second.schemas.items()
                }
                last = json.dumps({"edition": ROUNDS - 1})
                assert editions == {
                    "start": "{}",
                    **{f"subject-{number}": last for number in range(1, SUBJECTS)},
                }
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()
