"""Transactions per second of one producer, with a record in each, beside librdkafka's mock cluster.

The records are replicated three times, and so is the transaction log; the mock replicates nothing.
While the markers of the last transaction are written, the next one gets CONCURRENT_TRANSACTIONS, as
from Kafka, and librdkafka waits for 20 ms then: the quickest transaction is one without that.
"""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka
import pytest

from tests.bench.test_listeners import LIMIT_S, MESSAGE, Servers
from tests.bench.test_listeners import kind as kind

pytestmark = pytest.mark.clients

TRANSACTIONS = 50


def test_transactions_per_second(benchmark: Any, kind: str) -> None:
    servers = Servers(kind)
    addresses = servers.start()
    servers.topic("orders", 3)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": addresses, "transactional.id": "bench", "linger.ms": 0}
    )
    producer.init_transactions(LIMIT_S)

    each_ms: list[float] = []

    def transact() -> None:
        for _ in range(TRANSACTIONS):
            began_s = time.perf_counter()
            producer.begin_transaction()
            producer.produce("orders", MESSAGE, partition=0)
            producer.commit_transaction(LIMIT_S)
            each_ms.append(1000 * (time.perf_counter() - began_s))

    benchmark.pedantic(transact, rounds=5, warmup_rounds=1)
    servers.stop()
    per_second = TRANSACTIONS / benchmark.stats.stats.min
    benchmark.extra_info["per_second"] = round(per_second)
    benchmark.extra_info["quickest_ms"] = round(min(each_ms), 1)
    assert per_second > 5
