"""One partition of an internal topic, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.coordinator.runtime.internal_log import (
    AppendFailed,
    EndTxnMarker,
    Producer,
    Verified,
)
from minicluster.log import Record, RecordBatch
from minicluster.protocol import ErrorCode


class Log:
    """A partition in memory.

    Shapes:  mark: the high watermark; None: all that is written is replicated at once.
    """

    def __init__(self, mark: int | None = 0) -> None:
        self.batches: list[RecordBatch] = []
        self.mark = mark
        self.refusal: ErrorCode | None = None
        self.after_commit = ErrorCode.NONE

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: Producer | None,
        now_ms: int,
    ) -> int:
        if self.refusal is not None:
            raise AppendFailed(self.refusal, "refused")
        made = [Record(i, now_ms, key, value) for i, (key, value) in enumerate(records)]
        self.batches.append(RecordBatch.of(made, leader_epoch=0).with_base(self.end, 0))
        return self.end

    def error_of_committed(self, partition: int) -> ErrorCode:
        return self.after_commit

    def append_end_txn_marker(self, partition: int, marker: EndTxnMarker, now_ms: int) -> int:
        if self.refusal is not None:
            raise AppendFailed(self.refusal, "refused")
        raise AssertionError("no transactions here")

    def verify(self, partition: int, producer: Producer, done: Verified, now_ms: int) -> None:
        raise AssertionError("no transactions here")

    def read(self, partition: int, offset: int, max_bytes: int) -> Sequence[RecordBatch]:
        return [b for b in self.batches if b.base_offset >= offset][:1]

    def start_offset(self, partition: int) -> int:
        return 0

    def high_watermark(self, partition: int) -> int:
        return self.end if self.mark is None else self.mark
