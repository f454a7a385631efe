"""Metadata records for what ZooKeeper's znodes hold: one form of a cluster's state for all modes.

Brokers in ZooKeeper mode, tests and the rules read an image; these records make it, though no log
of Kafka's ever had them so. A topic without an id has one made of its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any
from uuid import UUID

from minicluster.metadata.image.configs import TOPIC
from minicluster.metadata.metadata_version import FEATURE_NAME, MetadataVersion
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)

LEVEL = "3.3-IV3"
"""A level at which no record has directories or ELR, which ZooKeeper never had."""


def id_of_name(topic: str) -> UUID:
    """The id made for a topic below IBP 2.8, which has none."""
    return UUID(bytes=blake2b(topic.encode(), digest_size=16).digest())


def first_records() -> list[VersionedRecord]:
    """The level of the records."""
    level = MetadataVersion.parse(LEVEL).level
    return [VersionedRecord(FeatureLevelRecord(name=FEATURE_NAME, feature_level=level), 0)]


def broker_record(
    broker: int, epoch: int, incarnation: UUID, endpoints: Sequence[tuple[str, str, int]]
) -> VersionedRecord:
    """A live broker: listeners with host and port."""
    record = RegisterBrokerRecord(
        broker_id=broker,
        incarnation_id=incarnation,
        broker_epoch=epoch,
        end_points=tuple(
            RegisterBrokerRecord.BrokerEndpoint(name=name, host=host, port=port)
            for name, host, port in endpoints
        ),
        rack=None,
        fenced=False,
    )
    return VersionedRecord(record, 1)


def dead_broker_record(broker: int, epoch: int) -> VersionedRecord:
    """A broker whose session has ended."""
    return VersionedRecord(
        BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=epoch, fenced=1), 1
    )


def no_broker_record(broker: int, epoch: int) -> VersionedRecord:
    """A broker that the metadata of a broker has no more."""
    return VersionedRecord(UnregisterBrokerRecord(broker_id=broker, broker_epoch=epoch), 0)


def topic_record(topic: str, topic_id: UUID) -> VersionedRecord:
    """A topic."""
    return VersionedRecord(TopicRecord(name=topic, topic_id=topic_id), 0)


def no_topic_record(topic_id: UUID) -> VersionedRecord:
    """A topic that is gone."""
    return VersionedRecord(RemoveTopicRecord(topic_id=topic_id), 0)


def partition_record(topic_id: UUID, partition: int, **values: Any) -> VersionedRecord:
    """A partition as a whole."""
    return VersionedRecord(PartitionRecord(partition_id=partition, topic_id=topic_id, **values), 0)


def config_records(
    name_of: str,
    before: Mapping[str, str | None],
    after: Mapping[str, str],
    resource_type: int = TOPIC,
) -> list[VersionedRecord]:
    """The configs of a topic, or of a broker, that have changed."""
    changed = {name: after.get(name) for name in sorted(before.keys() | after.keys())}
    return [
        VersionedRecord(
            ConfigRecord(
                resource_type=resource_type, resource_name=name_of, name=name, value=value
            ),
            0,
        )
        for name, value in changed.items()
        if before.get(name) != value
    ]
