"""The first records of a controller that becomes active, in a running controller."""

from __future__ import annotations

from typing import Any

from minicluster.effects import Effect
from minicluster.protocol.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    VersionedRecord,
)
from tests.controller.kit import Cluster

BEGIN, END = BeginTransactionRecord(name="Bootstrap records"), EndTransactionRecord()


def successor(*records: Any, **options: Any) -> Cluster:
    """A controller that has replayed a log and then becomes active."""
    cluster = Cluster(active=False, **options)
    versioned = [VersionedRecord(record, 0) for record in records]
    effects: list[Effect] = cluster.machine.on_records(1, versioned, 1 + len(records), 0)
    cluster.take(effects)
    cluster.end = 2 + len(records)
    cluster.take(cluster.machine.on_claim(2, cluster.end, 0))
    return cluster


def written(cluster: Cluster) -> list[str]:
    return [type(record.record).__name__ for record in cluster.log.values()]


def version(level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=level)


def test_below_metadata_transactions_an_open_one_ends_the_leadership() -> None:
    """Kafka: "Detected in-progress transaction ... Cannot continue."."""
    cluster = successor(version(12), BeginTransactionRecord(name="t"), NoOpRecord())
    assert written(cluster) == []
    assert cluster.resigned
    assert not cluster.machine.is_active


def test_a_partial_bootstrap_that_the_version_cannot_abort_ends_the_leadership() -> None:
    cluster = successor(BeginTransactionRecord(name="t"), metadata_version="3.6-IV0")
    assert written(cluster) == []
    assert cluster.resigned


def test_a_partial_bootstrap_is_aborted_and_written_once_more() -> None:
    cluster = successor(BEGIN)
    assert written(cluster) == [
        "AbortTransactionRecord",
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "EndTransactionRecord",
    ]
