"""Which records of a committed log make one operation.

Kafka appends an operation's records in one batch; while it lingers it may merge several operations
into a batch, but it does not split one. So a batch end is an operation end, and between batch ends
nothing is promised that holds only when an operation is done. A metadata transaction (KIP-868) is
one operation, however many batches it takes; an aborted one never happened, and one that is still
open has not happened yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from minicluster.log.batch import RecordBatch
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
)
from minicluster.protocol.schema import Message


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the committed log as an operation holds it.

    Units:  ``clean_from`` is the offset of the first of the partition changes that come right
            before it in its batch, its own offset if none do; ``unseen_from`` is lower where that
            begins the batch and control batches come right before: their first offset.
    """

    offset: int
    record: Message
    version: int
    clean_from: int
    unseen_from: int


@dataclass(frozen=True, slots=True)
class Operation:
    """Records that take effect together, and the offset at which they all have."""

    end: int
    entries: tuple[Entry, ...]


class Operations:
    """Cuts a committed log into operations, batch by batch."""

    __slots__ = ("_control_from", "_open", "_transaction", "markers")

    def __init__(self) -> None:
        self.markers: list[tuple[int, str]] = []  # where transactions begin and end
        self._open: list[Entry] = []
        self._transaction = False
        self._control_from = -1  # the first offset of the control batches right before

    @property
    def waiting(self) -> int:
        """How many records of an open transaction are held back."""
        return len(self._open)

    def feed(self, batch: RecordBatch) -> list[Operation]:
        """Take one committed batch; give the operations that it completes."""
        if batch.is_control:
            self._control_from = batch.base_offset if self._control_from < 0 else self._control_from
            return []
        control_from = batch.base_offset if self._control_from < 0 else self._control_from
        self._control_from = -1
        plain: list[Entry] = []
        ended: list[Entry] = []
        change_from = -1
        for offset, versioned in enumerate(batch.metadata_records, batch.base_offset):
            record = versioned.record
            if isinstance(record, PartitionChangeRecord):
                change_from = offset if change_from < 0 else change_from
                clean_from = change_from
            else:
                clean_from, change_from = (offset if change_from < 0 else change_from), -1
            if isinstance(record, BeginTransactionRecord):
                self._transaction, self._open = True, []
                self.markers.append((offset, "Begin"))
            elif isinstance(record, EndTransactionRecord):
                ended += self._open
                self._transaction, self._open = False, []
                self.markers.append((offset, "End"))
            elif isinstance(record, AbortTransactionRecord):
                self._transaction, self._open = False, []
                self.markers.append((offset, "Abort"))
            else:
                unseen_from = control_from if clean_from == batch.base_offset else clean_from
                entry = Entry(offset, record, versioned.version, clean_from, unseen_from)
                (self._open if self._transaction else plain).append(entry)
        entries = sorted(ended + plain, key=lambda entry: entry.offset) if ended else plain
        return [Operation(batch.last_offset, tuple(entries))] if entries else []


def operations(batches: Iterable[RecordBatch]) -> Iterator[Operation]:
    """Cut a whole log into operations."""
    cutter = Operations()
    for batch in batches:
        yield from cutter.feed(batch)
