"""The images that nodes publish, beside the fold of the committed log.

========================  ========================================================================
takes                     ``TracedRun.images``; ``publish`` and ``raft_event`` rows
keeps                     by process of a node the image that it published last; the quorum's high
                          watermark
yields                    ``Publication``
========================  ========================================================================
"""

from __future__ import annotations

from heapq import merge
from typing import Any

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.values import dataclass
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

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


class _Process:
    """What a process of a node has published."""

    def __init__(self) -> None:
        self.offset: int | None = None
        self.has_loaded = False


@history(Publication, reads=("publish", "raft_event"))
def publications(run: TracedRun, judge: Judge) -> None:
    """Each image, with the high watermark before it: by events, at one number the images first."""
    folds, first = run.images, run.first_image
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
