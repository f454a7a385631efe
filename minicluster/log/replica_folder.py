"""The folder of one replica's log.

    orders-0/<base offset>.log
    orders-0/<base offset>.txnindex          where the segment has markers that abort
    orders-0/{leader-epoch-checkpoint,partition.metadata}

Source:  LogManager, LocalLog, PartitionMetadataFile.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from minicluster.log.batch import RecordBatch
from minicluster.log.indexes import TRANSACTION_INDEX_SUFFIX, encode_aborted
from minicluster.log.log import Log
from minicluster.log.segment import LOG_SUFFIX, segment_name
from minicluster.log.text_files import (
    EPOCH_CHECKPOINT_NAME,
    PARTITION_METADATA_NAME,
    epoch_checkpoint_text,
    partition_metadata_text,
)

NAME_BYTES_MAX = 255


def future_name(topic: str, index: int, topic_id: UUID) -> str:
    """The folder of a future log; its id is made from the topic's, so that it repeats."""
    suffix = f"-{index}.{topic_id.hex}-future"
    return topic[: NAME_BYTES_MAX - len(suffix)] + suffix


def replica_files(log: Log, topic_id: UUID) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files of a replica's log."""
    ends = [segment.base_offset for segment in log.segments[1:]]
    for (base_offset, batches), end in zip(_segments(log), [*ends, None], strict=True):
        name = segment_name(base_offset)
        yield name, b"".join(batch.encoded for batch in batches)
        aborted = [
            transaction
            for transaction in log.transactions
            if base_offset <= transaction.last_offset
            and (end is None or transaction.last_offset < end)
        ]
        if aborted:
            index = name.removesuffix(LOG_SUFFIX) + TRANSACTION_INDEX_SUFFIX
            yield index, encode_aborted(aborted)
    yield EPOCH_CHECKPOINT_NAME, epoch_checkpoint_text(log.epochs.entries).encode()
    yield PARTITION_METADATA_NAME, partition_metadata_text(topic_id).encode()


def _segments(log: Log) -> Iterator[tuple[int, list[RecordBatch]]]:
    """The base offset and the batches of each segment.

    A first batch that begins below the first segment names its file.
    """
    batches = log.batches
    first = 0
    for number, segment in enumerate(log.segments):
        is_last = number == len(log.segments) - 1
        end = len(batches)
        if not is_last:
            next_base = log.segments[number + 1].base_offset
            in_next = (n for n in range(first, end) if batches[n].base_offset >= next_base)
            end = next(in_next, end)
        base_offset = segment.base_offset
        if first < end and number == 0:
            base_offset = min(base_offset, batches[first].base_offset)
        yield base_offset, list(batches[first:end])
        first = end
