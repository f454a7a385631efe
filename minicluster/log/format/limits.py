"""The most that reading one file may take, however small the file is.

Kafka's own limits are the defaults: a batch of a metadata log has at most 8 MiB, and a snapshot is
due after 20 MiB of records. Kafka writes these logs uncompressed, so that a file with more
compressed content than that is not Kafka's.

Source:  KafkaRaftClient.MAX_BATCH_SIZE_BYTES; metadata.log.max.record.bytes.between.snapshots.
"""

from __future__ import annotations

from minicluster.log.errors import UndecodableBatch
from minicluster.values import Value

MAX_BATCH_BYTES = 8 * 1024 * 1024
MAX_RECORDS_PER_BATCH = 10_000
MAX_DECOMPRESSED_BYTES = 20 * 1024 * 1024


class ReadLimits(Value, kw_only=True):
    """Bounds for one file.

    Units:   batch_bytes for one batch as the file holds it; decompressed_bytes for the content of
             all compressed batches together.
    """

    batch_bytes: int = MAX_BATCH_BYTES
    decompressed_bytes: int = MAX_DECOMPRESSED_BYTES


DEFAULT_LIMITS = ReadLimits()


class DecompressionBudget:
    """The bytes that the compressed batches of one file may still unpack to."""

    __slots__ = ("_left_bytes", "_whole_bytes")

    def __init__(self, whole_bytes: int = MAX_DECOMPRESSED_BYTES) -> None:
        self._whole_bytes = self._left_bytes = whole_bytes

    @property
    def left_bytes(self) -> int:
        """The most that the next batch may unpack to."""
        return self._left_bytes

    def spend(self, size: int) -> None:
        """Take what a batch unpacked to.

        Errors:  UndecodableBatch if that is more than there was.
        """
        if size > self._left_bytes:
            raise self.exceeded()
        self._left_bytes -= size

    def exceeded(self) -> UndecodableBatch:
        """The error for a batch that unpacks to more than there is left."""
        return UndecodableBatch(
            f"the compressed batches of this file unpack to more than {self._whole_bytes} bytes"
        )
