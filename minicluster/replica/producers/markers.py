"""The control batch that ends a producer's transaction in a log.

The key holds version and type, the value version and coordinator epoch. The producer epoch of the
batch is that of the transaction, in transaction version 2 the next one (KIP-890).

Source:  EndTransactionMarker, ControlRecordType, MemoryRecords.withEndTransactionMarker.
"""

from __future__ import annotations

import struct

from minicluster.log import InvalidBatch, Record, RecordBatch
from minicluster.log.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from minicluster.values import Value

_VERSION = 0
_ABORT, _COMMIT = 0, 1
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class EndTransactionMarker(Value):
    """The content of a marker."""

    committed: bool
    coordinator_epoch: int


def marker_batch(
    marker: EndTransactionMarker, producer_id: int, producer_epoch: int, now_ms: int
) -> RecordBatch:
    """The control batch of a marker, without offset and leader epoch."""
    record = Record(
        0,
        now_ms,
        _KEY.pack(_VERSION, _COMMIT if marker.committed else _ABORT),
        _VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    return RecordBatch.of(
        [record],
        leader_epoch=-1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
    )


def read_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """The marker in a control batch; None for one that compaction has emptied.

    Errors:  InvalidBatch for a control record that is not a marker.
    """
    if not batch.records:
        return None
    record = batch.records[0]
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        raise InvalidBatch(f"the control record at offset {record.offset} is not a marker")
    kind = _KEY.unpack_from(key)[1]
    if kind not in (_ABORT, _COMMIT):
        raise InvalidBatch(f"the control record at offset {record.offset} is of type {kind}")
    return EndTransactionMarker(kind == _COMMIT, _VALUE.unpack_from(value)[1])
