"""Snapshots are due after bytes or time, and not in the middle of a batch."""

from __future__ import annotations

from dataclasses import replace

from minicluster.metadata.batch_loader import (
    LeaderAndEpoch,
    LogDeltaManifest,
    Provenance,
    SnapshotManifest,
)
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.loader import Publish
from minicluster.metadata.snapshot_generator import SnapshotGenerator, WriteSnapshot
from tests.metadata.records import batch, topic, version

IMAGE = apply(MetadataImage.EMPTY, version(30))
ONE = batch(0, version(30), topic("foo", 1), now_ms=77)
DELTA = MetadataDelta.between(MetadataImage.EMPTY, IMAGE)


def published(offset: int, *, aligned: bool = True, snapshot: bool = False) -> Publish:
    provenance = Provenance(
        last_contained_offset=offset,
        last_contained_epoch=3,
        last_contained_log_time_ms=77,
        offset_batch_aligned=aligned,
    )
    manifest = LogDeltaManifest(provenance=provenance, leader=LeaderAndEpoch(), batches=(ONE,))
    whole = SnapshotManifest(provenance=provenance)
    return Publish(
        publisher="snapshots", delta=DELTA, image=IMAGE, manifest=whole if snapshot else manifest
    )


def test_bytes_make_a_snapshot_due_and_start_again() -> None:
    generator = SnapshotGenerator(0, max_bytes=2 * ONE.size)
    assert generator.on_publish(published(1), 0) == []
    [effect] = generator.on_publish(published(3), 0)
    assert isinstance(effect, WriteSnapshot)
    assert (effect.snapshot_id, effect.image) == ((4, 3), IMAGE)
    assert effect.last_contained_log_timestamp == 77
    generator.on_written()
    assert generator.on_publish(published(5), 0) == []
    assert generator.on_publish(published(7), 0)


def test_time_makes_a_snapshot_due_unless_it_is_turned_off() -> None:
    generator = SnapshotGenerator(1000, max_interval_ms=500)
    assert generator.on_publish(published(1), 1499) == []
    assert generator.on_publish(published(2), 1500)
    assert SnapshotGenerator(0, max_interval_ms=0).on_publish(published(1), 10**9) == []


def test_one_at_a_time() -> None:
    generator = SnapshotGenerator(0, max_bytes=1)
    assert generator.on_publish(published(1), 0)
    assert generator.on_publish(published(2), 0) == []
    generator.on_written()
    assert generator.on_publish(published(3), 0)


def test_not_inside_a_batch_but_at_the_next_end() -> None:
    generator = SnapshotGenerator(0, max_bytes=1)
    assert generator.on_publish(published(1, aligned=False), 0) == []
    assert generator.on_publish(published(2), 0)


def test_not_while_it_is_disabled() -> None:
    generator = SnapshotGenerator(0, max_bytes=1)
    generator.disabled_reason = "a record could not be applied"
    assert generator.on_publish(published(1), 0) == []
    generator.disabled_reason = None
    assert generator.on_publish(published(2), 0)


def test_a_snapshot_that_was_loaded_starts_the_counts_again() -> None:
    generator = SnapshotGenerator(0, max_bytes=2 * ONE.size, max_interval_ms=500)
    generator.on_publish(published(1), 400)
    assert generator.on_publish(published(3, snapshot=True), 450) == []
    assert generator.on_publish(published(5), 900) == []
    assert generator.on_publish(replace(published(7)), 950)
