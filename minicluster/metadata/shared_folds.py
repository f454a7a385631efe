"""The folds that the nodes of a cluster in one process share.

Images and batches are immutable: the same records after the same image give the same image. So the
first node that reads a batch folds it, and the others take its result, if they begin with the very
same image. A node with an image of its own, after a planted fault or a restart, folds for itself. A
cluster has one ``SharedFolds``, which ends with it.

Units:   what is kept is bounded by the number of runs and that of their records. Nodes on threads
         may fold at the same time; then the last result stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import is_
from typing import Any

from minicluster.log.checkpoint import Snapshot, decode_snapshot
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.folded_run import FoldedRun, fold_run, run_length
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.snapshot import image_from_records
from minicluster.protocol.records import VersionedRecord

RUNS_MAX = 4_096  # else a batch that creates many topics is gone before another node reads it
RECORDS_MAX = 200_000
RECENT_MAX = 2  # snapshots, and images of snapshots
DELTAS_MAX = 4
SHARED_BYTES_MIN = 1 << 20


class SharedFolds:
    """Results of folds by the identity of what was folded; an entry keeps it alive."""

    def __init__(self) -> None:
        self._runs: dict[tuple[int, int, int], FoldedRun] = {}
        self._unchanged: FoldedRun | None = None  # the last one that changes nothing, such as NoOp
        self._records = 0
        self._deltas: tuple[MetadataDelta, ...] = ()
        self._images: tuple[tuple[Sequence[VersionedRecord], int, MetadataImage], ...] = ()
        self._snapshots: tuple[tuple[bytes, Snapshot], ...] = ()

    # Runs of records.

    def run(
        self, image: MetadataImage, records: Sequence[VersionedRecord], start: int, offset: int
    ) -> FoldedRun:
        """The run of records that begins at a position.

        Errors:  ReplayError where a record does not fit.
        """
        last = self._unchanged
        if (
            last is not None
            and last.records[0] is records[start]
            and last.before is image
            and last.base_offset == offset
        ):
            return last
        key = (id(image), id(records[start]), offset)
        kept = self._runs.get(key)
        if kept is not None and kept.before is image and _begins_with(records, start, kept):
            return kept
        length = run_length(records, start)
        run = fold_run(image, tuple(records[start : start + length]), offset)
        if run.after is not image:
            self._keep(key, run)
        elif run.touched is None:  # of one record, whatever follows it
            self._unchanged = run
        return run

    def runs(
        self, image: MetadataImage, records: Sequence[VersionedRecord], base_offset: int
    ) -> Iterator[FoldedRun]:
        """The runs of consecutive records, each from the image after the one before.

        Errors:  ReplayError where a record does not fit.
        """
        start = 0
        while start < len(records):
            run = self.run(image, records, start, base_offset + start)
            yield run
            image, start = run.after, start + len(run.records)

    def _keep(self, key: tuple[int, int, int], run: FoldedRun) -> None:
        replaced = self._runs.pop(key, None)
        self._records += len(run.records) - (0 if replaced is None else len(replaced.records))
        self._runs[key] = run
        while len(self._runs) > RUNS_MAX or self._records > RECORDS_MAX:
            oldest = self._runs.pop(next(iter(self._runs)), None)
            self._records -= 0 if oldest is None else len(oldest.records)

    # Deltas and snapshots.

    def delta(
        self, before: MetadataImage, after: MetadataImage, make: Callable[[], MetadataDelta]
    ) -> MetadataDelta:
        """The delta from one image to another, with all that is computed of it later."""
        for recent in self._deltas:
            if recent.before is before and recent.after is after:
                return recent
        delta = make()
        self._deltas = (delta, *self._deltas[: DELTAS_MAX - 1])
        return delta

    def image_of(self, records: Sequence[VersionedRecord], offset: int) -> MetadataImage:
        """The image that a snapshot holds (``image_from_records``).

        Errors:  ReplayError.
        """
        for recent, at, image in self._images:
            if recent is records and at == offset:
                return image
        image = image_from_records(records, offset=offset)
        self.remember_image(records, offset, image)
        return image

    def remember_image(
        self, records: Sequence[VersionedRecord], offset: int, image: MetadataImage
    ) -> None:
        """Share the image of these records with who loads the same object."""
        self._images = ((records, offset, image), *self._images[: RECENT_MAX - 1])

    def snapshot(self, content: bytes, name: str) -> Snapshot:
        """The content of a snapshot (``decode_snapshot``).

        Errors:  LogCorruption.
        """
        for recent, snapshot in self._snapshots:
            if recent is content:
                return snapshot
        snapshot = decode_snapshot(content, name)
        if len(content) >= SHARED_BYTES_MIN:
            self.remember_snapshot(content, snapshot)
        return snapshot

    def remember_snapshot(self, content: bytes, snapshot: Snapshot) -> None:
        """Share the content of these bytes with who decodes the same object."""
        self._snapshots = ((content, snapshot), *self._snapshots[: RECENT_MAX - 1])


def _begins_with(records: Sequence[Any], start: int, run: FoldedRun) -> bool:
    """The records at a position are those of a run, whose first one is there."""
    length = len(run.records)
    return length == 1 or (
        len(records) - start >= length
        and all(map(is_, run.records, islice(records, start, start + length)))
    )
