"""A log in memory: what the quorum's replicas and a partition's replicas both append to.

It remembers the offset up to which it was flushed: a crash loses what lies above. It reads and
truncates as Kafka does, by whole batches, and never looks into a record.

    start offset          flushed offset        end offset
    |---------------------|---------------------|
      a crash keeps this    a crash may lose this

Three things move the start or the end, and they are not the same: ``truncate`` takes away the end
(records that a new leader does not have), ``delete_before`` the beginning (retention, snapshots,
DeleteRecords; the offsets that remain stay as they are), ``truncate_fully`` everything, and the log
begins again at an offset that it did not hold.

Source:  UnifiedLog, LocalLog, KafkaRaftLog.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from minicluster.log.batch import RecordBatch
from minicluster.log.epochs import LeaderEpochs
from minicluster.log.indexes import AbortedTransaction, TransactionIndex
from minicluster.values import Value


class Segment(Value):
    """The beginning of a segment; it reaches to the next one's.

    Shapes:  producers: the snapshot of their states there, as the owner of the log has it.
    """

    base_offset: int
    created_ms: int = 0
    producers: tuple[Any, ...] = ()


SnapshotId = tuple[int, int]  # (end offset, exclusive; epoch)


def snapshot_order(snapshot_id: SnapshotId) -> tuple[int, int]:
    """The order of snapshots: the epoch, then the end offset.

    Shapes:  the two differ where a state machine gave a wrong epoch, which Kafka lets pass.
    Source:  OffsetAndEpoch.compareTo.
    """
    return snapshot_id[1], snapshot_id[0]


class Log:
    """Batches between a start offset and an end offset (exclusive), with their leader epochs.

    Shapes:  ``segments`` are never none, and the last one is active.
             ``cleaned_offset``: everything below was compacted.
             ``deleted``: the batches below the start whose segment is still there. Readers do not
             see them, and Kafka counts their bytes and timestamps until the segment is deleted.
    Units:   ``modified_ms``: the time of the last append by a replica, 0 before one.
    """

    def __init__(self, start_offset: int = 0) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.flushed_offset = start_offset
        self.epochs = LeaderEpochs()
        self.transactions = TransactionIndex()
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.segments: list[Segment] = [Segment(start_offset)]
        self.modified_ms = 0
        self.cleaned_offset = start_offset
        self.deleted: tuple[RecordBatch, ...] = ()
        self._batches: list[RecordBatch] = []
        self._last_offsets: list[int] = []

    # --- reading ----------------------------------------------------------------------------

    @property
    def batches(self) -> tuple[RecordBatch, ...]:
        """All batches, oldest first; the first may begin below the start offset."""
        return tuple(self._batches)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, else of the latest snapshot, else 0."""
        if (latest := self.epochs.latest) is not None:
            return latest
        return snapshot[1] if (snapshot := self.latest_snapshot) is not None else 0

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The snapshot with the highest epoch, and the highest end offset in it."""
        return max(self.snapshots, key=snapshot_order) if self.snapshots else None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        """The snapshot with the lowest epoch, and the lowest end offset in it."""
        return min(self.snapshots, key=snapshot_order) if self.snapshots else None

    @property
    def is_empty(self) -> bool:
        """It holds no record."""
        return not self._batches

    def read(
        self, offset: int, max_bytes: int | None = None, until: int | None = None
    ) -> tuple[RecordBatch, ...]:
        """Whole batches from the one that holds an offset on.

        Units:   bytes; offsets. At least one batch if there is any, then as many as fit.
        Shapes:  ``until`` is exclusive: a batch that reaches it is not read.
        """
        batches = self._batches
        first = index = bisect_left(self._last_offsets, offset)
        if first == len(batches):
            return ()
        bytes_left = max_bytes
        while index < len(batches):
            batch = batches[index]
            if until is not None and batch.last_offset >= until:
                break
            if bytes_left is not None:
                if index > first and batch.size > bytes_left:
                    break
                bytes_left -= batch.size
            index += 1
        return tuple(batches[first:index])

    def batches_from(self, offset: int) -> tuple[RecordBatch, ...]:
        """All batches that reach an offset."""
        return tuple(self._batches[bisect_left(self._last_offsets, offset) :])

    def batch_at(self, offset: int) -> RecordBatch | None:
        """The batch that holds an offset, or the next one after it."""
        index = bisect_left(self._last_offsets, offset)
        return self._batches[index] if index < len(self._batches) else None

    def segment_end(self, offset: int) -> int | None:
        """The base offset of the segment after the one that holds an offset; None in the active."""
        if len(self.segments) == 1:
            return None
        index = bisect_right(self.segments, offset, key=lambda segment: segment.base_offset)
        return self.segments[index].base_offset if index < len(self.segments) else None

    def segment_base(self, offset: int) -> int:
        """The base offset of the segment that holds an offset."""
        index = bisect_right(self.segments, offset, key=lambda segment: segment.base_offset)
        return self.segments[max(index - 1, 0)].base_offset

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """Where an epoch ends in this log: (largest epoch not above it, end offset)."""
        return self.epochs.end_offset_for(epoch, self.end_offset)

    # --- writing ----------------------------------------------------------------------------

    def append(self, batch: RecordBatch) -> None:
        """Append one batch; its offsets must not be below the end.

        Errors:  ValueError if they are: the caller's bug.
        """
        if batch.base_offset < self.end_offset:
            raise ValueError(f"{batch} begins below the log end {self.end_offset}")
        latest, epoch, last_offset = self.epochs.latest, batch.leader_epoch, batch.last_offset
        if epoch >= 0 and (latest is None or epoch > latest):
            self.epochs.assign(epoch, batch.base_offset)
        self._batches.append(batch)
        self._last_offsets.append(last_offset)
        self.end_offset = last_offset + 1

    def extend(self, batches: Iterable[RecordBatch]) -> None:
        """Append several batches."""
        for batch in batches:
            self.append(batch)

    def roll(self, segment: Segment) -> None:
        """Begin a segment, unless one begins there."""
        if segment.base_offset > self.segments[-1].base_offset:
            self.segments.append(segment)

    def flush(self) -> None:
        """Write what is in the log to disk: a crash loses nothing of it from now on."""
        self.flushed_offset = self.end_offset

    def truncate(self, offset: int) -> bool:
        """Truncate to an offset; a batch that holds it goes as a whole.

        Shapes:  -> whether records or epochs were truncated. The log then ends at the offset.
        """
        if offset > self.end_offset:
            return False
        entries = self.epochs.entries
        keep = bisect_left(self._last_offsets, offset)
        cut = keep < len(self._batches) or offset < self.end_offset
        del self._batches[keep:], self._last_offsets[keep:]
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        # A segment that begins at the offset stays, empty and active (LocalLog.truncateTo): the
        # next record comes into a file of that name.
        while self.segments[-1].base_offset > offset and len(self.segments) > 1:
            self.segments.pop()
        if self.segments[0].base_offset > offset:
            self.segments = [Segment(offset)]
        self.flushed_offset = min(self.flushed_offset, offset)
        # Records that come in their place were never compacted.
        self.cleaned_offset = min(self.cleaned_offset, offset)
        self.deleted = tuple(batch for batch in self.deleted if batch.last_offset < offset)
        self.epochs.truncate_from_end(offset)
        self.transactions.truncate(offset)
        return cut or entries != self.epochs.entries

    def truncate_fully(self, offset: int) -> None:
        """Drop everything and begin again, empty, at an offset."""
        self._batches.clear()
        self._last_offsets.clear()
        self.deleted = ()
        self.epochs.clear()
        self.transactions.truncate(0)
        self.segments = [Segment(offset)]
        self.cleaned_offset = offset
        self.start_offset = self.end_offset = self.flushed_offset = offset

    def delete_before(self, offset: int, *, keeps_segment: bool = False) -> bool:
        """Let the log begin at an offset; batches wholly below it go.

        Shapes:  -> whether the start moved. An offset above the end moves it to the end.
                 keeps_segment: those in a segment that stays become ``deleted``.
        """
        offset = min(offset, self.end_offset)
        moved = offset > self.start_offset
        segments = self.segments
        first_segment_goes = len(segments) > 1 and segments[1].base_offset <= offset
        if not moved and not first_segment_goes:
            return False
        while len(segments) > 1 and segments[1].base_offset <= offset:
            del segments[0]
        base = segments[0].base_offset
        drop = bisect_left(self._last_offsets, offset) if moved else 0
        deleted = (*self.deleted, *self._batches[:drop]) if keeps_segment else ()
        self.deleted = tuple(batch for batch in deleted if batch.last_offset >= base)
        del self._batches[:drop], self._last_offsets[:drop]
        self.transactions.delete_before(base)
        if moved:
            self.start_offset = offset
            self.epochs.truncate_from_start(offset)
        return moved

    def reopen(self) -> None:
        """Find the end in the records, as a start does, and forget epochs that begin from there on.

        A truncation within a batch took the batch as a whole and still ended the log at its own
        offset: that end is in no file.

        Source:  LogLoader.load, recoverLog (a log that ends below its start begins again there).
        """
        end = self.segments[-1].base_offset
        if self._last_offsets and self._last_offsets[-1] >= end:
            end = self._last_offsets[-1] + 1
        if end < self.start_offset:
            self.truncate_fully(self.start_offset)
        elif end < self.end_offset:
            self.end_offset = end
            self.flushed_offset = min(self.flushed_offset, end)
        self.epochs.truncate_from_end(self.end_offset)

    def replace_below(
        self,
        offset: int,
        batches: Sequence[RecordBatch],
        segments: Sequence[Segment],
        aborted: Sequence[AbortedTransaction],
    ) -> None:
        """Put what compaction has left in place of everything below the beginning of a segment."""
        self.transactions.replace_below(offset, aborted)
        first_kept = bisect_left(self._last_offsets, offset)
        self._batches[:first_kept] = batches
        self._last_offsets[:first_kept] = [batch.last_offset for batch in batches]
        self.segments = [*segments, *(kept for kept in self.segments if kept.base_offset >= offset)]
        self.cleaned_offset = offset
        self.deleted = tuple(batch for batch in self.deleted if batch.base_offset >= offset)

    def lose_unflushed(self) -> bool:
        """Lose everything that is not flushed, as in a crash."""
        return self.truncate(self.flushed_offset)

    def tear(self) -> bool:
        """Lose the last write, which a crash tore: recovery drops it, unless it was flushed."""
        if not self._batches:
            return False
        keep_below = max(self.start_offset, self.flushed_offset)
        return self.truncate(max(self._batches[-1].base_offset, keep_below))
