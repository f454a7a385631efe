"""The loader: rows H01 to H19 of the conformance cases, its fault, and what each release does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from minicluster.effects import CancelTimer, Effect, SetTimer
from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_batch
from minicluster.metadata.batch_loader import (
    BatchLoader,
    LeaderAndEpoch,
    LoaderFault,
    LogDeltaManifest,
    Provenance,
    SnapshotManifest,
    Update,
)
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.loader import (
    INITIALIZE_NEW_PUBLISHERS,
    ClosePublisher,
    ControllerChanged,
    MetadataLoader,
    Publish,
    PublisherInstalledTwice,
)
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    LeaderChangeMessage,
    NoOpRecord,
    RemoveTopicRecord,
    VersionedRecord,
)
from minicluster.rules import Rules
from minicluster.values import replace
from tests.metadata.records import batch, partition, topic, uid, version

LEADER = LeaderAndEpoch(101, 4)
BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
NO_OP = NoOpRecord()
LEAKS = replace(Rules.KAFKA_4_3, aborted_transaction_leaks=True)


class Node:
    """A loader, the publishers' mail, and a log that is committed as it is appended."""

    def __init__(self, *publishers: str, rules: Rules = Rules.KAFKA_4_3) -> None:
        self.loader = MetadataLoader(rules)
        self.high_watermark: int | None = 0
        self.end_offset = 0
        self.mail: list[Effect] = []
        if publishers:
            self.install(*publishers)

    def install(self, *publishers: str, now_ms: int = 0) -> list[Effect]:
        return self._take(
            self.loader.install(publishers, high_watermark=self.high_watermark, now_ms=now_ms)
        )

    def commit(self, *batches: Sequence[Any]) -> list[Effect]:
        """Deliver batches of records in one commit, each following the one before."""
        made: list[RecordBatch] = []
        for records in batches:
            made.append(batch(self.end_offset, *records))
            self.end_offset += len(records)
        self.high_watermark = self.end_offset
        return self.deliver(made)

    def deliver(self, batches: list[RecordBatch]) -> list[Effect]:
        return self._take(
            self.loader.on_commit(batches, high_watermark=self.high_watermark, now_ms=0)
        )

    def snapshot(self, last_offset: int, *records: Any, epoch: int = 100) -> list[Effect]:
        versioned = [VersionedRecord(record, record.latest_version) for record in records]
        self.end_offset = last_offset + 1
        return self._take(
            self.loader.on_load_snapshot(
                (last_offset + 1, epoch),
                versioned,
                last_contained_log_timestamp=4000,
                high_watermark=self.high_watermark,
                now_ms=0,
            )
        )

    def _take(self, effects: list[Effect]) -> list[Effect]:
        self.mail += effects
        return effects

    def published(self, publisher: str = "a") -> list[Publish]:
        return [e for e in self.mail if isinstance(e, Publish) and e.publisher == publisher]

    @property
    def topics(self) -> list[str]:
        """The names that the last image showed."""
        return [shown.name for shown in self.published()[-1].image.topics]


# --- publishers -------------------------------------------------------------------------------


def test_h01_a_new_loader_has_applied_nothing() -> None:
    assert Node().loader.last_applied_offset == -1


def test_h02_closing_closes_those_that_are_installed() -> None:
    node = Node()
    node.high_watermark = None
    node.install("a", "b")
    assert node.loader.close() == [
        CancelTimer(INITIALIZE_NEW_PUBLISHERS),
        ClosePublisher("a"),
        ClosePublisher("b"),
    ]
    assert node.published() == []


@pytest.mark.parametrize("loaded", [True, False])
def test_h03_a_publisher_is_installed_once(loaded: bool) -> None:
    node = Node("a")
    if loaded:
        node.snapshot(200, version(30))
    with pytest.raises(PublisherInstalledTwice, match="publisher a is already installed"):
        node.install("b", "a")
    node.install("b")


def test_h04_a_removed_publisher_is_closed_and_gets_no_more() -> None:
    node = Node("a", "b")
    assert node.loader.remove("b") == [ClosePublisher("b")]
    node.snapshot(200, version(30))
    assert len(node.published("a")) == 1 and node.published("b") == []
    assert node.loader.remove("b") == []


def test_a_new_publisher_gets_the_whole_image_then_the_leader() -> None:
    node = Node("a")
    node.loader.on_leader_change(LEADER)
    node.commit([version(30), topic("foo", 1)])
    effects = node.install("b")
    assert effects == [*node.published("b"), ControllerChanged("b", LEADER)]
    first = node.published("b")[0]
    assert first.delta.before is MetadataImage.EMPTY
    assert first.image == node.published("a")[-1].image
    assert isinstance(first.manifest, SnapshotManifest)
    assert first.manifest.provenance.last_contained_offset == 1
    node.commit([topic("bar", 2)])
    assert node.published("b")[-1].delta.before == first.image


def test_publishers_are_called_in_the_order_of_their_installation() -> None:
    node = Node("z", "a", "m")
    node.commit([version(30)])
    node.mail.clear()
    node.commit([topic("foo", 1)])
    assert [e.publisher for e in node.mail if isinstance(e, Publish)] == ["z", "a", "m"]
    assert node.loader.on_leader_change(LEADER) == [
        ControllerChanged(name, LEADER) for name in ("z", "a", "m")
    ]


# --- catching up ------------------------------------------------------------------------------


def test_h05_an_empty_snapshot_counts_for_3_9_and_not_for_4_3() -> None:
    for rules, applied in ((Rules.KAFKA_3_9, [200, 300]), (Rules.KAFKA_4_3, [-1, -1])):
        node = Node("a", rules=rules)
        seen = []
        for offset in (200, 300):
            node.snapshot(offset)
            seen.append(node.loader.last_applied_offset)
        assert seen == applied, rules.name
    node = Node("a", rules=Rules.KAFKA_3_9)
    node.snapshot(300)
    [only] = node.published()
    assert only.manifest == SnapshotManifest(
        provenance=Provenance(
            last_contained_offset=300,
            last_contained_epoch=100,
            last_contained_log_time_ms=4000,
            offset_batch_aligned=True,
        )
    )
    assert only.image.is_empty and only.image.metadata_version.version_name == "3.0-IV1"
    assert only.manifest.provenance.snapshot_id == (301, 100)


def test_h07_the_last_applied_offset_follows_snapshot_and_log() -> None:
    node = Node("a", "b")
    node.snapshot(200, version(30), topic("foo", 1))
    assert node.loader.last_applied_offset == 200
    node.commit([RemoveTopicRecord(topic_id=uid(1))])
    assert node.loader.last_applied_offset == 201
    assert node.topics == []
    closed = node.loader.close()
    assert closed[1:] == [ClosePublisher("a"), ClosePublisher("b")]


def test_h08_nothing_is_published_before_the_high_watermark_is_known_and_reached() -> None:
    node = Node()
    node.high_watermark = None
    assert node.install("a") == [SetTimer(INITIALIZE_NEW_PUBLISHERS, 100)]
    for known, offset in ((None, 200), (221, 210)):
        node.high_watermark = known
        node.snapshot(offset, version(30))
        assert node.loader.last_applied_offset == -1 and node.published() == []
    retried = node.loader.on_timer(INITIALIZE_NEW_PUBLISHERS, high_watermark=221, now_ms=500)
    assert retried == [SetTimer(INITIALIZE_NEW_PUBLISHERS, 600)]
    node.snapshot(220, version(30))
    assert node.loader.last_applied_offset == 220 and len(node.published()) == 1


def test_once_caught_up_it_stays_so() -> None:
    node = Node("a")
    node.commit([version(30)])
    node.high_watermark = 1000
    node.deliver([batch(1, topic("foo", 1))])
    assert node.topics == ["foo"]


def test_h13_the_first_image_is_never_empty() -> None:
    node = Node("a")
    node.high_watermark = 1
    leader_change = control_batch(0, 4, 1000, (LeaderChangeMessage(leader_id=101),))
    node.deliver([leader_change])
    assert node.published() == []
    node.end_offset = 1
    node.commit([version(30)])
    node.commit([ConfigRecord(resource_type=4, resource_name="", name="x", value="1")])
    assert len(node.published()) == 2
    assert not any(p.image.is_empty for p in node.published())


def test_without_a_metadata_version_4_3_publishes_nothing_and_3_9_assumes_one() -> None:
    config = ConfigRecord(resource_type=4, resource_name="", name="x", value="1")
    node = Node("a")
    faults = [e for e in node.commit([config]) if isinstance(e, LoaderFault)]
    assert len(faults) == 1 and "metadata.version" in faults[0].message
    assert node.published() == []
    node.commit([version(30)])
    assert len(node.published()) == 1
    old = Node("a", rules=Rules.KAFKA_3_9)
    old.commit([config])
    assert len(old.published()) == 1


# --- snapshots --------------------------------------------------------------------------------


def test_h09_a_second_snapshot_takes_away_what_it_lacks() -> None:
    node = Node("a")
    node.snapshot(200, version(7), topic("foo", 1))
    assert node.topics == ["foo"]
    node.snapshot(300, version(8), topic("bar", 2))
    last = node.published()[-1]
    assert node.topics == ["bar"] and last.image.metadata_version.level == 8
    deltas = last.delta.topics().values()
    assert [gone.topic.name for gone in deltas if gone.after is None] == ["foo"]
    node.commit([version(9)])
    assert node.published()[-1].delta.features() == {"metadata.version": 9}


def test_h12_a_snapshot_drops_the_transaction_in_flight() -> None:
    node = Node("a")
    node.commit([version(30)])
    node.commit([BEGIN, topic("lost", 1)])
    node.snapshot(600, version(30), topic("foo", 2))
    assert node.topics == ["foo"]
    node.commit([topic("bar", 3)])
    assert node.topics == ["bar", "foo"]


def test_a_record_that_does_not_fit_a_snapshot_is_a_fault_and_loading_goes_on() -> None:
    node = Node("a")
    effects = node.snapshot(200, version(30), partition(9), topic("foo", 1))
    [fault] = [e for e in effects if isinstance(e, LoaderFault)]
    assert "record 1" in fault.message and node.topics == ["foo"]


# --- transactions -----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [END, ABORT])
def test_h10_a_transaction_shows_all_or_nothing(ending: Any) -> None:
    node = Node("a")
    node.commit([version(30)])
    node.commit([BEGIN, topic("foo", 1)])
    node.commit([partition(1, 0), partition(1, 1)])
    assert node.topics == [] and node.loader.last_applied_offset == 0
    node.commit([ending])
    assert node.topics == (["foo"] if ending is END else [])
    assert node.loader.last_applied_offset == 5
    node.commit([topic("bar", 2)])
    assert node.topics == (["bar", "foo"] if ending is END else ["bar"])


def test_h11_a_transaction_within_one_batch_shows() -> None:
    node = Node("a")
    node.commit([version(30), BEGIN, topic("foo", 1), END])
    assert node.topics == ["foo"]


def test_an_aborted_transaction_is_an_empty_delta_with_a_later_provenance() -> None:
    node = Node("a")
    node.commit([version(30)])
    node.commit([BEGIN, topic("foo", 1), ABORT])
    last = node.published()[-1]
    assert last.delta.is_empty and last.manifest.provenance.last_contained_offset == 3


@pytest.mark.parametrize("leaks", [True, False])
def test_what_was_aborted_comes_back_only_in_kafkas_loader(leaks: bool) -> None:
    """Data that follows an abort within one delivery brings it back: a fault of every release."""
    rules = LEAKS if leaks else Rules.KAFKA_4_3
    node = Node("a", rules=rules)
    node.commit([version(30)])
    node.commit([BEGIN, topic("foo", 1), ABORT, topic("bar", 2)])
    assert node.topics == (["bar", "foo"] if leaks else ["bar"])
    assert Rules.KAFKA_4_3.as_shipped().aborted_transaction_leaks


# --- the batch loader alone ---------------------------------------------------------------------


class Batches:
    """A batch loader on its own, after records up to offset 9, with its updates and faults."""

    def __init__(self) -> None:
        self.loader = BatchLoader()
        start = Provenance(last_contained_offset=9, last_contained_epoch=2)
        self.loader.reset_to(apply_all(MetadataImage.EMPTY, [version(30)]), start)
        self.updates: list[Update] = []
        self.faults: list[LoaderFault] = []

    def load(self, base_offset: int, *records: Any, epoch: int = 2) -> None:
        for outcome in self.loader.load(batch(base_offset, *records, epoch=epoch), LEADER):
            if isinstance(outcome, Update):
                self.updates.append(outcome)
            else:
                self.faults.append(outcome)

    def flush(self) -> None:
        update = self.loader.flush(LEADER)
        if update is not None:
            self.updates.append(update)

    def shown(self, index: int = -1) -> tuple[int, int, bool, int]:
        """Of an update: last offset, epoch, alignment, number of batches."""
        manifest: LogDeltaManifest = self.updates[index].manifest
        p = manifest.provenance
        return (
            p.last_contained_offset,
            p.last_contained_epoch,
            p.offset_batch_aligned,
            len(manifest.batches),
        )


def test_h14_a_transaction_over_aligned_batches_is_one_update() -> None:
    loaded = Batches()
    loaded.load(10, BEGIN, topic("foo", 1), partition(1))
    loaded.load(13, NO_OP, NO_OP, NO_OP)
    loaded.load(16, partition(1, 1), partition(1, 2), END)
    assert loaded.updates == []
    loaded.flush()
    assert [loaded.shown()] == [(18, 2, True, 3)] and len(loaded.updates) == 1


def test_h15_a_begin_gives_away_what_precedes_it() -> None:
    loaded = Batches()
    loaded.load(13, NO_OP, NO_OP, NO_OP)
    loaded.load(16, BEGIN)
    assert loaded.shown() == (15, 2, True, 1)
    assert len(loaded.updates[0].image.topics) == 0
    loaded.load(17, topic("foo", 1), partition(1), partition(1, 1))
    loaded.load(20, END)
    loaded.flush()
    assert loaded.shown() == (20, 2, True, 3) and len(loaded.updates) == 2


def test_h15_in_separate_commits_the_same_two_updates() -> None:
    loaded = Batches()
    loaded.load(13, NO_OP, NO_OP, NO_OP)
    loaded.flush()
    for base_offset, records in (
        (16, [BEGIN]),
        (17, [topic("foo", 1), partition(1), partition(1, 1)]),
    ):
        loaded.load(base_offset, *records)
        loaded.flush()
        assert len(loaded.updates) == 1
    loaded.load(20, END)
    loaded.flush()
    assert [loaded.shown(i)[0] for i in range(2)] == [15, 20]


def test_a_begin_inside_a_batch_is_not_aligned() -> None:
    loaded = Batches()
    loaded.load(10, topic("foo", 1), BEGIN, topic("bar", 2))
    assert loaded.shown() == (10, 2, False, 0)
    assert [shown.name for shown in loaded.updates[0].image.topics] == ["foo"]
    loaded.flush()
    assert len(loaded.updates) == 1


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([BEGIN, NO_OP, BEGIN], "begins within a transaction"),
        ([BEGIN, BEGIN], "begins within a transaction"),
        ([END], "never began"),
        ([ABORT], "never began"),
        ([BEGIN, END, END], "never began"),
    ],
)
def test_h16_a_mark_where_none_belongs_is_a_fault(records: list[Any], words: str) -> None:
    loaded = Batches()
    loaded.load(10, topic("foo", 1))
    loaded.load(11, *records)
    [fault] = loaded.faults
    assert words in fault.message
    loaded.flush()
    assert loaded.updates[0].image.topics.named("foo") is not None


@pytest.mark.parametrize("ending", [END, ABORT])
def test_h19_one_transaction_in_several_batches(ending: Any) -> None:
    loaded = Batches()
    loaded.load(16, BEGIN, epoch=4)
    loaded.load(17, topic("foo", 1), partition(1), partition(1, 1), epoch=4)
    loaded.load(20, ending, epoch=4)
    assert loaded.updates == []
    loaded.flush()
    assert loaded.shown() == (20, 4, True, 3)
    assert (loaded.updates[0].image.topics.named("foo") is not None) is (ending is END)
    manifest = loaded.updates[0].manifest
    assert manifest.num_bytes == sum(one.size for one in manifest.batches) > 0


def test_a_record_that_does_not_fit_is_a_fault_and_the_rest_is_loaded() -> None:
    loaded = Batches()
    loaded.load(10, topic("foo", 1), partition(9), topic("bar", 2))
    loaded.flush()
    assert "offset 11" in loaded.faults[0].message
    assert len(loaded.updates[0].image.topics) == 2


def test_a_level_below_the_lowest_of_the_release_cannot_be_read() -> None:
    loaded = Batches()
    loaded.load(10, version(6))
    assert "lowest" in loaded.faults[0].message
    old = Node("a", rules=Rules.KAFKA_3_9)
    old.commit([version(6)])
    assert old.published()[-1].image.metadata_version.level == 6
