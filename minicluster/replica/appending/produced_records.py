"""The batches in a produce, as the bytes have them: nothing in their headers is trusted yet.

Source:  ByteBufferLogInputStream.nextBatch, ProduceRequest.validateRecords.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.log import InvalidBatch, RecordBatch, Records
from minicluster.log.batch import CODEC_MASK, HEADER_BYTES, LENGTH_END
from minicluster.log.format.compression import Codec
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import ReplicaError

_MAGIC_AT = 16
_MAGIC = 2
_LEAST_BYTES = 14  # of a record of magic 0, without the offset and length before it
_ZSTD_FROM = 7
_PRODUCER_ID_END = 51  # of a batch of magic 2
_ATTRIBUTES_AT, _ATTRIBUTES_END = 21, 23


class BrokenRequest(Exception):
    """Records over which Kafka stumbles, so that the request as a whole fails."""


@dataclass(frozen=True, slots=True)
class ProducedRecords:
    """The batches of one partition, up to the damage that ends them.

    Shapes:  short: the first batch where it is shorter than a header; batches has the others.
    Errors:  damage: CORRUPT_MESSAGE for an impossible length or magic, INVALID_RECORD for magic 0
             and 1.
    """

    batches: tuple[RecordBatch, ...]
    damage: ReplicaError | None = None
    short: bytes | None = None

    @property
    def first_attributes(self) -> int | None:
        """The attributes of the first batch, None without one."""
        if self.short is not None:
            attributes = self.short[_ATTRIBUTES_AT:_ATTRIBUTES_END]
            return int.from_bytes(attributes, "big", signed=True)
        return self.batches[0].attributes if self.batches else None

    def only_batch(self, version: int) -> RecordBatch:
        """The one batch that a version takes.

        Errors:  the damage; INVALID_RECORD for none and for several;
                 UNSUPPORTED_COMPRESSION_TYPE for zstd below version 7 (KIP-110); CORRUPT_MESSAGE
                 for one that is shorter than a header. BrokenRequest for one without a producer id,
                 and below version 7 for an unknown codec.
        Source:  ProduceRequest.validateRecords, ReplicaManager.handleProduceAppend,
                 DefaultRecordBatch.isValid.
        """
        attributes = self.first_attributes
        if attributes is None:
            raise self.damage or ReplicaError(ErrorCode.INVALID_RECORD, "no record batch")
        if version < _ZSTD_FROM:
            codec = attributes & CODEC_MASK
            if codec > max(Codec):
                raise BrokenRequest
            if codec == Codec.ZSTD:
                raise ReplicaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd")
        if self.damage is not None:
            raise self.damage
        if len(self.batches) + (self.short is not None) > 1:
            raise ReplicaError(ErrorCode.INVALID_RECORD, "more than one record batch")
        if self.short is None:
            return self.batches[0]
        if len(self.short) < _PRODUCER_ID_END:
            raise BrokenRequest
        raise ReplicaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {len(self.short)} bytes")


def produced_records(value: bytes | Records | None) -> ProducedRecords:
    """Read what a produce carries for one partition; an incomplete last batch is left off."""
    if isinstance(value, Records):
        return ProducedRecords(value.batches)
    buffer = value or b""
    batches: list[RecordBatch] = []
    short = damage = None
    position = 0
    try:
        while (end := _end_of_batch(buffer, position)) is not None:
            if end - position >= HEADER_BYTES:
                batches.append(RecordBatch.decode(buffer, position, lenient=True))
            elif position == 0:
                short = bytes(buffer[:end])
            else:
                raise ReplicaError(ErrorCode.INVALID_RECORD, "more than one record batch")
            position = end
    except InvalidBatch as error:
        damage = ReplicaError(ErrorCode.CORRUPT_MESSAGE, str(error))
    except ReplicaError as error:
        damage = error
    return ProducedRecords(tuple(batches), damage, short)


def _end_of_batch(buffer: bytes, position: int) -> int | None:
    """The end of the batch at a position, None where no whole batch is left."""
    left = len(buffer) - position
    if left < LENGTH_END:
        return None
    length = int.from_bytes(buffer[position + 8 : position + LENGTH_END], "big", signed=True)
    if length < _LEAST_BYTES:
        raise ReplicaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_LEAST_BYTES})",
        )
    if left <= _MAGIC_AT:
        return None
    magic = int.from_bytes(buffer[position + _MAGIC_AT : position + _MAGIC_AT + 1], signed=True)
    if not 0 <= magic <= _MAGIC:
        raise ReplicaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    if left < LENGTH_END + length:
        return None
    if magic < _MAGIC:
        raise ReplicaError(ErrorCode.INVALID_RECORD, f"magic {magic}")
    return position + LENGTH_END + length
