"""The batches of a message's ``records`` field, and batches under another codec.

Source:  MemoryRecords, ByteBufferLogInputStream.
"""

from __future__ import annotations

from collections.abc import Iterator

from minicluster.log.batch import CODEC_MASK, LENGTH_END, RecordBatch
from minicluster.log.format.compression import Codec, compress
from minicluster.values import Value


class Records(Value):
    """The value of a message's ``records`` field: batches, turned into bytes only when written.

    Shapes:  tail: the first bytes of a batch that exceeds a limit in bytes.
    """

    batches: tuple[RecordBatch, ...] = ()
    tail: bytes = b""

    @classmethod
    def of(cls, value: bytes | Records | None) -> Records:
        """Read what a message carries; an incomplete last batch is left off, as Kafka does.

        Errors:  InvalidBatch for a complete batch that is damaged.
        """
        if isinstance(value, Records):
            return value
        return cls(tuple(_batches_in(value or b"")))

    @property
    def size(self) -> int:
        """The number of their bytes."""
        size = len(self.tail)
        for batch in self.batches:
            size += batch.size
        return size

    def __bytes__(self) -> bytes:
        return b"".join([*(batch.encoded for batch in self.batches), self.tail])

    def __bool__(self) -> bool:
        return bool(self.batches or self.tail)

    def __len__(self) -> int:
        return self.size


def _batches_in(buffer: bytes) -> Iterator[RecordBatch]:
    position = 0
    while len(buffer) - position >= LENGTH_END:
        length = int.from_bytes(buffer[position + 8 : position + LENGTH_END], "big", signed=True)
        # No limit in bytes makes a length negative: that is damage, which decoding reports.
        if length >= 0 and len(buffer) - position < LENGTH_END + length:
            return
        batch = RecordBatch.decode(buffer, position)
        position += batch.size
        yield batch


def packed(batch: RecordBatch, codec: int) -> RecordBatch:
    """The same batch under another codec."""
    if codec == Codec.NONE == batch.codec:
        return batch
    return RecordBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        count=batch.count,
        attributes=batch.attributes & ~CODEC_MASK | codec,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        body=compress(codec, batch.unpacked_body()),
    )
