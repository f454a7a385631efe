"""The changes in a delta: of a whole cluster, and those that concern one broker."""

from __future__ import annotations

from typing import Any

from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.metadata.image.delta import DeltaBuilder, MetadataDelta, TopicIdPartition
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from tests.metadata.records import broker, feature, partition, topic, uid, version


def image(*records: Any) -> MetadataImage:
    return apply_all(MetadataImage.EMPTY, records)


def delta(before: MetadataImage, *records: Any) -> MetadataDelta:
    """The delta of records, which must also be what a comparison of the images finds."""
    builder = DeltaBuilder(before)
    for run in SharedFolds().runs(before, tuple(VersionedRecord(r, 0) for r in records), 0):
        builder.take(run)
    built = builder.build()
    assert built == MetadataDelta.between(before, built.after)
    return built


def change(number: int, index: int = 0, **given: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=uid(number), partition_id=index, **given)


FOO_0, FOO_1 = (TopicIdPartition("foo", index, uid(1)) for index in range(2))
FOO = image(topic("foo", 1), partition(1, 0), partition(1, 1, replicas=(2, 3, 4), leader=2))


def test_a_new_topic_is_led_and_followed_with_its_directories() -> None:
    dirs = (uid(11), uid(12), uid(13))
    made = delta(MetadataImage.EMPTY, topic("foo", 1), partition(1, directories=dirs))
    leader, follower, stranger = (made.local_changes(broker_id) for broker_id in (1, 2, 4))
    assert list(leader.leaders) == list(leader.elected_leaders) == [FOO_0]
    assert (leader.followers, leader.deletes) == ({}, ())
    assert leader.directories == {FOO_0: uid(11)}
    assert list(follower.followers) == [FOO_0] and not follower.leaders
    assert follower.directories == {FOO_0: uid(12)}
    assert not stranger


def test_a_leader_whose_isr_changes_leads_on_without_being_elected() -> None:
    shrunk = delta(FOO, change(1, isr=(1, 2)))
    assert list(shrunk.local_changes(1).leaders) == [FOO_0]
    assert not shrunk.local_changes(1).elected_leaders
    assert list(shrunk.local_changes(2).followers) == [FOO_0]
    assert not shrunk.local_changes(1).directories


def test_the_same_leader_in_a_new_epoch_is_elected() -> None:
    bumped = delta(FOO, change(1, leader=1))
    assert list(bumped.local_changes(1).elected_leaders) == [FOO_0]


def test_a_broker_that_leaves_the_replicas_deletes_and_one_that_joins_follows() -> None:
    moved = delta(FOO, change(1, replicas=(1, 2, 4), isr=(1, 2)))
    assert moved.local_changes(3).deletes == (FOO_0,)
    assert list(moved.local_changes(4).followers) == [FOO_0]


def test_a_deleted_topic_is_deleted_where_it_was() -> None:
    gone = delta(FOO, RemoveTopicRecord(topic_id=uid(1)))
    assert gone.local_changes(2).deletes == (FOO_0, FOO_1)
    assert gone.local_changes(1).deletes == (FOO_0,)
    assert [one.topic.name for one in gone.topics().values() if one.after is None] == ["foo"]


def test_a_topic_that_comes_back_is_a_deletion_and_then_another_topic() -> None:
    again = delta(FOO, RemoveTopicRecord(topic_id=uid(1)), topic("foo", 2), partition(2))
    assert [(one.after is None, one.topic.id) for one in again.topics().values()] == [
        (True, uid(1)),
        (False, uid(2)),
    ]
    changes = again.local_changes(1)
    assert changes.deletes == (FOO_0,)
    assert list(changes.leaders) == [TopicIdPartition("foo", 0, uid(2))]


def test_a_topic_that_came_and_went_in_one_delta_leaves_no_trace() -> None:
    nothing = delta(FOO, topic("bar", 2), RemoveTopicRecord(topic_id=uid(2)))
    assert nothing.topics() == {} and nothing.is_empty


def test_a_directory_alone_is_a_change_of_epoch_and_an_assignment() -> None:
    before = image(topic("foo", 1), partition(1, directories=(uid(11), uid(12), uid(13))))
    moved = delta(before, change(1, directories=(uid(21), uid(12), uid(13))))
    assert moved.local_changes(1).directories == {FOO_0: uid(21)}
    assert moved.local_changes(2).directories == {FOO_0: uid(12)}, "the record has it, too"
    assert list(moved.local_changes(2).followers) == [FOO_0]


def test_a_record_that_repeats_the_epochs_changes_nothing() -> None:
    same = delta(FOO, partition(1, 0, isr=(1, 2)))
    assert len(same.topics()) == 1
    assert not same.local_changes(1) and not same.local_changes(2)


def test_clearing_elrs_touches_only_partitions_that_had_one() -> None:
    before = image(
        topic("foo", 1),
        partition(1, 0, isr=(1,), eligible_leader_replicas=(2,)),
        partition(1, 1),
        topic("bar", 2),
        partition(2),
    )
    for name in ("", "foo"):
        cleared = delta(before, ClearElrRecord(topic_name=name))
        assert cleared.topic_ids == (uid(1),)
        assert list(cleared.topics()[uid(1)].changed_on(1)) == [0]
        assert list(cleared.local_changes(1).leaders) == [FOO_0]


def test_brokers_controllers_features_and_configs_that_differ_are_listed() -> None:
    before = image(version(29), broker(1), broker(2), feature("group.version", 1))
    config = ConfigRecord(resource_type=BROKER, resource_name="1", name="x", value="1")
    after = delta(
        before,
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=-1),
        UnregisterBrokerRecord(broker_id=2, broker_epoch=1),
        broker(3),
        RegisterControllerRecord(controller_id=101),
        version(30),
        feature("group.version", 0),
        config,
    )
    assert {key: b and b.fenced for key, b in after.brokers().items()} == {
        1: False,
        2: None,
        3: True,
    }
    assert list(after.controllers()) == [101]
    assert after.features() == {"metadata.version": 30, "group.version": 0}
    assert after.configs() == {(BROKER, "1"): {"x": "1"}}


def test_a_deleted_topics_configs_are_gone_with_it() -> None:
    config = ConfigRecord(resource_type=TOPIC, resource_name="foo", name="x", value="1")
    before = apply_all(FOO, [config])
    gone = delta(before, RemoveTopicRecord(topic_id=uid(1)))
    assert gone.configs() == {(TOPIC, "foo"): {"x": None}}


def test_what_changed_and_changed_back_is_no_change() -> None:
    before = image(broker(1))
    back = delta(
        before,
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=-1),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=1),
    )
    assert back.brokers() == {} and back.is_empty
