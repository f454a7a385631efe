"""Faults of the loader of metadata and of snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minicluster.effects import Effect, FaultHit
from minicluster.metadata.batch_loader import (
    BatchLoader,
    LeaderAndEpoch,
    Update,
    apply_records,
)
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.image.partition import NO_RECOVERY_CHANGE
from minicluster.metadata.loader import (
    MetadataLoader,
    image_of_snapshot,
    reject_unset_version,
    still_catching_up,
)
from minicluster.planting import plant
from minicluster.protocol.records import (
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)
from minicluster.rules import Rules
from minicluster.values import replace

Records = tuple[VersionedRecord, ...]


# --- the loader ---------------------------------------------------------------------------------


@plant(apply_records, "z42_short_lived_topic_stays")
def _z42(original: Callable[..., None], loader: BatchLoader, records: Records, offset: int) -> None:
    record = records[0].record
    if isinstance(record, RemoveTopicRecord) and loader.image.topics.get(record.topic_id) is None:
        loader.hit("Z42")
        return
    original(loader, records, offset)


@plant(apply_records, "s19_recovery_state_is_not_published")
def _s19(original: Callable[..., None], loader: BatchLoader, records: Records, offset: int) -> None:
    original(loader, tuple(_without_recovery_change(loader, record) for record in records), offset)


def _without_recovery_change(loader: BatchLoader, versioned: VersionedRecord) -> VersionedRecord:
    record = versioned.record
    if not isinstance(record, PartitionChangeRecord):
        return versioned
    if record.leader_recovery_state == NO_RECOVERY_CHANGE:
        return versioned
    loader.hit("S19")
    changed = replace(record, leader_recovery_state=NO_RECOVERY_CHANGE)
    return VersionedRecord(changed, versioned.version)


@plant(BatchLoader.flush, "s63_published_with_the_next")
def _s63(
    original: Callable[..., Update | None], loader: BatchLoader, leader: LeaderAndEpoch
) -> Update | None:
    """Every second delivery that changes something waits for the one after it."""
    if "S63" in loader.armed or loader.builder.image is loader.image:
        loader.armed.discard("S63")
        return original(loader, leader)
    loader.armed.add("S63")
    loader.hit("S63")
    return None


@plant(image_of_snapshot, "s21_replays_once_too_often")
def _s21_armed(
    original: Callable[..., tuple[MetadataImage, list[Effect]]], loader: MetadataLoader, *args: Any
) -> tuple[MetadataImage, list[Effect]]:
    loader.batch_loader.armed.add("S21")
    return original(loader, *args)


@plant(apply_records, "s21_replays_once_too_often")
def _s21(original: Callable[..., None], loader: BatchLoader, records: Records, offset: int) -> None:
    for place, versioned in enumerate(records):
        original(loader, (versioned,), offset + place)
        if "S21" in loader.armed and isinstance(versioned.record, PartitionChangeRecord):
            loader.armed.discard("S21")
            original(loader, (versioned,), offset + place)
            loader.hit("S21")


@plant(still_catching_up, "z50_empty_image_first")
def _z50_catches_up(
    original: Callable[..., bool], loader: MetadataLoader, high_watermark: int | None
) -> bool:
    return not _publishes_too_soon(loader) and original(loader, high_watermark)


@plant(reject_unset_version, "z50_empty_image_first")
def _z50_version(original: Callable[..., list[Effect]], loader: MetadataLoader) -> list[Effect]:
    return [] if _publishes_too_soon(loader) else original(loader)


def _publishes_too_soon(loader: MetadataLoader) -> bool:
    if loader.batch_loader.has_seen_record:
        return False
    loader.hit("Z50")
    return True


@plant(image_of_snapshot, "z43_snapshot_deletes_nothing")
def _z43(
    original: Callable[..., tuple[MetadataImage, list[Effect]]],
    loader: MetadataLoader,
    snapshot_id: tuple[int, int],
    records: Iterable[VersionedRecord],
) -> tuple[MetadataImage, list[Effect]]:
    """The hit comes before what is published, not with the next commit."""
    loaded, effects = original(loader, snapshot_id, records)
    kept = _with_topics_of(loader.rules, loader.image, loaded)
    return kept, effects if kept is loaded else [*effects, FaultHit("Z43")]


def _with_topics_of(rules: Rules, before: MetadataImage, loaded: MetadataImage) -> MetadataImage:
    """A loaded image with the topics that it lacks left as they were."""
    version = before.features.metadata_version
    for topic in before.topics:
        if loaded.topics.named(topic.name) is None and version is not None:
            loaded = apply(loaded, TopicRecord(name=topic.name, topic_id=topic.id), offset=-1)
            for index, partition in topic.items():
                elr = before.features.elr_enabled
                record = partition.to_record(topic.id, index, version, elr, rules)
                loaded = apply(loaded, record, offset=-1)
    return loaded
