"""Batch headers without their batches: ranges of bytes for readers that share a segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.log import heads
from minicluster.log.batch import HEADER_BYTES
from minicluster.log.segment import segment_name, write_segment
from minicluster.protocol import records as r
from tests.verify.handwritten.log import cluster


@pytest.mark.parametrize("mask", [0x01, 0x40, 0x80])
def test_the_ranges_hold_every_byte_with_any_damaged_header(
    mask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is passed over for its offsets would be lost without a word."""
    monkeypatch.setattr(heads, "SPLIT_BYTES", 200)
    log = cluster()
    for _ in range(4):
        log.op(r.NoOpRecord())
    segment = tmp_path / segment_name(0)
    write_segment(segment, log.batches)
    content = segment.read_bytes()
    begins = sum(batch.size for batch in log.batches[:3])
    for place in range(begins, begins + HEADER_BYTES):
        damaged = bytearray(content)
        damaged[place] ^= mask
        segment.write_bytes(damaged)
        ranges = list(heads.byte_ranges(segment))

        assert [start for start, _ in ranges] == [0, *(end for _, end in ranges[:-1])], place
        assert ranges[-1][1] == len(content)
