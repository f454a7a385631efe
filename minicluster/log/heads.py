"""Batch headers of a segment: places and offsets of its batches without decoding them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from minicluster.lazy_dataclass import dataclass
from minicluster.log.batch import LENGTH_END

_HEAD = struct.Struct(">qi")  # base offset, length
_DELTA = struct.Struct(">i")  # last offset delta
_DELTA_AT = 23


@dataclass(frozen=True, slots=True)
class BatchHead:
    """One batch: its bytes ``[position, end)`` and its offsets, both included."""

    position: int
    end: int
    base_offset: int
    last_offset: int


def batch_heads(path: Path) -> Iterator[BatchHead]:
    """The headers of the whole batches of a file, up to the first that leads beyond its end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        position = 0
        while position + _DELTA_AT + _DELTA.size <= size:
            file.seek(position)
            head = file.read(_DELTA_AT + _DELTA.size)
            base, length = _HEAD.unpack_from(head)
            end = position + LENGTH_END + length
            if length <= 0 or end > size:
                return
            yield BatchHead(position, end, base, base + _DELTA.unpack_from(head, _DELTA_AT)[0])
            position = end
