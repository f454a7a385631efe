"""Batches with their records compressed."""

from __future__ import annotations

from minicluster.log.batch import CODEC_MASK, RecordBatch
from minicluster.log.format.compression import Codec, compress


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
