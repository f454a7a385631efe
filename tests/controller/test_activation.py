"""The first records of a controller that becomes active, in a running controller."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.effects import Effect
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    VersionedRecord,
)
from minicluster.rules import Rules
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


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, Rules.KAFKA_3_9], ids=lambda r: r.name)
def test_a_log_without_a_version_is_bootstrapped_by_4_3_only(rules: Rules) -> None:
    cluster = successor(NoOpRecord(), rules=rules, metadata_version="3.9-IV0")
    bootstrapped = [type(BEGIN).__name__, "FeatureLevelRecord", type(END).__name__]
    assert written(cluster) == (bootstrapped if rules is Rules.KAFKA_4_3 else [])


def test_an_open_transaction_is_aborted() -> None:
    cluster = successor(version(14), BeginTransactionRecord(name="t"), NoOpRecord())
    assert next(iter(cluster.log.values())).record == AbortTransactionRecord(
        reason="Controller failover"
    )
    assert cluster.machine.is_active
    assert not cluster.machine.in_transaction


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
