"""The offsets of a controller, and the images to which it goes back.

The active controller applies records when it decides them, before they are committed: otherwise the
next request would be decided from a state that is about to change. So its image is ahead of what is
committed, by what is in flight, and two ends of the log matter::

    committed        what a majority has; a deposed controller goes back to it
    next             where the next record goes; decisions are made from here

A metadata transaction (KIP-868) moves the committed state further back: until its end is committed,
an AbortTransaction can still take it all away, so what is *stable* ends where it began. Responses
wait for what is stable, and readers see no more.

Source:  OffsetControlManager.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from minicluster.values import Value


class Point(Value):
    """The state up to an offset, enough to go back to it.

    Shapes:  before_transaction is (offset, image) at which an open transaction began.
    """

    end_offset: int
    image: MetadataImage
    before_transaction: tuple[int, MetadataImage] | None = None

    @property
    def stable_end(self) -> int:
        """The offset below which nothing can be undone; an open transaction still can."""
        return self.end_offset if self.before_transaction is None else self.before_transaction[0]

    @property
    def stable_image(self) -> MetadataImage:
        """The image without an open transaction."""
        return self.image if self.before_transaction is None else self.before_transaction[1]


class OffsetControl:
    """The end of the log as it is decided, as it is committed, and the points between.

    Units:   offsets are exclusive ends; last_append_end is 0 before the first append of an epoch.
    """

    __slots__ = (
        "_points",
        "before_transaction",
        "committed",
        "high_watermark",
        "last_append_end",
        "next_offset",
    )

    def __init__(self, image: MetadataImage) -> None:
        self.next_offset = 0
        self.high_watermark = 0
        self.last_append_end = 0
        self.before_transaction: tuple[int, MetadataImage] | None = None
        self.committed = Point(0, image)
        self._points: deque[Point] = deque()

    def replay(self, message: Any, offset: int, image: MetadataImage) -> MetadataImage | None:
        """Begin or end a metadata transaction.

        Shapes:  -> for one that is aborted, the image to go back to.
        Errors:  ReplayError for a transaction in a transaction, and for an end without a begin:
                 no controller could go back to the right image.
        Source:  OffsetControlManager.replay.
        """
        begun = self.before_transaction
        if isinstance(message, BeginTransactionRecord):
            if begun is not None:
                why = f"the transaction at {begun[0]} was never closed"
                raise ReplayError(f"offset {offset}: BeginTransactionRecord: {why}")
            self.before_transaction = (offset, image)
        elif isinstance(message, EndTransactionRecord | AbortTransactionRecord):
            if begun is None:
                kind = type(message).__name__
                raise ReplayError(f"offset {offset}: {kind}: there is no open transaction")
            self.before_transaction = None
            return begun[1] if isinstance(message, AbortTransactionRecord) else None
        return None

    def claim(self, next_offset: int, image: MetadataImage) -> None:
        """Begin an epoch: everything below the offset is decided, though not all is committed."""
        self.next_offset, self.last_append_end = next_offset, 0
        self._points.clear()
        self._points.append(self.point(next_offset, image))

    def renounce(self) -> Point:
        """End an epoch: back to what is committed."""
        self._points.clear()
        self.before_transaction = self.committed.before_transaction
        self.next_offset = self.high_watermark
        return self.committed

    def replayed(self, end_offset: int, image: MetadataImage) -> None:
        """A standby has applied committed records up to the offset."""
        self.next_offset = self.high_watermark = end_offset
        self.committed = Point(end_offset, image, self.before_transaction)

    def point(self, end_offset: int, image: MetadataImage) -> Point:
        """The state now, as that up to an offset."""
        return Point(end_offset, image, self.before_transaction)

    def appended(self, point: Point) -> None:
        """The active controller has applied a batch, and appends it."""
        self.next_offset = self.last_append_end = point.end_offset
        self._points.append(point)

    def commit(self, high_watermark: int) -> None:
        """Advance what is committed."""
        while self._points and self._points[0].end_offset <= high_watermark:
            self.committed = self._points.popleft()
        self.high_watermark = max(self.high_watermark, high_watermark)
