"""The operations of a committed log.

Kafka appends the records of an operation in one batch. While it lingers it may merge several
operations into a batch, but it does not split one. So an operation ends where a batch does, and a
rule that holds only after a whole operation is judged there. A metadata transaction (KIP-868) is
one operation over any number of batches; an aborted one has no effect, an open one has none yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from minicluster.log.batch import RecordBatch
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
)
from minicluster.protocol.schema import Message
from minicluster.values import dataclass

Decoded = tuple[Any, int]
"""A record of a batch as its reader has decoded it, and its version.

The record is None if it changes a partition that the reader does not judge: it has no entry.
"""


_MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


class Entry(NamedTuple):
    """One record of an operation.

    Units:  ``clean_from`` is the offset of the first of the partition changes that come right
            before it in its batch, its own offset if none do; ``unseen_from`` is lower where that
            begins the batch and control batches come right before: their first offset.
    """

    offset: int
    record: Any
    version: int
    clean_from: int
    unseen_from: int


@dataclass(frozen=True, slots=True)
class Operation:
    """Records that take effect together, at the offset where the last of their batches ends."""

    end: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A committed log, divided into operations once.

    Shapes:  markers: (offset, ``Begin``, ``End`` or ``Abort``) of metadata transactions.
    Units:   open_at: the last offsets of batches that leave records of an open transaction.
    """

    operations: tuple[Operation, ...] = ()
    markers: tuple[tuple[int, str], ...] = ()
    open_at: frozenset[int] = frozenset()


NO_HISTORY = History()


class OperationDivider:
    """Divides a committed log into operations, batch by batch.

    Shapes:  changes: the classes of a change of a partition.
    """

    __slots__ = ("_changes", "_control_from", "_open", "_transaction", "markers")

    def __init__(self, changes: tuple[type, ...] = (PartitionChangeRecord,)) -> None:
        self._changes = changes
        self.markers: list[tuple[int, str]] = []
        self._open: list[Entry] = []
        self._transaction = False
        self._control_from = -1  # the first offset of the control batches right before

    @property
    def has_open_records(self) -> bool:
        """Records of an open transaction have no effect yet."""
        return bool(self._open)

    def on_batch(
        self, batch: RecordBatch, records: Sequence[Decoded] | None = None
    ) -> Operation | None:
        """The operation that the next committed batch completes, if it completes one.

        Shapes:  records: those of the batch, where they have been decoded by another.
        """
        if batch.is_control:
            self._control_from = batch.base_offset if self._control_from < 0 else self._control_from
            return None
        control_from = batch.base_offset if self._control_from < 0 else self._control_from
        self._control_from = -1
        entries: list[Entry] = []
        change_from = -1
        if records is None:
            records = [(placed.record, placed.version) for placed in batch.metadata_records]
        changes = self._changes
        for offset, (record, version) in enumerate(records, batch.base_offset):
            if record is None or isinstance(record, changes):
                clean_from = change_from = offset if change_from < 0 else change_from
                if record is None:
                    continue
            else:
                clean_from, change_from = (offset if change_from < 0 else change_from), -1
            unseen_from = control_from if clean_from == batch.base_offset else clean_from
            entries.append(Entry(offset, record, version, clean_from, unseen_from))
        return self.on_entries(batch.last_offset, entries)

    def on_entries(self, end: int, entries: Iterable[Entry]) -> Operation | None:
        """The same for the entries of a batch that ends at an offset."""
        plain: list[Entry] = []
        ended: list[Entry] = []
        for entry in entries:
            if isinstance(entry.record, _MARKERS):
                ended += self._on_marker(entry.offset, entry.record)
            else:
                (self._open if self._transaction else plain).append(entry)
        taking_effect = sorted(ended + plain, key=lambda placed: placed.offset) if ended else plain
        return Operation(end, tuple(taking_effect)) if taking_effect else None

    def _on_marker(self, offset: int, marker: Message) -> list[Entry]:
        """The entries that take effect where a transaction begins, ends or is aborted."""
        ends = isinstance(marker, EndTransactionRecord)
        complete = self._open if ends else []
        self._transaction, self._open = isinstance(marker, BeginTransactionRecord), []
        kind = "Begin" if self._transaction else "End" if ends else "Abort"
        self.markers.append((offset, kind))
        return complete


def history_of(batches: Iterable[RecordBatch]) -> History:
    """Divide a whole committed log."""
    divider = OperationDivider()
    operations: list[Operation] = []
    open_at: list[int] = []
    for batch in batches:
        operation = divider.on_batch(batch)
        if operation is not None:
            operations.append(operation)
        if divider.has_open_records:
            open_at.append(batch.last_offset)
    return History(
        operations=tuple(operations),
        markers=tuple(divider.markers),
        open_at=frozenset(open_at),
    )
