"""The partitions of an internal topic, as a coordinator writes and reads them.

The replica manager of the same broker implements it: an append is a call, so nothing can come
between a decision and its record.

Source:  PartitionWriter, CoordinatorPartitionWriter, CoordinatorLoaderImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from minicluster.errors import MiniclusterError
from minicluster.log import RecordBatch
from minicluster.protocol import ErrorCode
from minicluster.replica.producers.verification import VerificationGuard
from minicluster.values import Value


class Producer(Value):
    """The transactional producer on whose behalf records are written.

    Shapes:  version is that of its TxnOffsetCommit; guard is that of the verification.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    version: int
    guard: VerificationGuard | None = None


class EndTxnMarker(Value):
    """The end of a transaction, as its coordinator has decided it.

    Shapes:  transaction_version is that of WriteTxnMarkers: from 2 on the epoch is a bumped one.
    Source:  EndTransactionMarker, WriteTxnMarkersRequest.TxnMarkerEntry.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int


class AppendFailed(MiniclusterError):
    """The partition rejects an append."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


Verified = Callable[[ErrorCode, VerificationGuard | None, int], None]
"""Takes the error, or NONE with the guard, and the time."""


class InternalLog(Protocol):
    """One topic's partitions on this broker.

    Errors:  AppendFailed by ``append``.
    """

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: Producer | None,
        now_ms: int,
    ) -> int:
        """Append records as the leader; the offset behind the last one."""

    def error_of_committed(self, partition: int) -> ErrorCode:
        """The error of an append whose record is committed: NONE, or
        NOT_ENOUGH_REPLICAS_AFTER_APPEND while the ISR is below its minimum.
        """

    def append_end_txn_marker(self, partition: int, marker: EndTxnMarker, now_ms: int) -> int:
        """Append the end of a transaction as the leader; the offset behind it."""

    def verify(
        self,
        partition: int,
        producer: Producer,
        done: Verified,
        now_ms: int,
    ) -> None:
        """Verify that the partition is part of the producer's transaction, or add it."""

    def read(self, partition: int, offset: int, max_bytes: int) -> Sequence[RecordBatch]:
        """Batches from an offset on, of the leader's log up to its end; at least one."""

    def start_offset(self, partition: int) -> int:
        """The log's first offset."""

    def high_watermark(self, partition: int) -> int:
        """The offset below which all is committed."""
