"""The metadata loader: commits and snapshots come in, publishers get deltas and images.

A node that starts reads the log from its beginning, or from a snapshot on. Nothing is published
before it has reached the high watermark: a broker that acted on an image of long ago would lead
what others lead by now. Nor is an image without any record published, which looks like a cluster
without topics (KAFKA-15389). Each publisher's first delta is from the empty image to the present
one; from then on deltas follow each other.

A snapshot replaces the image. Its delta is a comparison of both images, since what a snapshot does
not have was deleted, and no record says so.

Leaves out elapsed times (no clock here) and metrics. Publishers are known by name; the shell calls
the objects behind the names, in the order of the effects, and so in the order of installation.

**Invariant:** what is published at an offset is the fold of the log up to there
(tests/metadata/test_loader.py).

Source:  KIP-868, KAFKA-15389; MetadataLoader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minicluster.effects import CancelTimer, Effect, FaultHit, SetTimer
from minicluster.errors import MiniclusterError
from minicluster.faults import Faults
from minicluster.log.batch import RecordBatch
from minicluster.metadata.batch_loader import (
    BatchLoader,
    LeaderAndEpoch,
    LoaderFault,
    LogDeltaManifest,
    Provenance,
    SnapshotManifest,
    reject_unreadable,
)
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.planting import step
from minicluster.protocol.records import VersionedRecord
from minicluster.rules import Rules

INITIALIZE_NEW_PUBLISHERS = "initialize-new-publishers"
INITIALIZE_RETRY_MS = 100


class PublisherInstalledTwice(MiniclusterError):
    """A publisher of this name is installed already."""


class Publish(Effect, kw_only=True):
    """Give a publisher a delta, the image after it, and where they come from.

    Shapes:  the first one of each publisher starts from the empty image.
    """

    publisher: str
    delta: MetadataDelta
    image: MetadataImage
    manifest: LogDeltaManifest | SnapshotManifest


class ControllerChanged(Effect):
    """Publish the leader of the quorum."""

    publisher: str
    leader: LeaderAndEpoch


class ClosePublisher(Effect):
    """Close a publisher that is not needed any more."""

    publisher: str


class MetadataLoader:
    """Follows the committed log of one node."""

    def __init__(
        self,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        folds: SharedFolds | None = None,
    ) -> None:
        self.rules = rules
        self.faults = faults
        self.folds = SharedFolds() if folds is None else folds
        self.batch_loader = BatchLoader(rules, faults, self.folds)
        self.hit = self.batch_loader.hit
        self._leader = LeaderAndEpoch()
        self._uninitialized: dict[str, None] = {}
        self._publishers: dict[str, None] = {}
        self.catching_up = True
        self.image = MetadataImage.EMPTY
        self.provenance = Provenance()
        self.last_applied = Provenance()
        """The image published last; the offset is -1 until then."""

    @property
    def last_applied_offset(self) -> int:
        """The last offset of what was last published, or -1."""
        return self.last_applied.last_contained_offset

    # --- publishers ---------------------------------------------------------------------------

    def install(
        self, names: Sequence[str], *, high_watermark: int | None, now_ms: int
    ) -> list[Effect]:
        """Add publishers; each gets the whole image first, at once or when caught up.

        Errors:  PublisherInstalledTwice; none of them is then installed.
        """
        new: dict[str, None] = {}
        for name in names:
            if name in self._publishers or name in self._uninitialized or name in new:
                raise PublisherInstalledTwice(f"publisher {name} is already installed")
            new[name] = None
        self._uninitialized |= new
        return self._initialize_new_publishers(high_watermark, now_ms)

    def remove(self, name: str) -> list[Effect]:
        """Take a publisher away, and close it."""
        if name not in self._publishers and name not in self._uninitialized:
            return []
        self._publishers.pop(name, None)
        self._uninitialized.pop(name, None)
        return [ClosePublisher(name)]

    def close(self) -> list[Effect]:
        """Close every publisher that is installed."""
        closed = [*self._uninitialized, *self._publishers]
        self._uninitialized, self._publishers = {}, {}
        return [CancelTimer(INITIALIZE_NEW_PUBLISHERS), *map(ClosePublisher, closed)]

    def on_timer(self, name: str, *, high_watermark: int | None, now_ms: int) -> list[Effect]:
        """Try again to give new publishers their first image."""
        if name != INITIALIZE_NEW_PUBLISHERS:
            return []
        return self._initialize_new_publishers(high_watermark, now_ms)

    # --- the log ------------------------------------------------------------------------------

    def on_leader_change(self, leader: LeaderAndEpoch) -> list[Effect]:
        """Pass on who leads the quorum."""
        self._leader = leader
        return [ControllerChanged(name, leader) for name in self._publishers]

    def on_commit(
        self, batches: Iterable[RecordBatch], *, high_watermark: int | None, now_ms: int
    ) -> list[Effect]:
        """Take in what was committed, in order.

        Units:   high_watermark is exclusive, None while it is unknown to the node.
        """
        effects: list[Effect] = []
        for batch in batches:
            for outcome in self.batch_loader.load(batch, self._leader):
                if isinstance(outcome, LoaderFault):
                    effects.append(outcome)
                else:
                    effects += self._publish(
                        outcome.delta, outcome.manifest, high_watermark, now_ms
                    )
        update = self.batch_loader.flush(self._leader)
        if update is not None:
            effects += self._publish(update.delta, update.manifest, high_watermark, now_ms)
        return effects + [FaultHit(zoo_id) for zoo_id in self.batch_loader.take_hits()]

    def on_load_snapshot(
        self,
        snapshot_id: tuple[int, int],
        records: Sequence[VersionedRecord],
        *,
        last_contained_log_timestamp: int,
        high_watermark: int | None,
        now_ms: int,
    ) -> list[Effect]:
        """Replace the image by a snapshot's; what the snapshot lacks is gone.

        A transaction that is open is forgotten: the snapshot is ahead of it.
        """
        end_offset, epoch = snapshot_id
        loaded, effects = image_of_snapshot(self, snapshot_id, records)
        provenance = Provenance(
            last_contained_offset=end_offset - 1,
            last_contained_epoch=epoch,
            last_contained_log_time_ms=last_contained_log_timestamp,
            offset_batch_aligned=True,
        )
        delta = self._between(self.image, loaded)
        self.batch_loader.reset_to(loaded, provenance)
        manifest = SnapshotManifest(provenance=provenance)
        return effects + self._publish(delta, manifest, high_watermark, now_ms)

    # --- publication --------------------------------------------------------------------------

    def _publish(
        self,
        delta: MetadataDelta,
        manifest: LogDeltaManifest | SnapshotManifest,
        high_watermark: int | None,
        now_ms: int,
    ) -> list[Effect]:
        self.image, self.provenance = delta.after, manifest.provenance
        if still_catching_up(self, high_watermark):
            return []
        fault = reject_unset_version(self)
        if fault:
            return fault
        effects: list[Effect] = [
            Publish(publisher=name, delta=delta, image=self.image, manifest=manifest)
            for name in self._publishers
        ]
        self.last_applied = self.provenance
        return effects + self._initialize_new_publishers(high_watermark, now_ms)

    def _initialize_new_publishers(self, high_watermark: int | None, now_ms: int) -> list[Effect]:
        if not self._uninitialized:
            return []
        if still_catching_up(self, high_watermark):
            return [SetTimer(INITIALIZE_NEW_PUBLISHERS, now_ms + INITIALIZE_RETRY_MS)]
        fault = reject_unset_version(self)
        if fault:
            return fault
        delta = self._between(MetadataImage.EMPTY, self.image)
        manifest = SnapshotManifest(provenance=self.provenance)
        effects: list[Effect] = []
        for name in self._uninitialized:
            effects.append(
                Publish(publisher=name, delta=delta, image=self.image, manifest=manifest)
            )
            effects.append(ControllerChanged(name, self._leader))
        self._publishers |= self._uninitialized
        self._uninitialized = {}
        return effects

    def _between(self, before: MetadataImage, after: MetadataImage) -> MetadataDelta:
        return self.folds.delta(before, after, lambda: MetadataDelta.between(before, after))


@step
def still_catching_up(loader: MetadataLoader, high_watermark: int | None) -> bool:
    """The loader has not reached the high watermark of its start, or has not seen any record.

    Publishers get no image before: it would be of the past, or empty.

    Source:  MetadataLoader.stillNeedToCatchUp.
    """
    if loader.catching_up:
        loader.catching_up = (
            high_watermark is None
            or high_watermark - 1 > loader.provenance.last_contained_offset
            or not loader.batch_loader.has_seen_record
        )
    return loader.catching_up


@step
def reject_unset_version(loader: MetadataLoader) -> list[Effect]:
    """Reject to publish an image without a metadata.version."""
    version = loader.image.features.metadata_version
    if version is not None or loader.rules.metadata_version_is_assumed:
        return []
    offset = loader.provenance.last_contained_offset
    return [LoaderFault(f"no record up to offset {offset} has set the metadata.version")]


@step
def image_of_snapshot(
    loader: MetadataLoader, snapshot_id: tuple[int, int], records: Sequence[VersionedRecord]
) -> tuple[MetadataImage, list[Effect]]:
    """The image of a snapshot's records, from the empty one on, and a fault for each bad record."""
    end_offset = snapshot_id[0] - 1
    try:
        for versioned in records:
            reject_unreadable(versioned.record, loader.rules)
        return loader.folds.image_of(records, end_offset), []
    except ReplayError:
        return _image_of_those_that_fit(loader.rules, snapshot_id, records)


def _image_of_those_that_fit(
    rules: Rules, snapshot_id: tuple[int, int], records: Sequence[VersionedRecord]
) -> tuple[MetadataImage, list[Effect]]:
    faults: list[Effect] = []
    image = MetadataImage.EMPTY
    for index, versioned in enumerate(records):
        try:
            reject_unreadable(versioned.record, rules)
            image = apply(image, versioned, offset=snapshot_id[0] - 1)
        except ReplayError as error:
            faults.append(LoaderFault(f"snapshot {snapshot_id}, record {index}: {error}"))
    return image, faults
