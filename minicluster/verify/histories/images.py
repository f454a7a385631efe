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

from collections.abc import Collection, Mapping
from heapq import merge
from typing import Any

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.snapshot import image_from_records
from minicluster.values import dataclass
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


def images(run: TracedRun) -> Images:
    """Context: the fold of the log, as far as its records fit the state before them.

    A plain log needs it where its snapshots end, and there only.
    """
    evidence = run.evidence
    return Images(_digests(run, None if evidence.is_run else snapshot_ends(evidence)))


def snapshot_ends(run: Run) -> frozenset[int]:
    """The last offsets that the snapshots beside the logs of a run hold."""
    return frozenset(end - 1 for node in run.nodes for end, _, _ in node.snapshots)


def _digests(run: TracedRun, only: Collection[int] | None) -> dict[int, str | None]:
    evidence = run.evidence
    digests: dict[int, str | None] = {}
    skip_to = 0
    if not evidence.foldable:
        return digests
    try:
        image = MetadataImage.EMPTY
        if evidence.start is not None:
            skip_to = evidence.start.end_offset
            image = image_from_records(evidence.start.records)
            digests[skip_to - 1] = image.digest()
        operations = iter(evidence.history.operations)
        following = next(operations, None)
        for batch in evidence.committed:
            while following is not None and following.end <= batch.last_offset:
                for entry in following.entries:
                    if entry.offset >= skip_to:
                        image = apply(image, entry.record, offset=entry.offset)
                following = next(operations, None)
            is_needed = only is None or not digests or batch.last_offset in only
            if batch.last_offset >= skip_to and is_needed:
                is_open = batch.last_offset in evidence.history.open_at
                digests[batch.last_offset] = None if is_open else image.digest()
    except ReplayError as error:
        why = f"the log cannot be folded: {error}"
        run.problem(Problem(evidence=Evidence.IMAGES, why=why))
    return digests


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
