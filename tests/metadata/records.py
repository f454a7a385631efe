"""Short ways to write records in these tests."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.protocol.records import (
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    VersionedRecord,
)


def uid(number: int) -> UUID:
    """An id that is not reserved."""
    return UUID(int=(number << 64) + 1000)


def feature(name: str, level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=level)


def version(level: int) -> FeatureLevelRecord:
    return feature("metadata.version", level)


def topic(name: str, number: int) -> TopicRecord:
    return TopicRecord(name=name, topic_id=uid(number))


def partition(number: int, index: int = 0, **given: Any) -> PartitionRecord:
    fields: dict[str, Any] = {
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    fields |= given
    return PartitionRecord(topic_id=uid(number), partition_id=index, **fields)


def broker(broker_id: int, epoch: int = 1, **given: Any) -> RegisterBrokerRecord:
    fields: dict[str, Any] = {"incarnation_id": uid(900 + broker_id), "rack": None} | given
    return RegisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch, **fields)


def batch(base_offset: int, *records: Any, epoch: int = 4, now_ms: int = 1000) -> RecordBatch:
    """A batch of records, each in its newest version."""
    versioned = [VersionedRecord(record, record.latest_version) for record in records]
    return metadata_batch(base_offset, epoch, now_ms, versioned)
