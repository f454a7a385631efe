"""The indexes beside the batches of a log: aborted transactions, places of offsets and times.

Kafka keeps one index of aborted transactions per segment (KIP-98); an entry lies in the file of the
segment that holds its marker. Here the log keeps one, in the order of the markers, which loses
entries as the files of those segments would. Places of offsets and times are made where Kafka's own
nodes are to read the log.

Source:  TransactionIndex, AbortedTxn, LocalLog.collectAbortedTransactions; OffsetIndex, TimeIndex,
         LogSegment.append, LogSegment.onBecomeInactiveSegment.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from minicluster.log.batch import NO_TIMESTAMP, RecordBatch
from minicluster.values import Value

OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
_OFFSET = struct.Struct(">ii")  # offset in the segment, position of its batch
_TIME = struct.Struct(">qi")  # greatest timestamp so far, its offset in the segment
_ABORTED = struct.Struct(">hqqqq")
_ABORTED_VERSION = 0


class AbortedTransaction(Value):
    """One aborted transaction.

    Shapes:  last_offset: that of its marker. last_stable_offset: the one right after the marker was
             appended, whatever the high watermark was.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one log; their last offsets ascend."""

    __slots__ = ("_aborted",)

    def __init__(self) -> None:
        self._aborted: list[AbortedTransaction] = []

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return iter(self._aborted)

    def append(self, aborted: AbortedTransaction) -> None:
        """Add a transaction; one that the index has already is ignored: the log is read again."""
        if not self._aborted or aborted.last_offset > self._aborted[-1].last_offset:
            self._aborted.append(aborted)

    def collect(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The transactions with records at or above the start and below the end (exclusive).

        The search ends at the first marker after which all below the end was decided.
        """
        overlapping = []
        for aborted in self._aborted[self._position(start_offset) :]:
            if aborted.first_offset < end_offset:
                overlapping.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                break
        return overlapping

    def truncate(self, offset: int) -> None:
        """Drop the transactions whose marker lies at or above an offset."""
        del self._aborted[self._position(offset) :]

    def delete_before(self, offset: int) -> None:
        """Drop the transactions whose marker lies below an offset."""
        del self._aborted[: self._position(offset)]

    def replace_below(self, offset: int, aborted: Iterable[AbortedTransaction]) -> None:
        """Put the transactions that compaction has left in place of those below an offset."""
        self._aborted[: self._position(offset)] = aborted

    def _position(self, offset: int) -> int:
        return bisect_left(self._aborted, offset, key=lambda aborted: aborted.last_offset)


# --- the index files of a segment, as bytes -----------------------------------------------------


class SegmentIndexes(Value):
    """The contents of the two index files of a segment."""

    offsets: bytes
    times: bytes


def segment_indexes(
    base_offset: int, batches: Iterable[RecordBatch], interval_bytes: int
) -> SegmentIndexes:
    """The indexes of a segment: an entry for so many bytes, and the greatest timestamp at the end.

    Shapes:  interval_bytes: index.interval.bytes.
    """
    offsets, times = bytearray(), bytearray()
    position = since_entry = 0
    latest, latest_offset, indexed = NO_TIMESTAMP, base_offset, NO_TIMESTAMP
    for batch in batches:
        if batch.max_timestamp > latest:
            latest, latest_offset = batch.max_timestamp, batch.last_offset
        if since_entry > interval_bytes:
            offsets += _OFFSET.pack(batch.last_offset - base_offset, position)
            if latest > indexed:
                times += _TIME.pack(latest, latest_offset - base_offset)
                indexed = latest
            since_entry = 0
        position += batch.size
        since_entry += batch.size
    if latest > indexed:
        times += _TIME.pack(latest, latest_offset - base_offset)
    return SegmentIndexes(bytes(offsets), bytes(times))


def encode_aborted(aborted: Iterable[AbortedTransaction]) -> bytes:
    """The content of a transaction index."""
    return b"".join(
        _ABORTED.pack(
            _ABORTED_VERSION,
            transaction.producer_id,
            transaction.first_offset,
            transaction.last_offset,
            transaction.last_stable_offset,
        )
        for transaction in aborted
    )
