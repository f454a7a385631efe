"""Control records: what the log says about itself (leaders, voters, snapshots).

The key is two 16-bit integers, version 0 and the type; the value is a message that begins with
its own version. Unknown types are kept as bytes, so that any log can be shown.

Source:  ControlRecordType, ControlRecordUtils.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minicluster.log.batch import CONTROL_BIT, Record, RecordBatch
from minicluster.log.errors import InvalidBatch
from minicluster.protocol import decode, encode
from minicluster.protocol.records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

_KEY = struct.Struct(">hh")

CONTROL_TYPES: dict[int, tuple[str, type[Any] | None]] = {
    0: ("Abort", None),
    1: ("Commit", None),
    2: ("LeaderChange", LeaderChangeMessage),
    3: ("SnapshotHeader", SnapshotHeaderRecord),
    4: ("SnapshotFooter", SnapshotFooterRecord),
    5: ("KRaftVersion", KRaftVersionRecord),
    6: ("KRaftVoters", VotersRecord),
}
_TYPE_OF = {cls: number for number, (_, cls) in CONTROL_TYPES.items() if cls is not None}


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """One control record: its type by number and name, and its message where one is declared."""

    type: int
    name: str
    message: Any
    version: int


def control_batch(
    base_offset: int, leader_epoch: int, timestamp_ms: int, messages: Sequence[Any]
) -> RecordBatch:
    """A batch of control records; each message is written at the version it names itself."""
    records = [
        Record(
            base_offset + i,
            timestamp_ms,
            _KEY.pack(0, _TYPE_OF[type(message)]),
            encode(message, message.version),
        )
        for i, message in enumerate(messages)
    ]
    return RecordBatch.of(records, leader_epoch=leader_epoch, attributes=CONTROL_BIT)


def control_records(batch: RecordBatch) -> tuple[ControlRecord, ...]:
    """The control records of a batch, none of a data batch; decoded at most once.

    Errors:  InvalidBatch for a key or value too short; ProtocolError for a damaged message.
    """
    if not batch.is_control:
        return ()
    if batch._control is None:
        batch._control = tuple(_decode(record) for record in batch.records)
    return batch._control  # type: ignore[return-value]


def _decode(record: Record) -> ControlRecord:
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size or len(value) < 2:
        raise InvalidBatch(f"the control record at offset {record.offset} has no type or version")
    _, number = _KEY.unpack_from(key)
    name, cls = CONTROL_TYPES.get(number, (f"Unknown{number}", None))
    version = int.from_bytes(value[:2], "big", signed=True)
    if cls is None:
        return ControlRecord(number, name, value, version)
    return ControlRecord(number, name, decode(cls, value, version), version)
