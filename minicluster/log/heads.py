"""Batch headers of a segment: places and offsets of its batches without decoding them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from minicluster.log.batch import HEADER_BYTES, LENGTH_END
from minicluster.values import Value

NO_LIMIT = 2**63 - 1
SPLIT_BYTES = 2 << 20
_HEAD = struct.Struct(">qi11xi")  # base offset, length, last offset delta


class BatchHead(Value):
    """One batch by its header: its bytes ``[position, end)`` and its offsets, both included."""

    position: int
    end: int
    base_offset: int
    last_offset: int

    def is_between(self, first: int, last: int) -> bool:
        """It holds offsets between two, or contradicts itself, which the reader is to report."""
        if not 0 <= self.base_offset <= self.last_offset:
            return True
        return self.base_offset <= last and first <= self.last_offset


def batch_heads(path: Path) -> Iterator[BatchHead]:
    """The headers of the whole batches of a file, up to the first that leads beyond its end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        position = 0
        while position + _HEAD.size <= size:
            file.seek(position)
            # A crash can cut a file within a header: what is left still says how long it would be.
            header = file.read(HEADER_BYTES).ljust(HEADER_BYTES, b"\0")
            base, length, delta = _HEAD.unpack_from(header)
            end = position + LENGTH_END + length
            if length <= 0 or end > size:
                return
            yield BatchHead(position, end, base, base + delta)
            position = end


def byte_ranges(path: Path, first: int = 0, last: int = NO_LIMIT) -> Iterator[tuple[int, int]]:
    """Byte ranges of about ``SPLIT_BYTES`` that hold offsets between two, both included.

    A file whose headers do not lead to its end comes as one range: the reader reports the damage.
    """
    size = path.stat().st_size
    start: int | None = None
    reached = 0
    for head in batch_heads(path):
        reached = head.end
        if not head.is_between(first, last):
            if start is not None:
                yield start, head.position
                start = None
            continue
        if start is None:
            start = head.position
        if head.end - start >= SPLIT_BYTES:
            yield start, head.end
            start = None
    if reached < size:
        yield (reached if start is None else start), size
    elif start is not None:
        yield start, size
