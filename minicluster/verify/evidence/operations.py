"""The operations of a committed log.

Kafka appends the records of an operation in one batch. While it lingers it may merge several
operations into a batch, but it does not split one. So an operation ends where a batch does, and a
rule that holds only after a whole operation is judged there. A metadata transaction (KIP-868) is
one operation over any number of batches; an aborted one has no effect, an open one has none yet.
"""

from __future__ import annotations

from collections.abc import Iterable

from minicluster.lazy_dataclass import dataclass
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
    """One record of an operation.

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
    """Divides a committed log into operations, batch by batch."""

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
        """The operation that the next committed batch completes, if it completes one."""
        if batch.is_control:
            self._control_from = batch.base_offset if self._control_from < 0 else self._control_from
            return None
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
        return Operation(batch.last_offset, tuple(entries)) if entries else None


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
