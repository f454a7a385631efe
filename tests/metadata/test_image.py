"""The fold of single records: what each does, and which guards hold."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.cluster import BrokerRegistration, Endpoint, FeatureRange
from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.metadata.image.metadata_image import (
    MetadataImage,
    apply,
    apply_all,
)
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol.records import (
    RECORD_CLASSES,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FenceBrokerRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from tests.metadata.records import broker, feature, partition, topic, uid, version

FENCE, UNFENCE = 1, -1


def fold(*records: Any) -> MetadataImage:
    return apply_all(MetadataImage.EMPTY, records, base_offset=100)


def the_broker(image: MetadataImage, broker_id: int = 1) -> BrokerRegistration:
    found = image.cluster.broker(broker_id)
    assert found is not None
    return found


def the_partition(image: MetadataImage, number: int, index: int = 0) -> PartitionRegistration:
    found = image.topics.partition(uid(number), index)
    assert found is not None
    return found


# --- features ---------------------------------------------------------------------------------


def test_features_rise_fall_and_vanish_at_level_zero() -> None:
    image = fold(version(30), feature("group.version", 1), feature("share.version", 1))
    assert image.metadata_version is MetadataVersion.V4_3_IV0
    image = apply(image, feature("group.version", 0))
    assert image.features.finalized() == {"metadata.version": 30, "share.version": 1}
    assert image.features.level("group.version") == 0


def test_the_elr_feature_is_what_turns_elr_on() -> None:
    assert not fold(version(30)).features.elr_enabled
    assert fold(version(30), feature("eligible.leader.replicas.version", 1)).features.elr_enabled


def test_kraft_version_and_the_migration_state_are_not_the_images_business() -> None:
    image = fold(version(30))
    assert apply(image, feature("kraft.version", 1)) is image
    assert apply(image, ZkMigrationStateRecord(zk_migration_state=0)) is image


def test_an_unset_metadata_version_is_assumed_only_on_request() -> None:
    assert MetadataImage.EMPTY.metadata_version.level == 1
    with pytest.raises(ReplayError):
        MetadataImage.EMPTY.features.require_metadata_version()


# --- brokers and controllers ------------------------------------------------------------------


def test_a_registration_keeps_its_fields_and_its_offset() -> None:
    record = broker(
        1,
        epoch=7,
        rack="r1",
        log_dirs=(uid(2), uid(1)),
        end_points=(
            RegisterBrokerRecord.BrokerEndpoint(name="B", host="h", port=2, security_protocol=1),
            RegisterBrokerRecord.BrokerEndpoint(name="A", host="h", port=1, security_protocol=0),
        ),
        features=(
            RegisterBrokerRecord.BrokerFeature(
                name="metadata.version", min_supported_version=7, max_supported_version=31
            ),
        ),
    )
    registered = the_broker(fold(record))
    assert (registered.epoch, registered.fenced, registered.register_offset) == (7, True, 100)
    assert registered.log_dirs == (uid(1), uid(2))
    assert registered.endpoints[0] == Endpoint(name="A", host="h", port=1, security_protocol=0)
    assert registered.features == (
        FeatureRange(name="metadata.version", min_supported_version=7, max_supported_version=31),
    )


def test_registering_again_replaces_everything() -> None:
    image = fold(broker(1, in_controlled_shutdown=True, fenced=False, log_dirs=(uid(1),)))
    again = the_broker(apply(image, broker(1, epoch=9, log_dirs=(uid(3),)), offset=200))
    assert again.fenced and not again.in_controlled_shutdown
    assert (again.epoch, again.log_dirs, again.register_offset) == (9, (uid(3),), 200)


def test_fencing_and_unfencing_keep_the_shutdown_bit() -> None:
    image = fold(
        broker(1),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=UNFENCE),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, in_controlled_shutdown=1),
    )
    assert not image.cluster.is_active(1) and not the_broker(image).fenced
    image = apply(image, FenceBrokerRecord(id=1, epoch=1))
    assert the_broker(image).fenced
    image = apply(image, UnfenceBrokerRecord(id=1, epoch=1))
    assert not the_broker(image).fenced and the_broker(image).in_controlled_shutdown


def test_a_change_replaces_directories_but_an_empty_list_changes_none() -> None:
    image = fold(broker(1, log_dirs=(uid(1), uid(2))))
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, log_dirs=(uid(2),))
    image = apply(image, change)
    assert the_broker(image).log_dirs == (uid(2),)
    image = apply(image, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1))
    assert the_broker(image).log_dirs == (uid(2),)


def test_cordoned_directories_are_unknown_until_reported_and_may_be_none() -> None:
    image = fold(broker(1, log_dirs=(uid(1),)))
    assert the_broker(image).cordoned_log_dirs is None
    assert the_broker(image).has_uncordoned_log_dirs
    cordon = BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=1, cordoned_log_dirs=(uid(1),)
    )
    image = apply(image, cordon)
    assert not the_broker(image).has_uncordoned_log_dirs
    free = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, cordoned_log_dirs=())
    image = apply(image, free)
    assert the_broker(image).cordoned_log_dirs == ()
    assert the_broker(image).has_uncordoned_log_dirs


def test_an_unregistered_broker_is_gone() -> None:
    image = fold(broker(1), UnregisterBrokerRecord(broker_id=1, broker_epoch=1))
    assert image == MetadataImage.EMPTY and not image.cluster.is_active(1)


def test_a_controller_registers_and_replaces_itself() -> None:
    image = fold(
        RegisterControllerRecord(controller_id=101, incarnation_id=uid(1)),
        RegisterControllerRecord(controller_id=101, incarnation_id=uid(2)),
    )
    assert [c.incarnation_id for c in image.cluster.controllers.values()] == [uid(2)]


# --- topics -----------------------------------------------------------------------------------


def test_topics_are_found_by_id_and_by_name() -> None:
    image = fold(topic("b", 1), topic("a", 2), partition(1, 1), partition(1, 0))
    assert [t.name for t in image.topics] == ["a", "b"]
    named = image.topics.named("b")
    assert named is not None and named is image.topics.get(uid(1))
    assert [index for index, _ in named.items()] == [0, 1]
    assert [(t.name, index) for t, index, _ in image.topics.partitions()] == [("b", 0), ("b", 1)]


def test_a_removed_topic_takes_its_configs_along_and_leaves_its_name() -> None:
    config = ConfigRecord(resource_type=TOPIC, resource_name="a", name="x", value="1")
    other = ConfigRecord(resource_type=BROKER, resource_name="a", name="x", value="1")
    image = fold(topic("a", 1), partition(1), config, other, RemoveTopicRecord(topic_id=uid(1)))
    assert len(image.topics) == 0 and image.topics.named("a") is None
    assert image.configs.resources() == [(BROKER, "a")]
    again = apply(image, topic("a", 2)).topics.named("a")
    assert again is not None and again.id == uid(2)


def test_a_partition_record_overwrites_epochs_and_all() -> None:
    image = fold(
        topic("a", 1),
        partition(1),
        PartitionChangeRecord(topic_id=uid(1), partition_id=0, leader=2),
        partition(1, leader=3, leader_epoch=0, partition_epoch=5),
    )
    now = the_partition(image, 1)
    assert (now.leader, now.leader_epoch, now.partition_epoch) == (3, 0, 5)


ELR = {"isr": (1,), "eligible_leader_replicas": (2,), "last_known_elr": (3,)}


def test_clearing_elrs_costs_a_partition_epoch_where_there_was_one() -> None:
    start = fold(
        topic("a", 1),
        partition(1, 0, **ELR),
        partition(1, 1),
        topic("b", 2),
        partition(2, 0, isr=(1,), last_known_elr=(3,)),
    )
    one = apply(start, ClearElrRecord(topic_name="a"))
    cleared = the_partition(one, 1)
    assert (cleared.elr, cleared.last_known_elr) == ((), ())
    assert (cleared.partition_epoch, cleared.leader_epoch, cleared.leader) == (1, 0, 1)
    assert the_partition(one, 1, 1) is the_partition(start, 1, 1)
    assert the_partition(one, 2) is the_partition(start, 2)
    everything = apply(start, ClearElrRecord(topic_name=""))
    assert the_partition(everything, 2).last_known_elr == ()
    assert apply(everything, ClearElrRecord(topic_name="")) is everything


# --- the rest ---------------------------------------------------------------------------------


def test_configs_are_set_and_unset_and_resources_without_any_are_gone() -> None:
    def config(name: str, value: str | None, kind: int = BROKER) -> ConfigRecord:
        return ConfigRecord(resource_type=kind, resource_name="1", name=name, value=value)

    image = fold(config("b", "2"), config("a", "1"), config("b", "3"))
    assert image.configs.of(BROKER, "1") == {"a": "1", "b": "3"}
    image = apply_all(image, [config("a", None), config("b", None), config("c", None)])
    assert image == MetadataImage.EMPTY
    assert apply(image, config("message.format.version", "2.8", TOPIC)) is image


def test_quotas_belong_to_entities_whatever_the_order_of_their_parts() -> None:
    user = ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)
    client = ClientQuotaRecord.EntityData(entity_type="client-id", entity_name="app")
    image = fold(
        ClientQuotaRecord(entity=(user, client), key="producer_byte_rate", value=1.5),
        ClientQuotaRecord(entity=(client, user), key="request_percentage", value=50.0),
    )
    entity = (("client-id", "app"), ("user", None))
    assert image.client_quotas.table.group(entity) == {
        "producer_byte_rate": 1.5,
        "request_percentage": 50.0,
    }
    removals = [
        ClientQuotaRecord(entity=(client, user), key=key, remove=True)
        for key in ("request_percentage", "producer_byte_rate")
    ]
    assert apply_all(image, removals) == MetadataImage.EMPTY


def test_producer_ids_go_on_from_the_last_block() -> None:
    image = fold(ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=1000))
    assert image.producer_ids.next_producer_id == 1000
    other = fold(ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=1000))
    assert image.digest() == other.digest()


def test_acls_credentials_and_tokens_come_and_go() -> None:
    image = fold(
        AccessControlEntryRecord(id=uid(1), principal="User:a"),
        UserScramCredentialRecord(name="a", mechanism=1, salt=b"s", iterations=4096),
        DelegationTokenRecord(token_id="t", owner="User:a", renewers=("User:b",)),
        DelegationTokenRecord(token_id="t", owner="User:a", expiration_timestamp=9),
    )
    assert image.acls[uid(1)].principal == "User:a"
    assert image.scram[(1, "a")].iterations == 4096
    assert image.delegation_tokens["t"].expiration_timestamp == 9
    assert (
        apply_all(
            image,
            [
                RemoveAccessControlEntryRecord(id=uid(1)),
                RemoveUserScramCredentialRecord(name="a", mechanism=1),
                RemoveDelegationTokenRecord(token_id="t"),
                RemoveDelegationTokenRecord(token_id="t"),
            ],
        )
        == MetadataImage.EMPTY
    )


@pytest.mark.parametrize(
    "record",
    [NoOpRecord(), BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()],
)
def test_records_without_content_leave_the_image_alone(record: Any) -> None:
    image = fold(broker(1))
    assert apply(image, record) is image


def test_every_metadata_record_is_folded_and_nothing_else() -> None:
    for cls in RECORD_CLASSES.values():
        try:
            apply(MetadataImage.EMPTY, cls())
        except ReplayError as error:
            assert "is not a metadata record" not in str(error), cls
    with pytest.raises(ReplayError, match="LeaderChangeMessage is not a metadata record"):
        apply(MetadataImage.EMPTY, LeaderChangeMessage())


# --- guards -----------------------------------------------------------------------------------

GUARDS: dict[str, tuple[Any, str]] = {
    "a broker to unregister": (
        UnregisterBrokerRecord(broker_id=9, broker_epoch=1),
        "not registered",
    ),
    "a broker's epoch to unregister": (
        UnregisterBrokerRecord(broker_id=1, broker_epoch=2),
        "epoch 1, not 2",
    ),
    "a broker to fence": (FenceBrokerRecord(id=9, epoch=1), "not registered"),
    "a broker's epoch to fence": (FenceBrokerRecord(id=1, epoch=0), "epoch 1, not 0"),
    "a broker to unfence": (UnfenceBrokerRecord(id=9, epoch=1), "not registered"),
    "a broker to change": (
        BrokerRegistrationChangeRecord(broker_id=9, broker_epoch=1),
        "not registered",
    ),
    "a broker's epoch to change": (
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=-1),
        "epoch 1, not -1",
    ),
    "a fencing value": (
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=2),
        "2 is not a change of fencing",
    ),
    "a shutdown value": (
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, in_controlled_shutdown=-1),
        "-1 is not a change of controlled shutdown",
    ),
    "a directory of its own to register": (broker(3, log_dirs=(uid(1),)), "3 and 1 both claim"),
    "a directory of its own to change": (
        BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, log_dirs=(uid(1),)),
        "2 and 1 both claim",
    ),
    "a name that is free": (topic("a", 7), "while"),
    "a topic once (C47)": (topic("a", 1), "a second time"),
    "an id that is free": (topic("c", 1), "is taken"),
    "a topic to remove": (RemoveTopicRecord(topic_id=uid(9)), "does not exist"),
    "a topic for a partition": (partition(9), "does not exist"),
    "a topic to change": (
        PartitionChangeRecord(topic_id=uid(9), partition_id=0),
        "does not exist",
    ),
    "a partition to change": (
        PartitionChangeRecord(topic_id=uid(1), partition_id=5),
        "has no partition 5",
    ),
    "a topic to clear": (ClearElrRecord(topic_name="nope"), "does not exist"),
    "a known metadata.version": (version(99), "level 99"),
    "an acl id that is free": (AccessControlEntryRecord(id=uid(1)), "a second time"),
    "an acl to remove": (RemoveAccessControlEntryRecord(id=uid(9)), "does not exist"),
    "a credential to remove": (
        RemoveUserScramCredentialRecord(name="x", mechanism=1),
        "no credential",
    ),
    "a recovery state": (partition(1, leader_recovery_state=7), "recovery state"),
}


@pytest.mark.parametrize("needed", GUARDS)
def test_replay_needs(needed: str) -> None:
    record, words = GUARDS[needed]
    image = fold(
        broker(1, log_dirs=(uid(1),)),
        broker(2, log_dirs=(uid(2),)),
        topic("a", 1),
        partition(1),
        AccessControlEntryRecord(id=uid(1)),
    )
    digest = image.digest()
    with pytest.raises(ReplayError, match=words) as raised:
        apply(image, record, offset=42)
    assert str(raised.value).startswith(f"offset 42: {type(record).__name__}: ")
    assert image.digest() == digest


# --- the digest -------------------------------------------------------------------------------

SCRIPT = """
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol.records import ConfigRecord
from tests.metadata.records import broker, partition, topic, version
records = [version(30), *[broker(b, log_dirs=()) for b in range(5)]]
for t in range(20):
    records += [topic(f"t-{t}", t + 1), *[partition(t + 1, p) for p in range(3)]]
    for name in "abc":
        records.append(ConfigRecord(resource_type=2, resource_name=f"t-{t}", name=name, value="1"))
image = apply_all(MetadataImage.EMPTY, records)
print(image.digest())
"""


def test_a_digest_does_not_depend_on_the_process_that_makes_it() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1 and len(digests.pop().strip()) == 32


def test_equal_content_is_an_equal_digest_by_any_path_and_other_content_another() -> None:
    one = fold(topic("a", 1), partition(1), broker(1), broker(2))
    detour = fold(
        broker(2, epoch=7),
        topic("x", 9),
        partition(9),
        broker(1),
        topic("a", 1),
        RemoveTopicRecord(topic_id=uid(9)),
        partition(1, leader=2),
        partition(1),
        broker(2),
    )
    assert one == detour and one.digest() == detour.digest()
    others = [
        apply(one, partition(1, 1)),
        apply(one, partition(1, isr=(1, 3, 2))),
        apply(one, broker(3)),
        apply(one, broker(2, epoch=2)),
        apply(one, topic("b", 2)),
        apply(one, version(30)),
    ]
    digests = [one.digest(), *(other.digest() for other in others)]
    assert len(set(digests)) == len(digests)


def test_the_same_rows_in_another_section_are_other_content() -> None:
    as_topic = ConfigRecord(resource_type=TOPIC, resource_name="1", name="x", value="1")
    as_broker = ConfigRecord(resource_type=BROKER, resource_name="1", name="x", value="1")
    assert fold(as_topic).digest() != fold(as_broker).digest()
