"""The results of a partition's operations."""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.log import Records
from minicluster.log.indexes.transaction_index import AbortedTransaction
from minicluster.protocol import ErrorCode


@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    """The end of a leader epoch; -1 where it is not known."""

    epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReadInfo:
    """The outcome of a fetch; the offsets are those before the fetch changed anything.

    Shapes:  with ``diverging_epoch`` the logs of leader and follower diverge; records are empty.
             fetch_offset: where the read began by Kafka's account (``Read.found_offset``).
             aborted_transactions: None where they were not looked up.
    """

    records: Records
    fetch_offset: int
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    diverging_epoch: EpochEndOffset | None = None
    first_incomplete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAppendInfo:
    """The place of a produced batch, or of the one in the log that it repeats.

    Shapes:  log_append_time_ms is -1 where the log keeps the producer's timestamps; of a duplicate
             it is the greatest timestamp of the batch in the log.
    """

    first_offset: int
    last_offset: int
    size: int
    log_start_offset: int
    high_watermark_increased: bool
    log_append_time_ms: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerAppendInfo:
    """The changes that a fetch response made; last_offset is -1 if no batch was appended."""

    last_offset: int
    high_watermark_changed: bool
    log_start_offset_changed: bool


@dataclass(frozen=True, slots=True)
class LogDeleteRecordsResult:
    """The deletion is complete once the low watermark has reached the offset."""

    requested_offset: int
    low_watermark: int


@dataclass(frozen=True, slots=True)
class OffsetAndEpoch:
    """The offset of a timestamp; epoch None and timestamp -1 where they are not known."""

    offset: int
    leader_epoch: int | None
    timestamp: int = -1


@dataclass(frozen=True, slots=True)
class ReplicasReached:
    """The state of a produce with acks=all: replicated far enough or not, and its error."""

    reached: bool
    error: ErrorCode
