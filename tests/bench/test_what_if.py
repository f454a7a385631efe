"""A what-if costs the same for each partition, however many there are; nodes share folds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from minicluster.actors.play import what_if as played
from minicluster.log.checkpoint import Snapshot, checkpoint_name, encode_snapshot
from minicluster.protocol import records as r

pytestmark = [pytest.mark.slow, pytest.mark.benchmark(timer=time.process_time)]
BROKERS, OF_TOPIC = 9, 100
END, EPOCH, AT_MS = 500_000, 3, 1_700_000_000_000


def directory(broker: int) -> UUID:
    return UUID(int=1_000 + broker)


def checkpoint_of(folder: Path, partitions: int) -> Path:
    """A checkpoint of nine unfenced brokers in three racks, and topics of 100 partitions each."""
    level = r.FeatureLevelRecord(name="metadata.version", feature_level=27)
    records = [r.VersionedRecord(level, 0)]
    feature = r.RegisterBrokerRecord.BrokerFeature
    for broker in range(BROKERS):
        registration = r.RegisterBrokerRecord(
            broker_id=broker, incarnation_id=UUID(int=100 + broker), broker_epoch=1_000 + broker,
            features=(feature(name=level.name, min_supported_version=7, max_supported_version=30),),
            rack=f"r{broker % 3}", fenced=False, log_dirs=(directory(broker),),
        )  # fmt: skip
        records.append(r.VersionedRecord(registration, 3))
    for topic in range(partitions // OF_TOPIC):
        topic_id = UUID(int=10_000 + topic)
        records.append(r.VersionedRecord(r.TopicRecord(name=f"t{topic}", topic_id=topic_id), 0))
        for index in range(OF_TOPIC):
            replicas = tuple((topic + index + n) % BROKERS for n in range(3))
            partition = r.PartitionRecord(
                partition_id=index, topic_id=topic_id, replicas=replicas, isr=replicas,
                leader=replicas[0], leader_epoch=EPOCH, partition_epoch=8,
                directories=tuple(map(directory, replicas)),
            )  # fmt: skip
            records.append(r.VersionedRecord(partition, 1))
    snapshot = Snapshot(records=tuple(records), last_contained_log_timestamp=AT_MS)
    path = folder / checkpoint_name((END, EPOCH))
    path.write_bytes(encode_snapshot(snapshot, epoch=EPOCH, timestamp_ms=AT_MS))
    return path


def cost(folder: Path, partitions: int) -> float:
    """Seconds of the processor for each partition, of which a third loses a replica."""
    folder.mkdir()
    path, begun = checkpoint_of(folder, partitions), time.process_time()
    found = played.what_if(path, ["kill rack(3)"], seeds=[1], config={}, watch_ms=15_000)
    assert found.seeds[0].failure is None
    assert found.seeds[0].stages[1].all.most[0] > partitions // 4
    return (time.process_time() - begun) / partitions


def test_a_partition_of_many_costs_what_one_of_few_does(benchmark: Any, tmp_path: Path) -> None:
    few, many = cost(tmp_path / "few", 1_000), 0.0

    def measure() -> None:
        nonlocal many
        many = cost(tmp_path / "many", 4_000)

    benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["microseconds"] = [round(1e6 * one) for one in (few, many)]
    benchmark.extra_info["ratio"] = round(many / few, 2)
    assert many / few < 1.5
