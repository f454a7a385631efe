"""The log of one replica with its high watermark, for leader and follower alike.

The high watermark lies between the log's start and its end. The log outlives the process; the
high watermark is restored from a checkpoint, which may be old. An old one is safe: a follower cuts
its log by leader epochs and no more by its high watermark (KIP-101), and a leader's rises again
with the first fetches.

A segment has no file of its own. It decides what retention deletes and compaction leaves alone.

Leaves out: jitter of segments.
Source:     UnifiedLog, LocalLog.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minicluster.log import Log, RecordBatch, Records
from minicluster.log.batch import NO_TIMESTAMP
from minicluster.log.indexes import AbortedTransaction
from minicluster.log.log import Segment
from minicluster.protocol import ErrorCode
from minicluster.replica.config import LogConfig
from minicluster.replica.errors import OffsetsOutOfOrder, ReplicaError, UnexpectedAppendOffset
from minicluster.replica.producers.states import ProducerStates
from minicluster.replica.segments import segments_of
from minicluster.rules import Rules
from minicluster.values import Value

_NO_RECORDS = Records()


class Read(Value):
    """The outcome of a read.

    Shapes:  found_offset is where the read began by Kafka's account: the fetch offset, or in 4.x
             the base offset of the batch that holds it. first_incomplete: the limit in bytes is
             below the size of the first batch, of which nothing is read then.
    """

    records: Records
    found_offset: int
    first_incomplete: bool = False


class _ActiveSegment(Value):
    """The bytes of the active segment, and the greatest timestamp of its first batch."""

    size: int
    first_timestamp: int


def _nothing() -> None:
    """Nothing depends on this log."""


class ReplicaLog:
    """A log and its high watermark.

    Shapes:  ``on_change`` is called with each change of the high watermark, the log start and,
             but for appends of a follower, the log end.
    """

    __slots__ = (
        *("_active", "_flushed_ms", "_is_located", "_on_change", "_rules"),
        *("high_watermark", "log", "producers"),
    )

    def __init__(
        self,
        log: Log,
        rules: Rules,
        high_watermark_checkpoint: int = 0,
        *,
        on_change: Callable[[], None] = _nothing,
    ) -> None:
        self.log = log
        self._on_change = on_change
        self._rules = rules
        self.producers = ProducerStates(log.transactions)
        self._active: _ActiveSegment | None = None  # None: to be looked up
        self._flushed_ms = log.segments[-1].created_ms
        log.reopen()
        self.high_watermark = log.start_offset
        self._is_located = False  # whether the place of the high watermark is known
        self._rebuild_producers()
        self.set_high_watermark(high_watermark_checkpoint)

    # --- high watermark -----------------------------------------------------------------------

    def set_high_watermark(self, offset: int) -> bool:
        """Take a high watermark, up or down, within the log.

        Shapes:  -> whether it changed.
        Source:  UnifiedLog.updateHighWatermark: an offset without its place in the log, but for the
                 log end, whose place is known.
        """
        old = self.high_watermark
        self.high_watermark = min(max(offset, self.log.start_offset), self.log.end_offset)
        self._is_located = offset >= self.log.end_offset
        self.producers.on_offset_passed(self.high_watermark)
        if old == self.high_watermark:
            return False
        self._on_change()
        return True

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Take a higher high watermark and ignore a lower one.

        Shapes:  -> whether it rose.
        """
        old = self.locate_high_watermark()
        if offset <= old:
            return False
        self.set_high_watermark(offset)
        self._is_located = True  # reads have found the ends of all replicas
        return True

    def locate_high_watermark(self) -> int:
        """The high watermark as a read finds it.

        As shipped the high watermark becomes what a read finds, even below the log start
        (``high_watermark_is_what_a_read_finds``, zoo Z60). It is looked for once: a truncation that
        takes the batch away which was found leaves it where it is.

        Source:  UnifiedLog.fetchHighWatermarkMetadata, LogOffsetMetadata.messageOffsetOnly.
        """
        if self._rules.high_watermark_is_what_a_read_finds and not self._is_located:
            self._is_located = True
            located = self._found_by_read(self.high_watermark)
            if located != self.high_watermark:
                self.high_watermark = located
                self._on_change()
        return self.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset below which all is committed and of no open transaction.

        Source:  UnifiedLog.lastStableOffset, maybeIncrementFirstUnstableOffset.
        """
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log.start_offset), self.high_watermark)

    # --- reading ------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, limit: int, min_one_batch: bool) -> Read:
        """Batches from the one that holds an offset on, each wholly below a limit.

        So many bytes are read, the last batch perhaps in part, and no further than to the end of a
        segment. With ``min_one_batch`` the first one is read whole whatever its size, so that a
        fetch makes progress (KIP-74).

        Errors:  OFFSET_OUT_OF_RANGE below the log start or above its end.
        Source:  LocalLog.read, LogSegment.read, ReplicaManager.readFromLog (checkFetchDataInfo).
        """
        log = self.log
        self.require_not_below_start(offset)
        if offset > log.end_offset:
            raise self._out_of_range(offset)
        if offset == log.end_offset:
            return Read(_NO_RECORDS, offset)
        first = log.batch_at(offset)
        if first is None:  # a truncation within the batch has left no record from there on
            return Read(_NO_RECORDS, log.end_offset)
        read_from = first.base_offset if self._rules.read_finds_batch_base else offset
        segment_end = log.segment_end(first.base_offset)
        if segment_end is not None:
            limit = min(limit, segment_end)
        batches = log.read(offset, max_bytes, limit) if offset < limit else ()
        if not batches:
            return Read(_NO_RECORDS, read_from)
        if max_bytes < 0:
            raise ReplicaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"at most {max_bytes} bytes")
        left = max_bytes - sum(batch.size for batch in batches)
        if left < 0 and not min_one_batch:
            return Read(_NO_RECORDS, read_from, first_incomplete=max_bytes > 0)
        after = log.batch_at(batches[-1].next_offset) if left > 0 else None
        fits = after is not None and after.last_offset < limit
        tail = after.encoded[:left] if after is not None and fits else b""
        return Read(Records(batches, tail), read_from)

    def require_not_below_start(self, offset: int) -> None:
        """Reject an offset whose records were deleted.

        Errors:  OFFSET_OUT_OF_RANGE.
        Source:  UnifiedLog.checkLogStartOffset.
        """
        if offset < self.log.start_offset:
            raise self._out_of_range(offset)

    def _out_of_range(self, offset: int) -> ReplicaError:
        log = self.log
        return ReplicaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{offset} is not in [{log.start_offset}, {log.end_offset}]",
        )

    def aborted_transactions(
        self, offset: int, records: Records, index_interval_bytes: int
    ) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions of a read that began at an offset.

        Kafka looks for its end in the index of offsets, which has an entry for some batches only,
        so that later transactions may be among them. Where there are no later ones in the segment,
        the end makes no difference, and the index is not made.

        Source:  LocalLog.addAbortedTransactions, LogSegment.append, OffsetIndex.
        """
        log = self.log
        end = log.segment_end(offset)
        most = log.transactions.collect(offset, log.end_offset if end is None else end)
        read_end = records.batches[-1].next_offset if records.batches else offset
        if not most or most == log.transactions.collect(offset, read_end):
            return tuple(most)
        size = records.size
        position = since_entry = 0
        wanted: int | None = None
        for batch in self._batches_of(log.segment_base(offset)):
            if end is not None and batch.base_offset >= end:
                break
            if wanted is None and batch.last_offset >= offset:
                wanted = position + size
            if since_entry > index_interval_bytes:
                if wanted is not None and position >= wanted:
                    return tuple(log.transactions.collect(offset, batch.last_offset))
                since_entry = 0
            position += batch.size
            since_entry += batch.size
        return tuple(most)

    def first_at(self, timestamp: int) -> tuple[int, int, int] | None:
        """The first record whose timestamp is not below: (offset, timestamp, leader epoch).

        Only the first segment that has such a record is searched, even if the record is deleted.

        Source:  UnifiedLog.searchOffsetInLocalLog, FileRecords.searchForTimestamp.
        """
        segments = segments_of(self.log, with_deleted=True)
        batches = next((s.batches for s in segments if s.largest_timestamp >= timestamp), ())
        for batch in batches:
            if batch.max_timestamp >= timestamp:
                for record in batch.records:
                    if record.timestamp >= timestamp and record.offset >= self.log.start_offset:
                        return record.offset, record.timestamp, batch.leader_epoch
        return None

    def max_timestamp(self) -> tuple[int, int, int] | None:
        """The first of the records with the highest timestamp: (offset, timestamp, epoch).

        Deleted records count as long as their segment is there.

        Source:  UnifiedLog.fetchOffsetByTimestamp, RecordBatch.offsetOfMaxTimestamp.
        """
        segments = segments_of(self.log, with_deleted=True)
        latest = max(segments, key=lambda segment: segment.highest_timestamp)
        highest = latest.highest_timestamp
        batch = next((b for b in latest.batches if b.max_timestamp == highest), None)
        for record in () if batch is None else batch.records:
            if batch is not None and record.timestamp == highest:
                return record.offset, highest, batch.leader_epoch
        return None

    def _found_by_read(self, offset: int) -> int:
        if offset >= self.log.end_offset:
            return offset
        batch = self.log.batch_at(offset)
        if batch is None:  # a truncation within the batch has left no record from there on
            return self.log.end_offset
        return batch.base_offset if self._rules.read_finds_batch_base else offset

    # --- appending ----------------------------------------------------------------------------

    def append_as_leader(self, batch: RecordBatch, config: LogConfig, now_ms: int) -> None:
        """Append a producer's batch that has the next offsets, after ``maybe_roll`` for it."""
        self._count_append((batch,), now_ms)
        self.log.append(batch)
        self._on_change()
        self.producers.update(batch)
        self._maybe_flush(config, now_ms)

    def append_as_follower(
        self, batches: Sequence[RecordBatch], leader_epoch: int, config: LogConfig, now_ms: int
    ) -> int:
        """Append fetched batches, up to the first one of a higher epoch than that of the fetch.

        The leader lost its epoch while it read, and has fetched those from the next one. They are
        fetched again in that epoch, after the comparison of the logs (KAFKA-18723).

        A log without records takes a first batch that begins below its end and reaches it.

        Shapes:  -> the last offset appended, -1 if none was.
        Errors:  OffsetsOutOfOrder, UnexpectedAppendOffset; then nothing was appended.
        """
        to_append: list[RecordBatch] = []
        for batch in batches:
            if batch.leader_epoch > leader_epoch:
                break
            to_append.append(batch)
        last_offset = -1
        for batch in to_append:
            if batch.last_offset <= last_offset:
                raise OffsetsOutOfOrder(f"{batch.last_offset} follows {last_offset}")
            last_offset = batch.last_offset
        if not to_append:
            return -1
        log, first_offset = self.log, to_append[0].base_offset
        if first_offset < log.end_offset:
            # The leader's log has nothing below this batch any more, which began below the offset
            # at which this empty log was told to begin. Rejected, it would come again and again.
            begins_again = log.start_offset == log.end_offset and last_offset >= log.end_offset
            if not begins_again:
                raise UnexpectedAppendOffset(first_offset, last_offset, log.end_offset)
            self.truncate_fully(first_offset)
        self.maybe_roll(to_append, config, now_ms)
        self._count_append(to_append, now_ms)
        for batch in to_append:
            log.epochs.assign(batch.leader_epoch, batch.base_offset)
            log.append(batch)
            self.producers.update(batch)
        self._maybe_flush(config, now_ms)
        return last_offset

    def _maybe_flush(self, config: LogConfig, now_ms: int) -> None:
        """Flush as soon as so many records are not (flush.messages; UnifiedLog.append)."""
        if self.log.end_offset - self.log.flushed_offset >= config.flush_messages:
            self._flush(now_ms)

    def flush_after(self, age_ms: int, now_ms: int) -> None:
        """Flush if the last one was so long ago (flush.ms; LogManager.flushDirtyLogs)."""
        if now_ms - self._flushed_ms >= age_ms:
            self._flush(now_ms)

    def _flush(self, now_ms: int) -> None:
        self.log.flush()
        self._flushed_ms = now_ms

    # --- segments -----------------------------------------------------------------------------

    def maybe_roll(self, batches: Sequence[RecordBatch], config: LogConfig, now_ms: int) -> None:
        """Begin a segment before an append that the active one has no room or time for.

        The time is that between the first timestamp of the segment and the greatest one of the
        append; without timestamps, the age of the segment.

        Source:  UnifiedLog.maybeRoll, LogSegment.shouldRoll, timeWaitedForRoll.
        """
        log = self.log
        active = self._active or self._find_active()
        size, highest = batches[0].size, batches[0].max_timestamp
        for batch in batches[1:]:
            size += batch.size
            highest = max(highest, batch.max_timestamp)
        first = active.first_timestamp
        waited_ms = highest - first if first >= 0 else now_ms - log.segments[-1].created_ms
        is_full = active.size > config.segment_bytes - size
        if is_full or (active.size > 0 and waited_ms > config.max_segment_ms):
            self.roll(batches[0].base_offset, now_ms)
            active = _ActiveSegment(0, NO_TIMESTAMP)
        self._active = active

    def _count_append(self, batches: Sequence[RecordBatch], now_ms: int) -> None:
        """Count what is about to be appended to the active segment."""
        active = self._active or self._find_active()
        first = active.first_timestamp
        if active.size == 0:
            first = batches[0].max_timestamp
        size = sum(batch.size for batch in batches)
        self._active = _ActiveSegment(active.size + size, first)
        self.log.modified_ms = now_ms

    def roll(self, base_offset: int, now_ms: int) -> None:
        """Begin a segment, with a snapshot of the producers. The one before is flushed."""
        self._flush(now_ms)
        self.log.roll(Segment(base_offset, now_ms, self.producers.snapshot()))
        self._active = None

    def _find_active(self) -> _ActiveSegment:
        batches = self._batches_of(self.log.segments[-1].base_offset)
        first = batches[0].max_timestamp if batches else NO_TIMESTAMP
        return _ActiveSegment(sum(batch.size for batch in batches), first)

    def _batches_of(self, segment: int) -> tuple[RecordBatch, ...]:
        """The batches from the start of a segment on, with the deleted ones that it still holds."""
        deleted = (batch for batch in self.log.deleted if batch.base_offset >= segment)
        return (*deleted, *self.log.batches_from(segment))

    def _rebuild_producers(self) -> None:
        """Load the snapshot of the active segment, and read the batches after it."""
        active = self.log.segments[-1]
        self.producers.rebuild(active.producers, self.log.batches_from(active.base_offset))

    # --- truncation ---------------------------------------------------------------------------

    def truncate(self, offset: int) -> bool:
        """Truncate the log to an offset, its high watermark with it.

        Shapes:  -> whether the log reached beyond the offset.
        """
        log = self.log
        if offset >= log.end_offset:
            log.epochs.truncate_from_end(offset)
            return False
        log.truncate(offset)
        self._on_change()
        self._active = None
        if self.high_watermark >= log.end_offset:
            self.set_high_watermark(log.end_offset)
        # From the last snapshot on, by reading: an append cannot be taken back from a producer's
        # state, which holds the last batches alone.
        if not self.producers.is_empty:
            self._rebuild_producers()
        return True

    def truncate_fully(self, offset: int) -> None:
        """Drop everything and begin again at an offset."""
        self.log.truncate_fully(offset)
        self._on_change()
        self._active = None
        self.set_high_watermark(offset)
        self._rebuild_producers()

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Move the log start up to an offset.

        Shapes:  -> whether it moved.
        Errors:  OFFSET_OUT_OF_RANGE above the high watermark.
        """
        if offset > self.high_watermark:
            raise ReplicaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the log cannot begin at {offset}, above high watermark {self.high_watermark}",
            )
        moved = self.log.delete_before(offset, keeps_segment=True)
        # Only then: each response to a follower has the leader's log start, and to look up the
        # active segment again reads all of its batches.
        if moved:
            self._on_change()
            self._active = None
            self.producers.on_offset_passed(self.log.start_offset)
        return moved
