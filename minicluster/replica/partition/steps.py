"""What a partition answers and what it asks for: results, and effects beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar
from uuid import UUID

from minicluster.effects import Effect
from minicluster.log import RecordBatch
from minicluster.protocol import ErrorCode
from minicluster.replica.partition.isr_state import AlterPartitionAnswer, ProposalItem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """What one input led to: the answer to who asked, and effects in the order they happened."""

    result: T
    effects: list[Effect] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SubmitProposal(Effect):
    """Hand a proposal to the AlterPartition manager."""

    item: ProposalItem


@dataclass(frozen=True, slots=True)
class ProposalNotAttempted(Effect):
    """A proposal ended before it left, because an older one of this partition has no answer yet.

    The partition has gone back to its committed ISR; nothing is left to do.
    """

    item: ProposalItem


@dataclass(frozen=True, slots=True)
class ProposalAnswered(Effect):
    """The AlterPartition manager has an answer; the partition's ``on_alter_partition`` wants it."""

    item: ProposalItem
    answer: AlterPartitionAnswer


@dataclass(frozen=True, slots=True)
class CheckWaiting(Effect):
    """Look at what waits for this partition: fetches, produces, record deletions.

    Source:  Partition.tryCompleteDelayedRequests.
    """

    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class CheckWaitingProduces(Effect):
    """Look at the produces and fetches that wait here: another leader epoch began elsewhere.

    Waiting record deletions are left as they are.

    Source:  ReplicaManager.completeDelayedOperationsWhenNotPartitionLeader.
    """

    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Where a leader epoch ends, as a leader tells; -1 where nothing can be said."""

    epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True)
class EpochEndAnswer:
    """The answer to an OffsetForLeaderEpoch question, which carries its error inside."""

    error: ErrorCode = ErrorCode.NONE
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult:
    """What a fetch found; the offsets are those before the fetch changed anything.

    Shapes:  diverging_epoch set: the asker's log has parted from this one, batches are empty.
    """

    batches: tuple[RecordBatch, ...]
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    diverging_epoch: EpochEnd | None = None

    @property
    def last_stable_offset(self) -> int:
        """Without transactions, the high watermark."""
        return self.high_watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResult:
    """Where a produced batch landed; ``repeated`` means that the log had it already."""

    first_offset: int
    last_offset: int
    size: int
    log_start_offset: int
    high_watermark_increased: bool
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerAppendResult:
    """What a fetch answer changed; last_offset is -1 if it held no batch to take."""

    last_offset: int
    high_watermark_changed: bool
    log_start_offset_changed: bool


@dataclass(frozen=True, slots=True)
class DeleteRecordsResult:
    """The deletion is done once the low watermark has reached the offset."""

    requested_offset: int
    low_watermark: int


@dataclass(frozen=True, slots=True)
class OffsetAndEpoch:
    """An answer to list_offsets; epoch None and timestamp -1 where they are not known."""

    offset: int
    leader_epoch: int | None
    timestamp: int = -1


@dataclass(frozen=True, slots=True)
class EnoughReplicas:
    """What a waiting produce asks: is it done, and with which error."""

    reached: bool
    error: ErrorCode
