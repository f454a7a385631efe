"""The images that nodes publish, beside the fold of the committed log.

========================  ========================================================================
takes                     the committed log; ``publish`` and ``raft_event`` rows
keeps                     a fold of the log, and its digest at the end of each batch; by process of
                          a node the image that it published last; the quorum's high watermark
yields                    ``Publication``; the context ``images``
========================  ========================================================================

The fold is ``metadata.image``, which the tests compare with a second one, record by record, and
with what Apache Kafka made of its own logs. Bounded by the state of the cluster, and one digest for
each batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import merge
from typing import Any

from minicluster.log.committed_log import Start
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.snapshot import image_from_records
from minicluster.values import dataclass
from minicluster.verify.evidence.operations import Operation
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence

SNAPSHOT = "snapshot"  # the manifest of an image that was read from one


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A node publishes an image.

    Shapes:  digest: of the image, None where the trace has none. fold: the digest of the log up to
             there, None inside a metadata transaction and where the log cannot be folded.
             foldable: the offset is not before the first one at which the log, as far as it is
             kept, can be folded. after_snapshot: this process of the node has loaded a snapshot.
    Units:   offset: the last one that the image holds; before: that of the image before it.
    """

    node: int
    offset: int
    before: int | None
    high_watermark: int | None
    digest: str | None
    fold: str | None
    foldable: bool
    ends_a_batch: bool
    in_transaction: bool
    is_empty: bool
    may_be_empty: bool
    after_snapshot: bool


@dataclass(frozen=True, slots=True)
class Images:
    """The digests of the fold of a committed log.

    Shapes:  digests: the last offset of a batch -> the digest, None inside a metadata transaction.
             Where the log begins with a snapshot, the first one is of that.
    """

    digests: Mapping[int, str | None]

    @property
    def first(self) -> int | None:
        """The first offset at which the log was folded, None where it was not."""
        return next(iter(self.digests), None)


class ImageFold:
    """The fold of a committed log as it comes, as far as its records fit the state before them.

    Shapes:  problem: why it could not be folded further.
    """

    def __init__(self) -> None:
        self._image = MetadataImage.EMPTY
        self._begins_at = 0
        self._digests: dict[int, str | None] = {}
        self.problem: Problem | None = None

    def load(self, start: Start) -> None:
        """Begin from a snapshot."""
        self._begins_at = start.end_offset
        try:
            self._image = image_from_records(start.records)
        except ReplayError as error:
            self._fail(error)
        self.note(start.end_offset - 1, is_open=False)

    def begin_at(self, offset: int) -> None:
        """With no snapshot before it the fold begins where the first batch ends."""
        if not self._begins_at:
            self._digests = {offset: None, **self._digests}

    def take(self, operation: Operation) -> None:
        """Apply an operation, without what the snapshot has of it."""
        if self.problem is not None:
            return
        try:
            for entry in operation.entries:
                if entry.offset >= self._begins_at:
                    self._image = apply(self._image, entry.record, offset=entry.offset)
        except ReplayError as error:
            self._fail(error)

    def _fail(self, error: ReplayError) -> None:
        why = f"the log cannot be folded: {error}"
        self.problem = Problem(evidence=Evidence.IMAGES, why=why)

    def note(self, offset: int, *, is_open: bool) -> None:
        """Keep the digest as of an offset; is_open: a metadata transaction is."""
        if self.problem is None and offset >= self._begins_at - 1:
            self._digests[offset] = None if is_open else self._image.digest()

    def images(self) -> Images:
        """The digests that were noted."""
        return Images(self._digests)


def images(run: TracedRun) -> Images:
    """Context: the fold of the log, at the end of each batch.

    A plain log needs it where its snapshots end, and there only.
    """
    evidence, fold = run.evidence, ImageFold()
    if not evidence.foldable:
        return fold.images()
    only = None if evidence.is_run else snapshot_ends(evidence)
    if evidence.start is not None:
        fold.load(evidence.start)
    operations = iter(evidence.history.operations)
    following = next(operations, None)
    for number, batch in enumerate(evidence.committed):
        while following is not None and following.end <= batch.last_offset:
            fold.take(following)
            following = next(operations, None)
        if only is None or batch.last_offset in only:
            fold.note(batch.last_offset, is_open=batch.last_offset in evidence.history.open_at)
        elif not number:
            fold.begin_at(batch.last_offset)
    if fold.problem is not None:
        run.problem(fold.problem)
    return fold.images()


def snapshot_ends(run: Run) -> frozenset[int]:
    """The last offsets that the snapshots beside the logs of a run hold."""
    return frozenset(end - 1 for node in run.nodes for end, _, _ in node.snapshots)


class _Process:
    """What a process of a node has published."""

    def __init__(self) -> None:
        self.offset: int | None = None
        self.has_loaded = False


@history(Publication, reads=("publish", "raft_event"))
def publications(run: TracedRun, judge: Judge) -> None:
    """Each image, with the high watermark before it: by events, at one number the images first."""
    folds, first = run.context(images), run.first_image
    empty, may_be_empty = MetadataImage.EMPTY.digest(), run.promises.empty_images
    processes: dict[tuple[int, Any], _Process] = {}
    high_watermark: int | None = None
    published = ((row["seq"], 0, row) for row in run.rows("publish"))
    marks = ((row["seq"], 1, row) for row in run.rows("raft_event") if row["kind"] == "hw")
    for _, is_mark, row in merge(published, marks, key=lambda event: event[:2]):
        if is_mark:
            mark = row["offset"]
            if mark is not None and (high_watermark is None or mark > high_watermark):
                high_watermark = mark
            continue
        process = processes.setdefault((row["node"], row["incarnation"]), _Process())
        offset, digest = row["offset"], row["image_hash"]
        process.has_loaded |= _loads_snapshot(row, first)
        step = Publication(
            node=row["node"],
            offset=offset,
            before=process.offset,
            high_watermark=high_watermark,
            digest=digest,
            fold=folds.digests.get(offset),
            foldable=offset >= first,
            ends_a_batch=offset in folds.digests,
            in_transaction=bool(row["in_tx"]),
            is_empty=digest == empty,
            may_be_empty=may_be_empty,
            after_snapshot=process.has_loaded,
        )
        judge.take(step, offset, event=row["seq"])
        process.offset = offset


def _loads_snapshot(row: Row, first: int) -> bool:
    """The image is of a snapshot that the log, as far as it is kept, has led to."""
    return bool(row["manifest"] == SNAPSHOT and row["offset"] > first)
