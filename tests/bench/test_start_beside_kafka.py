"""The start of a cluster, beside the start of Apache Kafka's own cluster for tests, repeated.

Both are three controllers, three brokers and a topic with its full ISR, in processor time in one
run. Java has compiled what it needs in the first rounds, which do not count.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from minicluster import MiniCluster
from tests.bench.fixed_work import fixed_work
from tests.kafka.jars import missing
from tests.kafka.process import output_of

TEST_KIT = Path(__file__).parents[1] / "kafka" / "java" / "StartTestKit.java"
WARM_UP_ROUNDS, ROUNDS = 4, 5


def ours() -> float:
    """Processor seconds of one start."""
    begun = time.process_time()
    with MiniCluster(seed=1) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.wait_until(orders.fully_in_sync, within="20s")
        return time.process_time() - begun


def of_the_test_kit() -> list[float]:
    """Processor seconds of each start of KafkaClusterTestKit in one process."""
    lines = output_of(TEST_KIT, str(WARM_UP_ROUNDS + ROUNDS)).splitlines()
    rounds = [line.split() for line in lines if line.startswith("started ")]
    return [int(milliseconds) / 1_000 for _, milliseconds, *_ in rounds][WARM_UP_ROUNDS:]


@pytest.mark.kafka
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_a_start_beside_the_test_kit_of_apache_kafka(benchmark: Any) -> None:
    theirs = benchmark.pedantic(of_the_test_kit, rounds=1)
    assert len(theirs) == ROUNDS
    starts = [ours() for _ in range(WARM_UP_ROUNDS + 10 * ROUNDS)][WARM_UP_ROUNDS:]
    benchmark.extra_info.update(
        ours_s=round(median(starts), 4),
        kafka_s=round(median(theirs), 2),
        times_as_quick=round(median(theirs) / median(starts)),
        fixed_work_s=fixed_work(),
    )
    assert median(theirs) > median(starts)
