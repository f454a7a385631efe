"""Record batches of format v2 (magic 2), the unit in which Kafka's logs are written and read.

A batch is immutable. It is made from records, from metadata records or control records (which it
remembers, so that nobody decodes them again), or from bytes; whatever was not given is worked out
on first use. Encoding is lazy, so a simulated cluster pays for bytes only where bytes are wanted.

Versions: magic 2 only. Leaves out: magic 0 and 1 (no KRaft log holds them).
Source:   spec of the format: DefaultRecordBatch, DefaultRecord, ControlRecordType.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from minicluster.log.errors import InvalidBatch
from minicluster.log.format.checksums import crc32c
from minicluster.log.format.compression import Codec, decompress
from minicluster.log.format.framing import (
    Fields,
    fields_of_records,
    read_headers,
    value_frames,
    write_bytes,
    write_varint,
)
from minicluster.log.format.limits import DecompressionBudget
from minicluster.protocol.records import VersionedRecord, decode_record, encode_record
from minicluster.values import Value

HEADER_BYTES = 61
LENGTH_END = 12  # base offset and length field; the length counts what follows
RECORD_HEADER_BYTES = 21  # the most that a record takes besides key, value and headers
CRC_START = 21  # the checksum covers everything from the attributes on
_OFFSET_BYTES = 8  # the base offset, with which a batch begins
_EPOCH_BYTES = 4  # the leader epoch, after the length

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_AFTER_CRC = struct.Struct(">hiqqqhii")


class Record(Value):
    """One record of a batch; the offset and the time are absolute (milliseconds)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class RecordBatch:
    """One immutable record batch."""

    __slots__ = (
        "_body",
        "_budget",
        "_control",
        "_crc",
        "_encoded",
        "_metadata_records",
        "_metadata_values",
        "_records",
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "last_offset",
        "leader_epoch",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        *,
        base_offset: int,
        last_offset: int,
        leader_epoch: int,
        base_timestamp: int,
        max_timestamp: int,
        count: int,
        attributes: int = 0,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        records: tuple[Record, ...] | None = None,
        metadata_records: tuple[VersionedRecord, ...] | None = None,
        metadata_values: Sequence[bytes] | None = None,
        body: bytes | None = None,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.leader_epoch = leader_epoch
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.count = count
        self.attributes = attributes
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self._records = records
        self._metadata_records = metadata_records
        self._metadata_values = metadata_values  # until they are in the encoded batch
        self._body = body
        self._control: tuple[Any, ...] | None = None
        self._encoded: bytes | None = None
        self._crc: int | None = None
        self._budget: DecompressionBudget | None = None

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        *,
        leader_epoch: int,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        attributes: int = 0,
    ) -> RecordBatch:
        """Make a batch of records whose offsets ascend from the first one's."""
        if not records:
            raise ValueError("a batch holds at least one record")
        return cls(
            base_offset=records[0].offset,
            last_offset=records[-1].offset,
            leader_epoch=leader_epoch,
            base_timestamp=records[0].timestamp,
            max_timestamp=max(record.timestamp for record in records),
            count=len(records),
            attributes=attributes,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records=tuple(records),
        )

    # --- content -------------------------------------------------------------------------

    @property
    def is_control(self) -> bool:
        """Its records are control records."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        """A producer transaction wrote it."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_log_append_time(self) -> bool:
        """Its records have the time of the append as their timestamp, which is the greatest one."""
        return bool(self.attributes & TIMESTAMP_TYPE_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which compaction may remove its tombstones (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def codec(self) -> Codec:
        """The compression of its records."""
        return Codec(self.attributes & CODEC_MASK)

    @property
    def next_offset(self) -> int:
        """The offset after its last one."""
        return self.last_offset + 1

    @property
    def last_sequence(self) -> int:
        """The producer's sequence number of its last record, or -1."""
        return self.sequence_at(self.last_offset)

    def sequence_at(self, offset: int) -> int:
        """The sequence number of a record, -1 where its producer has no id.

        After the greatest one comes 0: a producer that sends long enough gets there, and a leader
        that expected a negative number would reject its next batch as out of order.

        Source:  DefaultRecordBatch.incrementSequence.
        """
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + offset - self.base_offset) & 0x7FFFFFFF

    @property
    def records(self) -> tuple[Record, ...]:
        """Its records, decoded at most once.

        Errors:  InvalidBatch if the bytes do not hold them.
        """
        if self._records is None:
            # Where there are bytes, they decide: records of a batch that came as bytes may have
            # times and headers of their own, which the decoded metadata records do not show.
            has_bytes = self._body is not None or self._encoded is not None
            if self._metadata_records is not None and not has_bytes:
                self._records = tuple(
                    Record(self.base_offset + i, self.base_timestamp, None, encode_record(record))
                    for i, record in enumerate(self._metadata_records)
                )
            else:
                self._records = self._decode_records()
        return self._records

    def unpacked_body(self) -> bytes:
        """The bytes of its records, without compression.

        Errors:  UndecodableBatch.
        """
        body = self._stored_body
        if body is None:
            return self._encode_records()
        return decompress(self.attributes & CODEC_MASK, body, self._budget or DecompressionBudget())

    @property
    def _stored_body(self) -> bytes | None:
        """The bytes of its records as they are stored, None before the batch has any."""
        if self._body is None and self._encoded is not None:
            return self._encoded[HEADER_BYTES:]
        return self._body

    @property
    def metadata_records(self) -> tuple[VersionedRecord, ...]:
        """Its values as metadata records, decoded at most once; none if it is a control batch.

        Errors:  ProtocolError if a value is not a metadata record.
        """
        if self.is_control:
            return ()
        if self._metadata_records is None:
            self._metadata_records = tuple(map(decode_record, self.values()))
        return self._metadata_records

    def values(self) -> list[bytes]:
        """The value of each record, empty where it has none.

        Errors:  InvalidBatch, as for the records.
        """
        return [value or b"" for _, _, _, value, _ in self.fields()]

    def fields(self) -> Iterator[Fields]:
        """Of each record, as it is stored; nothing is kept: a log would hold everything twice.

        Errors:  InvalidBatch, as for the records.
        """
        if self._records is None:
            return fields_of_records(self.unpacked_body(), self.count)
        time, offset = self.base_timestamp, self.base_offset
        return ((r.timestamp - time, r.offset - offset, r.key, r.value, 0) for r in self._records)

    def contents(self) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        """The offset, timestamp, key and value of each record, of which nothing is kept.

        Errors:  InvalidBatch, as for the records.
        """
        base_offset, time = self.base_offset, self.time_at
        for time_delta, offset_delta, key, value, _ in self.fields():
            yield base_offset + offset_delta, time(time_delta), key, value

    # --- bytes ------------------------------------------------------------------------------

    @property
    def encoded(self) -> bytes:
        """Its bytes, as a segment holds them."""
        if self._encoded is None:
            body = self._body if self._body is not None else self._encode_records()
            after_crc = (
                _AFTER_CRC.pack(
                    self.attributes,
                    self.last_offset - self.base_offset,
                    self.base_timestamp,
                    self.max_timestamp,
                    self.producer_id,
                    self.producer_epoch,
                    self.base_sequence,
                    self.count,
                )
                + body
            )
            self._crc = crc32c(after_crc)
            length = CRC_START - LENGTH_END + len(after_crc)
            self._encoded = (
                struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, 2, self._crc)
                + after_crc
            )
            self._body = None  # it is the end of these bytes: a log would hold it twice
        return self._encoded

    @property
    def size(self) -> int:
        """The number of its bytes."""
        encoded = self._encoded
        return len(self.encoded if encoded is None else encoded)

    @property
    def has_valid_crc(self) -> bool:
        """The checksum that its bytes came with is theirs."""
        return self._encoded is None or self.crc == crc32c(self._encoded[CRC_START:])

    @property
    def crc(self) -> int:
        """Its CRC-32C, unsigned."""
        if self._crc is None:
            self._crc = int.from_bytes(self.encoded[17:CRC_START], "big")
        return self._crc

    def with_base(self, base_offset: int, leader_epoch: int) -> RecordBatch:
        """The same records at another offset and leader epoch (neither is under the checksum)."""
        shift = base_offset - self.base_offset
        if shift == 0 and leader_epoch == self.leader_epoch:
            return self
        moved = RecordBatch(
            base_offset=base_offset,
            last_offset=self.last_offset + shift,
            leader_epoch=leader_epoch,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            count=self.count,
            attributes=self.attributes,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            metadata_records=self._metadata_records,
            body=None if self._encoded is not None else self._body,
        )
        encoded = self._encoded
        if encoded is not None:
            moved._encoded = (
                base_offset.to_bytes(_OFFSET_BYTES, "big", signed=True)
                + encoded[_OFFSET_BYTES:LENGTH_END]
                + leader_epoch.to_bytes(_EPOCH_BYTES, "big", signed=True)
                + encoded[LENGTH_END + _EPOCH_BYTES :]
            )
            moved._crc = self._crc
        elif self._body is None and self._records is not None:
            moved._records = tuple(
                Record(r.offset + shift, r.timestamp, r.key, r.value, r.headers)
                for r in self._records
            )
        return moved

    def with_timestamps(self, *, log_append_time: bool, max_timestamp: int) -> RecordBatch:
        """The same records under another timestamp type or greatest timestamp.

        Source:  DefaultRecordBatch.setMaxTimestamp, computeAttributes, which keep no attribute that
                 is not known.
        """
        if (self.is_log_append_time, self.max_timestamp) == (log_append_time, max_timestamp):
            return self
        known_attributes = self.attributes & (
            CODEC_MASK | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT
        )
        return RecordBatch(
            base_offset=self.base_offset,
            last_offset=self.last_offset,
            leader_epoch=self.leader_epoch,
            base_timestamp=self.base_timestamp,
            max_timestamp=max_timestamp,
            count=self.count,
            attributes=known_attributes | (TIMESTAMP_TYPE_BIT if log_append_time else 0),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            body=self._encode_records() if self._stored_body is None else self._stored_body,
        )

    @classmethod
    def decode(
        cls,
        buffer: bytes,
        position: int = 0,
        *,
        lenient: bool = False,
        budget: DecompressionBudget | None = None,
    ) -> RecordBatch:
        """Read the batch that begins at a position.

        Shapes:  budget is for the records of all compressed batches of a file; without one, the
                 batch has a budget of its own. lenient: the checksum and the header's numbers
                 are the caller's to judge.
        Errors:  InvalidBatch (incomplete, another magic, checksum, contradicting header).
        """
        available = len(buffer) - position
        if available < HEADER_BYTES:
            raise InvalidBatch(f"a batch header takes {HEADER_BYTES} bytes, {available} are left")
        (
            base_offset, length, leader_epoch, magic, crc, attributes, last_delta,
            base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
        ) = _HEADER.unpack_from(buffer, position)  # fmt: skip
        if magic != 2:
            raise InvalidBatch(f"magic {magic} is not 2")
        if length < HEADER_BYTES - LENGTH_END:
            raise InvalidBatch(f"a batch length of {length} bytes is impossible")
        if length > available - LENGTH_END:
            raise InvalidBatch(f"the batch takes {length + LENGTH_END} bytes, {available} are left")
        end = position + LENGTH_END + length
        encoded = bytes(buffer[position:end])
        if not lenient and crc32c(encoded[CRC_START:]) != crc:
            raise InvalidBatch("the checksum does not match")
        if not lenient and attributes & CODEC_MASK > max(Codec):
            raise InvalidBatch(f"codec {attributes & CODEC_MASK} is not known")
        plain = attributes & CODEC_MASK == Codec.NONE
        impossible = base_offset < 0 or last_delta < 0 or count < 0 or (plain and count > length)
        if impossible and not lenient:
            raise InvalidBatch(
                f"base offset {base_offset}, last offset delta {last_delta}, count {count}"
            )
        batch = RecordBatch(
            base_offset=base_offset,
            last_offset=base_offset + last_delta,
            leader_epoch=leader_epoch,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            count=count,
            attributes=attributes,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        batch._encoded = encoded
        batch._crc = crc
        batch._budget = budget
        return batch

    def _encode_records(self) -> bytes:
        if self._records is None and self._metadata_records is not None:
            values = self._metadata_values or map(encode_record, self._metadata_records)
            self._metadata_values = None
            return b"".join(value_frames(values))
        out = bytearray()
        for record in self.records:
            encoded = bytearray(1)  # attributes, unused
            write_varint(encoded, record.timestamp - self.base_timestamp)
            write_varint(encoded, record.offset - self.base_offset)
            write_bytes(encoded, record.key)
            write_bytes(encoded, record.value)
            write_varint(encoded, len(record.headers))
            for name, value in record.headers:
                write_bytes(encoded, name.encode())
                write_bytes(encoded, value)
            write_varint(out, len(encoded))
            out += encoded
        return bytes(out)

    def _decode_records(self) -> tuple[Record, ...]:
        body, base_offset = self.unpacked_body(), self.base_offset
        return tuple(
            Record(
                base_offset + offset_delta,
                self.time_at(time_delta),
                key,
                value,
                read_headers(body, headers_at),
            )
            for time_delta, offset_delta, key, value, headers_at in fields_of_records(
                body, self.count
            )
        )

    def time_at(self, delta: int) -> int:
        """The timestamp of a record that is stored with this difference from the batch's."""
        return self.max_timestamp if self.is_log_append_time else self.base_timestamp + delta

    # --- being a value ----------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordBatch) and self.encoded == other.encoded

    def __hash__(self) -> int:
        return hash((self.base_offset, self.last_offset, self.leader_epoch))

    def __repr__(self) -> str:
        kind = "control " if self.is_control else ""
        return f"<{kind}batch {self.base_offset}..{self.last_offset} epoch {self.leader_epoch}>"


def metadata_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    records: Sequence[VersionedRecord],
    values: Sequence[bytes] | None = None,
) -> RecordBatch:
    """A batch of metadata records that remembers them.

    Shapes:  values: the encoded records, where the caller has them.
    """
    if not records:
        raise ValueError("a batch holds at least one record")
    return RecordBatch(
        base_offset=base_offset,
        last_offset=base_offset + len(records) - 1,
        leader_epoch=leader_epoch,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        count=len(records),
        metadata_records=tuple(records),
        metadata_values=values,
    )
