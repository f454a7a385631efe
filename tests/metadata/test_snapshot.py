"""Snapshots: Kafka's order of sections, what a version cannot hold, and what must come back."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.metadata.errors import MetadataLost
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.snapshot import image_from_records, image_records
from minicluster.protocol.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    ProducerIdsRecord,
    RegisterControllerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from minicluster.rules import Rules
from tests.metadata.records import broker, feature, partition, topic, uid, version

ENTITY = (ClientQuotaRecord.EntityData(entity_type="user", entity_name="a"),)
ELR_ON = feature("eligible.leader.replicas.version", 1)
ELR_OFF = feature("eligible.leader.replicas.version", 0)
EVERYTHING: list[Any] = [
    DelegationTokenRecord(token_id="t", owner="User:a", renewers=("User:b",), max_timestamp=9),
    UserScramCredentialRecord(name="a", mechanism=1, salt=b"s", stored_key=b"k", iterations=4096),
    AccessControlEntryRecord(id=uid(1), principal="User:a", host="*"),
    ProducerIdsRecord(broker_id=3, broker_epoch=1, next_producer_id=4000),
    ClientQuotaRecord(entity=ENTITY, key="producer_byte_rate", value=2.5),
    ConfigRecord(resource_type=4, resource_name="", name="x", value="1"),
    topic("b", 2),
    topic("a", 1),
    partition(1, 1),
    partition(1, 0, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3,)),
    partition(2, directories=(uid(1), uid(2), uid(3))),
    RegisterControllerRecord(controller_id=101, incarnation_id=uid(101)),
    broker(2, log_dirs=(uid(5),), cordoned_log_dirs=()),
    broker(1, in_controlled_shutdown=True, rack="r"),
    feature("transaction.version", 2),
    ELR_ON,
    feature("group.version", 1),
    version(30),
]


def fold(*records: Any) -> MetadataImage:
    return apply_all(MetadataImage.EMPTY, records)


def kinds(image: MetadataImage, rules: Rules = Rules.KAFKA_4_3) -> list[str]:
    names = [type(v.record).__name__.removesuffix("Record") for v in image_records(image, rules)]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def test_sections_come_in_kafkas_order_and_rows_by_name() -> None:
    image = fold(*EVERYTHING)
    assert kinds(image) == [
        "FeatureLevel",
        "RegisterBroker",
        "RegisterController",
        "Topic",
        "Partition",
        "Topic",
        "Partition",
        "Config",
        "ClientQuota",
        "ProducerIds",
        "AccessControlEntry",
        "UserScramCredential",
        "DelegationToken",
    ]
    records: list[Any] = [versioned.record for versioned in image_records(image)]
    assert [r.name for r in records[:4]] == [
        "metadata.version",
        "eligible.leader.replicas.version",
        "group.version",
        "transaction.version",
    ]
    assert [r.name for r in records if type(r).__name__ == "TopicRecord"] == ["a", "b"]


def test_everything_comes_back() -> None:
    image = fold(*EVERYTHING)
    again = image_from_records(image_records(image), offset=77)
    assert again == image and again.digest() == image.digest()
    assert [b.register_offset for b in again.cluster.brokers.values()] == [77, 77]


def test_records_are_written_in_the_versions_of_the_metadata_version() -> None:
    for level, expected in ((30, (4, 2)), (23, (3, 2)), (17, (3, 1)), (8, (2, 0)), (7, (1, 0))):
        image = fold(version(level), broker(1), topic("a", 1), partition(1))
        versions = {type(v.record).__name__: v.version for v in image_records(image)}
        assert (versions["RegisterBrokerRecord"], versions["PartitionRecord"]) == expected


LOSSES: dict[str, tuple[int, Any]] = {
    "controlled shutdown": (6, broker(1, in_controlled_shutdown=True)),
    "migration state": (7, broker(1, is_migrating_zk_broker=True)),
    "cordoned log directories": (29, broker(1, cordoned_log_dirs=(uid(1),))),
    "the log directories": (16, broker(1, log_dirs=(uid(1),))),
    "controllers": (14, RegisterControllerRecord(controller_id=101)),
    "SCRAM": (10, UserScramCredentialRecord(name="a", mechanism=1)),
    "delegation tokens": (13, DelegationTokenRecord(token_id="t")),
}


@pytest.mark.parametrize("what", LOSSES)
def test_what_the_version_cannot_hold_is_a_loss_and_no_silence(what: str) -> None:
    level, record = LOSSES[what]
    with pytest.raises(MetadataLost, match=what):
        list(image_records(fold(version(level), record)))
    losses: list[str] = []
    list(image_records(fold(version(level), record), on_loss=losses.append))
    assert len(losses) == 1 and what in losses[0]
    assert list(image_records(fold(version(level + 1), record)))


def test_the_migration_state_is_written_by_3_9_where_the_version_has_it() -> None:
    old = Rules.KAFKA_3_9
    assert kinds(fold(version(8)), old) == ["FeatureLevel", "ZkMigrationState"]
    assert kinds(fold(version(7)), old) == ["FeatureLevel"]
    assert kinds(fold(version(8))) == ["FeatureLevel"]
    last = list(image_records(fold(version(8), feature("group.version", 1)), old))[-1]
    assert last.record == ZkMigrationStateRecord(zk_migration_state=0)


def test_elrs_that_outlived_their_feature_survive_a_snapshot_except_in_4_3_as_shipped() -> None:
    image = fold(
        version(30),
        ELR_ON,
        topic("a", 1),
        partition(1, 0, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3,)),
        ELR_OFF,
    )
    assert image_from_records(image_records(image)) == image
    shipped = image_from_records(image_records(image, Rules.KAFKA_4_3.as_shipped()))
    lost = shipped.topics.partition(uid(1), 0)
    assert lost is not None and (lost.elr, lost.last_known_elr) == ((), ())


def test_an_empty_image_is_no_records() -> None:
    assert list(image_records(MetadataImage.EMPTY)) == []
    assert image_from_records([]).is_empty
