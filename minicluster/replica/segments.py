"""The segments of a log, as retention and compaction see them.

Source:  LogSegment, LogSegments.
"""

from __future__ import annotations

from minicluster.log import Log, RecordBatch
from minicluster.log.batch import NO_TIMESTAMP
from minicluster.values import Value


class SegmentView(Value):
    """One segment with its batches.

    Shapes:  next_offset is where the next segment begins, the log end for the active one.
    """

    base_offset: int
    next_offset: int
    is_active: bool
    modified_ms: int
    batches: tuple[RecordBatch, ...]

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return sum(batch.size for batch in self.batches)

    @property
    def first_timestamp(self) -> int:
        """The greatest timestamp of the first batch, -1 without one."""
        return self.batches[0].max_timestamp if self.batches else NO_TIMESTAMP

    @property
    def highest_timestamp(self) -> int:
        """The greatest timestamp of its records, -1 without one."""
        return max((batch.max_timestamp for batch in self.batches), default=NO_TIMESTAMP)

    @property
    def largest_timestamp(self) -> int:
        """The greatest timestamp of its records, else the time of its last write."""
        highest = self.highest_timestamp
        return highest if highest >= 0 else self.modified_ms


def segments_of(log: Log, *, with_deleted: bool = False) -> list[SegmentView]:
    """All segments, oldest first. One is last written when the next one begins.

    Shapes:  with_deleted: with the batches below the log start that their segment still holds.
    """
    views, segments = [], log.segments
    batches = (*log.deleted, *log.batches) if with_deleted else log.batches
    first = 0
    for index, segment in enumerate(segments):
        is_active = index == len(segments) - 1
        next_offset = log.end_offset if is_active else segments[index + 1].base_offset
        end = first
        while end < len(batches) and (is_active or batches[end].base_offset < next_offset):
            end += 1
        modified_ms = log.modified_ms if is_active else segments[index + 1].created_ms
        views.append(
            SegmentView(
                segment.base_offset, next_offset, is_active, modified_ms, batches[first:end]
            )
        )
        first = end
    return views
