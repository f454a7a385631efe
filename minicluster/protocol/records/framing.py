"""The frame around a metadata record, and the map from keys to record classes.

A record's value in the log is: frame version 1, the record's key and its version, each an
unsigned varint, then the body. Control records have no frame: the record key holds their type.

Source:  KIP-631; org.apache.kafka.server.common.serialization.AbstractApiMessageSerde,
         org.apache.kafka.common.record.ControlRecordUtils.
"""

from __future__ import annotations

import re

from minicluster.protocol.codec import decode, decode_prefix, encode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import control, metadata
from minicluster.protocol.schema import Message
from minicluster.protocol.varint import decode_uvarint, encode_uvarint
from minicluster.values import Value

FRAME_VERSION = 1


class VersionedRecord(Value):
    """A record and the version that it is, or was, written in."""

    record: Message
    version: int


RECORD_CLASSES: dict[int, type[Message]] = dict(
    sorted(
        (declared.api_key, declared)
        for declared in vars(metadata).values()
        if isinstance(declared, type) and issubclass(declared, Message)
    )
)
"""The metadata records by their key."""

CONTROL_CLASSES: dict[int, type[Message]] = {
    0: control.EndTxnMarker,
    1: control.EndTxnMarker,
    2: control.LeaderChangeMessage,
    3: control.SnapshotHeaderRecord,
    4: control.SnapshotFooterRecord,
    5: control.KRaftVersionRecord,
    6: control.VotersRecord,
}
"""The control records by the type in their record key; 0 aborts a transaction, 1 commits it."""


def record_name(cls: type[Message]) -> str:
    """A metadata record's type as Kafka's tools print it: ``PARTITION_CHANGE_RECORD``."""
    return re.sub("(?<!^)(?=[A-Z])", "_", cls.__name__).upper()


_HEADS: dict[tuple[type[Message], int], bytes] = {}
_SHORT_FRAME = 3  # bytes of nearly every frame: each of its numbers is below 128
_KINDS: dict[bytes, tuple[type[Message], int]] = {}


def encode_record(value: VersionedRecord) -> bytes:
    """The bytes of a metadata record in the log: frame and body.

    Errors:  as ``encode``.
    """
    cls = value.record.__class__
    head = _HEADS.get((cls, value.version))
    if head is None:
        if RECORD_CLASSES.get(cls.api_key) is not cls:
            raise ProtocolError(cls.__name__, "", "it is not a metadata record")
        head = bytes((FRAME_VERSION,)) + encode_uvarint(cls.api_key)
        head += encode_uvarint(value.version)
        _HEADS[cls, value.version] = head
    return head + encode(value.record, value.version)


def decode_record(data: bytes) -> VersionedRecord:
    """The metadata record that a log record's value holds.

    Errors:  ProtocolError for another frame version, an unknown key or version, bytes that the
             record does not use, and all that ``decode`` rejects.
    """
    short = data[:_SHORT_FRAME]
    kind = _KINDS.get(short)
    if kind is None:
        cls, version, offset = _frame(data)
        if offset == _SHORT_FRAME:
            _KINDS[short] = cls, version
    else:
        cls, version = kind
        offset = _SHORT_FRAME
    record, end = decode_prefix(cls, data, version, offset)
    if end != len(data):
        name = f"{cls.__name__} v{version}"
        raise ProtocolError(name, "", f"{len(data) - end} bytes are left over", offset=end)
    return VersionedRecord(record, version)


def _frame(data: bytes) -> tuple[type[Message], int, int]:
    """The class and the version that a frame names, and the offset behind it."""
    try:
        frame, offset = decode_uvarint(data, 0)
        key, offset = decode_uvarint(data, offset)
        version, offset = decode_uvarint(data, offset)
    except (IndexError, ValueError) as error:
        raise ProtocolError("metadata record", "frame", f"no frame: {error}", offset=0) from error
    if frame != FRAME_VERSION:
        raise ProtocolError("metadata record", "frame", f"frame version {frame}, not 1", offset=0)
    cls = RECORD_CLASSES.get(key)
    if cls is None:
        raise ProtocolError("metadata record", "frame", f"no record has the key {key}", offset=1)
    return cls, version, offset


def encode_control(value: VersionedRecord) -> tuple[bytes, bytes]:
    """The key and the value of a control record in the log.

    Errors:  ProtocolError if the record is none of the five of the metadata log; as ``encode``.
    """
    cls = value.record.__class__
    for type_, control_class in CONTROL_CLASSES.items():
        if control_class is cls and type_ > 1:  # the class of markers does not tell abort or commit
            return b"\0\0" + type_.to_bytes(2, "big"), encode(value.record, value.version)
    raise ProtocolError(cls.__name__, "", "it is not a control record of the metadata log")


def decode_control(key: bytes, value: bytes) -> VersionedRecord | None:
    """The control record of a log record's key and value; None for a type that is not known.

    Kafka reads a version above its own as its newest, and skips unknown types
    (``ControlRecordUtils``, ``ControlRecordType.parse``); so does this.

    Errors:  ProtocolError for a key that is too short and for bytes that are no such record.
    """
    if len(key) < 4:
        raise ProtocolError("control record", "key", f"{len(key)} bytes, not 4", offset=0)
    cls = CONTROL_CLASSES.get(int.from_bytes(key[2:4], "big"))
    if cls is None:
        return None
    if len(value) < 2:
        raise ProtocolError(cls.__name__, "version", "the value is too short", offset=0)
    version = min(int.from_bytes(value[:2], "big", signed=True), cls.latest_version)
    if cls is control.EndTxnMarker:  # its version precedes it
        return VersionedRecord(decode(cls, value[2:], version), version)
    return VersionedRecord(decode(cls, value, version), version)
