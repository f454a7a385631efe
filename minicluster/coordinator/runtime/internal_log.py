"""The partitions of an internal topic, as a coordinator writes and reads them.

The replica manager of the same broker implements it: an append is a call, so nothing can come
between a decision and its record.

Source:  PartitionWriter, CoordinatorPartitionWriter, CoordinatorLoaderImpl.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from minicluster.errors import MiniclusterError
from minicluster.log import RecordBatch
from minicluster.protocol import ErrorCode


class AppendFailed(MiniclusterError):
    """The partition refuses an append."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


class InternalLog(Protocol):
    """One topic's partitions on this broker.

    Errors:  AppendFailed by ``append``.
    """

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
    ) -> int:
        """Append records as the leader; the offset behind the last one."""

    def read(self, partition: int, offset: int, max_bytes: int) -> Sequence[RecordBatch]:
        """Batches from an offset on, of the leader's log up to its end; at least one."""

    def start_offset(self, partition: int) -> int:
        """The log's first offset."""

    def high_watermark(self, partition: int) -> int:
        """The offset below which all is committed."""
