"""Snapshots are due after bytes or time, and not in the middle of a batch."""

from __future__ import annotations

from minicluster.effects import Effect
from minicluster.metadata.batch_loader import Provenance
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.snapshot_generator import SnapshotGenerator, WriteSnapshot
from tests.metadata.records import batch, topic, version

IMAGE = apply(MetadataImage.EMPTY, version(30))
ONE = batch(0, version(30), topic("foo", 1), now_ms=77)


def published(
    generator: SnapshotGenerator, offset: int, now_ms: int, *, aligned: bool = True
) -> list[Effect]:
    """Hand a generator the image after one batch."""
    provenance = Provenance(
        last_contained_offset=offset,
        last_contained_epoch=3,
        last_contained_log_time_ms=77,
        offset_batch_aligned=aligned,
    )
    return generator.on_image(IMAGE, provenance, ONE.size, now_ms)


def test_bytes_make_a_snapshot_due_and_start_again() -> None:
    generator = SnapshotGenerator(0, max_bytes=2 * ONE.size)
    assert published(generator, 1, 0) == []
    [effect] = published(generator, 3, 0)
    assert isinstance(effect, WriteSnapshot)
    assert (effect.snapshot_id, effect.image) == ((4, 3), IMAGE)
    assert effect.last_contained_log_timestamp == 77
    generator.on_written()
    assert published(generator, 5, 0) == []
    assert published(generator, 7, 0)


def test_time_makes_a_snapshot_due_unless_it_is_turned_off() -> None:
    generator = SnapshotGenerator(1000, max_interval_ms=500)
    assert published(generator, 1, 1499) == []
    assert published(generator, 2, 1500)
    assert published(SnapshotGenerator(0, max_interval_ms=0), 1, 10**9) == []


def test_one_at_a_time() -> None:
    generator = SnapshotGenerator(0, max_bytes=1)
    assert published(generator, 1, 0)
    assert published(generator, 2, 0) == []
    generator.on_written()
    assert published(generator, 3, 0)


def test_not_inside_a_batch_but_at_the_next_end() -> None:
    generator = SnapshotGenerator(0, max_bytes=1)
    assert published(generator, 1, 0, aligned=False) == []
    assert published(generator, 2, 0)


def test_not_while_it_is_disabled() -> None:
    generator = SnapshotGenerator(0, max_bytes=1)
    generator.disabled_reason = "a record could not be applied"
    assert published(generator, 1, 0) == []
    generator.disabled_reason = None
    assert published(generator, 2, 0)


def test_a_snapshot_that_was_loaded_starts_the_counts_again() -> None:
    generator = SnapshotGenerator(0, max_bytes=2 * ONE.size, max_interval_ms=500)
    published(generator, 1, 400)
    assert generator.on_snapshot(450) == []
    assert published(generator, 5, 900) == []
    assert published(generator, 7, 950)
