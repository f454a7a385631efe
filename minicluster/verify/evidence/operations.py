"""The operations of a committed log.

Kafka appends the records of an operation in one batch. While it lingers it may merge several
operations into a batch, but it does not split one. So an operation ends where a batch does, and a
rule that holds only after a whole operation is judged there. A metadata transaction (KIP-868) is
one operation over any number of batches; an aborted one has no effect, an open one has none yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from minicluster.log.batch import RecordBatch
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
)
from minicluster.protocol.schema import Message
from minicluster.values import Value

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


class Operation(Value):
    """Records that take effect together, at the offset where the last of their batches ends."""

    end: int
    entries: tuple[Entry, ...]


class OperationDivider:
    """Divides a committed log into operations, batch by batch.

    Shapes:  markers: (offset, ``Begin``, ``End`` or ``Abort``) of metadata transactions, for the
             caller to take.
    """

    __slots__ = ("_control_from", "_open", "_transaction", "markers")

    def __init__(self) -> None:
        self.markers: list[tuple[int, str]] = []
        self._open: list[Entry] = []
        self._transaction = False
        self._control_from = -1  # the first offset of the control batches right before

    @property
    def has_open_records(self) -> bool:
        """Records of an open transaction have no effect yet."""
        return bool(self._open)

    def on_batch(self, batch: RecordBatch) -> Operation | None:
        """The operation that the next committed batch completes, if it completes one.

        Errors:  InvalidBatch, ProtocolError for a batch that does not hold metadata records.
        """
        if batch.is_control:
            self._control_from = batch.base_offset if self._control_from < 0 else self._control_from
            return None
        control_from = batch.base_offset if self._control_from < 0 else self._control_from
        self._control_from = -1
        plain: list[Entry] = []
        ended: list[Entry] = []
        change_from = -1
        for offset, placed in enumerate(batch.metadata_records, batch.base_offset):
            record = placed.record
            if isinstance(record, PartitionChangeRecord):
                clean_from = change_from = offset if change_from < 0 else change_from
            else:
                clean_from, change_from = (offset if change_from < 0 else change_from), -1
            if isinstance(record, _MARKERS):
                ended += self._on_marker(offset, record)
                continue
            unseen_from = control_from if clean_from == batch.base_offset else clean_from
            entry = Entry(offset, record, placed.version, clean_from, unseen_from)
            (self._open if self._transaction else plain).append(entry)
        taking_effect = sorted(ended + plain, key=lambda entry: entry.offset) if ended else plain
        return Operation(batch.last_offset, tuple(taking_effect)) if taking_effect else None

    def _on_marker(self, offset: int, marker: Message) -> list[Entry]:
        """The entries that take effect where a transaction begins, ends or is aborted."""
        ends = isinstance(marker, EndTransactionRecord)
        complete = self._open if ends else []
        self._transaction, self._open = isinstance(marker, BeginTransactionRecord), []
        kind = "Begin" if self._transaction else "End" if ends else "Abort"
        self.markers.append((offset, kind))
        return complete


def operations_of(batches: Iterable[RecordBatch]) -> Iterator[Operation]:
    """The operations of a committed log."""
    divider = OperationDivider()
    for batch in batches:
        operation = divider.on_batch(batch)
        if operation is not None:
            yield operation
