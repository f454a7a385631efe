"""Many partitions: the cost of one, beside that of one of few and beside fixed work."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.play import what_if as played
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol.records import PartitionChangeRecord, VersionedRecord
from tests.actors.large_checkpoint import checkpoint_of
from tests.bench.fixed_work import fixed_work
from tests.metadata.records import partition, topic, uid

pytestmark = pytest.mark.benchmark(timer=time.process_time)
NODES = 7
LEFT_WITHIN = "60s"


def taken(work: Any) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def test_seven_nodes_that_share_folds_cost_little_more_than_one(benchmark: Any) -> None:
    """A third of 6,000 partitions changes; the six others compare the records alone."""
    image = apply_all(
        MetadataImage.EMPTY, [topic("t", 1), *(partition(1, n) for n in range(6_000))]
    )
    changes = (
        PartitionChangeRecord(topic_id=uid(1), partition_id=n, leader=2) for n in range(2_000)
    )
    records = tuple(VersionedRecord(change, 0) for change in changes)

    def fold(nodes: int) -> None:
        folds = SharedFolds()
        for _ in range(nodes):
            for run in folds.runs(image, records, 7_000):
                assert len(run.steps) == len(records)

    one = min(taken(lambda: fold(1)) for _ in range(5))
    many = min(taken(lambda: fold(NODES)) for _ in range(5))
    benchmark.pedantic(lambda: fold(NODES), rounds=1)
    benchmark.extra_info["ratio"] = round(many / one, 2)
    assert many / one < 2


def costs_of(partitions: int) -> tuple[float, float]:
    """Seconds for each partition: created and fetched; then a third of the leaders fenced."""
    cluster = MiniCluster(seed=1, online=False).start()

    def create() -> None:
        orders = cluster.create_topic("orders", partitions=partitions, replicas=3, min_isr=2)
        cluster.wait_until(orders.fully_in_sync, within=LEFT_WITHIN)
        cluster.run_for("10s")

    def fence() -> None:
        broker = cluster.node(1)
        cluster.kill(broker)
        cluster.wait_until(lambda: broker.is_fenced, within=LEFT_WITHIN)

    found = taken(create) / partitions, taken(fence) / partitions
    cluster.stop()
    return found


def test_one_of_many_is_created_and_fenced_at_the_cost_of_one_of_few(benchmark: Any) -> None:
    few = costs_of(1_000)
    many = few

    def measure() -> None:
        nonlocal many
        many = costs_of(4_000)

    benchmark.pedantic(measure, rounds=1)
    for name, small, large in zip(("created", "fenced"), few, many, strict=True):
        benchmark.extra_info[name] = [round(1e6 * small), round(1e6 * large)]
        assert large / small < 1.8, name


def test_a_what_if_of_10000_partitions_beside_fixed_work(benchmark: Any, tmp_path: Path) -> None:
    path = checkpoint_of(tmp_path, 10_000)
    fixed = median(fixed_work() for _ in range(5))

    def play() -> None:
        found = played.what_if(path, ["kill rack(3)"], seeds=[1], config={}, watch_ms=60_000)
        assert found.seeds[0].stages[1].all.most[0] > 3_000

    benchmark.pedantic(play, rounds=1)
    units = benchmark.stats.stats.median / fixed
    benchmark.extra_info["of_fixed_work"] = round(units, 1)
    assert units < 200
