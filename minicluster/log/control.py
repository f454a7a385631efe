"""Control records: records about the log itself (leaders, voters, snapshots).

The key holds the type, the value a message that begins with its own version. Unknown types are
kept as bytes, so that any log can be shown.

Source:  ControlRecordType, ControlRecordUtils.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicluster.log.batch import CONTROL_BIT, Record, RecordBatch
from minicluster.protocol.records import VersionedRecord, decode_control, encode_control
from minicluster.values import Value

_NAMES = {
    0: "Abort",
    1: "Commit",
    2: "LeaderChange",
    3: "SnapshotHeader",
    4: "SnapshotFooter",
    5: "KRaftVersion",
    6: "KRaftVoters",
}


class ControlRecord(Value):
    """One control record: its type by number and name, and its message where one is declared."""

    type: int
    name: str
    message: Any
    version: int


def control_batch(
    base_offset: int, leader_epoch: int, timestamp_ms: int, messages: Sequence[Any]
) -> RecordBatch:
    """A batch of control records; each message is written at the version it names itself."""
    records = []
    for offset, message in enumerate(messages, base_offset):
        key, value = encode_control(VersionedRecord(message, message.version))
        records.append(Record(offset, timestamp_ms, key, value))
    return RecordBatch.of(records, leader_epoch=leader_epoch, attributes=CONTROL_BIT)


def control_records(batch: RecordBatch) -> tuple[ControlRecord, ...]:
    """The control records of a batch, none of a data batch; decoded at most once.

    Errors:  ProtocolError for a key or value that is too short or damaged.
    """
    if not batch.is_control:
        return ()
    if batch._control is None:
        batch._control = tuple(_decode(record) for record in batch.records)
    return batch._control


def _decode(record: Record) -> ControlRecord:
    key, value = record.key or b"", record.value or b""
    decoded = decode_control(key, value)
    number = int.from_bytes(key[2:4], "big", signed=True)
    name = _NAMES.get(number, f"Unknown{number}")
    if decoded is None:
        return ControlRecord(number, name, value, -1)
    return ControlRecord(number, name, decoded.record, decoded.version)
