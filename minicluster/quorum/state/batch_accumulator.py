"""The batches that a leader is about to write: they wait for their linger time.

Records of one linger time, from the first on, form one batch. Control records form a batch of
their own, are due at once with everything before them, and keep their place in the order. Records
that are appended after them, before they are written, are written by the next turn.

Source:  BatchAccumulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicluster.log.batch import Record, RecordBatch, metadata_batch
from minicluster.log.control import control_batch
from minicluster.log.format.limits import MAX_BATCH_BYTES, MAX_RECORDS_PER_BATCH
from minicluster.protocol.records import VersionedRecord, encode_record
from minicluster.quorum.errors import IllegalArgument, NotLeader, RecordBatchTooLarge


class BatchAccumulator:
    """The unwritten batches of one leader epoch."""

    def __init__(self, *, epoch: int, next_offset: int, linger_ms: int) -> None:
        self.epoch = epoch
        self.next_offset = next_offset
        self._linger_ms = linger_ms
        self._done: list[RecordBatch] = []
        self._done_ms: int | None = None  # the time of control records among what is done
        self._open: list[VersionedRecord | bytes] = []
        self._open_values: list[bytes] = []
        self._open_base = next_offset
        self._open_ms = 0
        self._due_ms: int | None = None

    @property
    def due_ms(self) -> int | None:
        """The time at which the batches are to be written; None if there are none."""
        return self._due_ms if self._done_ms is None else self._done_ms

    def append(self, epoch: int, records: Sequence[VersionedRecord | bytes], now_ms: int) -> int:
        """Add records; -> offset of the last one.

        Errors:  NotLeader below the leader's epoch; IllegalArgument above it, and for no or too
                 many records; RecordBatchTooLarge for more than MAX_BATCH_BYTES.
        """
        if epoch < self.epoch:
            raise NotLeader(f"append for epoch {epoch} by the leader of epoch {self.epoch}")
        if epoch > self.epoch:
            raise IllegalArgument(f"append for epoch {epoch}: the leader is in {self.epoch}")
        if not 0 < len(records) <= MAX_RECORDS_PER_BATCH:
            raise IllegalArgument(f"append of {len(records)} records at once")
        # The whole append or nothing. Otherwise a change of leader could commit half of a decision.
        values = [
            encode_record(record) if isinstance(record, VersionedRecord) else record
            for record in records
        ]
        if (size := sum(map(len, values))) > MAX_BATCH_BYTES:
            raise RecordBatchTooLarge(f"append of {size} bytes: a batch holds {MAX_BATCH_BYTES}")
        if self._open and len(self._open) + len(records) > MAX_RECORDS_PER_BATCH:
            self.complete_current_batch()
        if not self._open:
            self._open_base, self._open_ms = self.next_offset, now_ms
        self._open.extend(records)
        self._open_values.extend(values)
        self.next_offset += len(records)
        if self._due_ms is None:
            self._due_ms = now_ms + self._linger_ms
        return self.next_offset - 1

    def append_control(self, messages: Sequence[Any], now_ms: int) -> int:
        """Add control records as a batch that is due at once; -> offset of the last one."""
        self.complete_current_batch()
        self._done.append(control_batch(self.next_offset, self.epoch, now_ms, messages))
        self.next_offset += len(messages)
        self._done_ms, self._due_ms = now_ms, None
        return self.next_offset - 1

    def drain(self) -> list[RecordBatch]:
        """Take out what is due, in order of offsets.

        Source:  BatchAccumulator.drain, forceDrain (DrainStatus).
        """
        # Control records force out what they have completed. What came after them keeps its own
        # linger time; otherwise their write would cut its batch short, which Kafka's does not.
        if self._done_ms is None:
            self.complete_current_batch()
            self._due_ms = None
        drained, self._done, self._done_ms = self._done, [], None
        return drained

    def complete_current_batch(self) -> None:
        """Let the next records begin a batch of their own."""
        if not self._open:
            return
        records, self._open = self._open, []
        values, self._open_values = self._open_values, []
        if isinstance(records[0], bytes):
            raw = tuple(
                Record(self._open_base + i, self._open_ms, None, value)
                for i, value in enumerate(records)
                if isinstance(value, bytes)
            )
            self._done.append(RecordBatch.of(raw, leader_epoch=self.epoch))
        else:
            typed = [record for record in records if isinstance(record, VersionedRecord)]
            batch = metadata_batch(self._open_base, self.epoch, self._open_ms, typed, values)
            self._done.append(batch)
