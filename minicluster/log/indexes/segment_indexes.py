"""The index files beside a segment, as bytes: places of offsets and times, aborted transactions.

Source:  OffsetIndex, TimeIndex, AbortedTxn, LogSegment.append, LogSegment.onBecomeInactiveSegment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from minicluster.log.batch import NO_TIMESTAMP, RecordBatch
from minicluster.log.indexes.transaction_index import AbortedTransaction

OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
INTERVAL_BYTES = 4096  # the default of index.interval.bytes
_OFFSET = struct.Struct(">ii")  # offset in the segment, position of its batch
_TIME = struct.Struct(">qi")  # greatest timestamp so far, its offset in the segment
_ABORTED = struct.Struct(">hqqqq")
_ABORTED_VERSION = 0


@dataclass(frozen=True, slots=True)
class SegmentIndexes:
    """The contents of the two index files of a segment."""

    offsets: bytes
    times: bytes


def segment_indexes(base_offset: int, batches: Iterable[RecordBatch]) -> SegmentIndexes:
    """The indexes of a segment: an entry for every 4 KiB, and the greatest timestamp at the end."""
    offsets, times = bytearray(), bytearray()
    position = since_entry = 0
    latest, latest_offset, indexed = NO_TIMESTAMP, base_offset, NO_TIMESTAMP
    for batch in batches:
        if batch.max_timestamp > latest:
            latest, latest_offset = batch.max_timestamp, batch.last_offset
        if since_entry > INTERVAL_BYTES:
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
            one.producer_id,
            one.first_offset,
            one.last_offset,
            one.last_stable_offset,
        )
        for one in aborted
    )
