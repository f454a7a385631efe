"""The ISR of a leader: committed, or with one change under way (KIP-497).

    Committed --fetch of a caught-up replica--> PendingExpandIsr --success--> Committed (larger)
    Committed --lag of a member--> PendingShrinkIsr --success--> Committed (smaller)
    Committed, recovering --recovered--> PendingRecovery --success--> Committed (KIP-704's text)
    Pending --INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED--> the last committed state
    Pending --metadata of the same or a newer partition epoch--> Committed (as in the metadata)

**Invariant:** the high watermark waits for ``maximal_isr``, which holds every ISR that the
controller may have in force: an expansion counts from the moment it is proposed, because the
controller may have committed it already; a shrink counts once it is committed (B1).

Source:  PartitionState, CommittedPartitionState, PendingExpandIsr, PendingShrinkIsr.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from minicluster.metadata.image.partition import RECOVERED
from minicluster.protocol import ErrorCode

NO_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionItem:
    """The change of one partition that a leader requests; a retry is an equal item.

    Shapes:  isr is (broker id, broker epoch) by ascending id; epoch -1 means not known.
    Source:  AlterPartitionItem, LeaderAndIsr.
    """

    topic: str
    topic_id: UUID
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovery_state: int = RECOVERED

    @property
    def members(self) -> tuple[int, ...]:
        """The proposed ISR without broker epochs."""
        return tuple(member for member, _ in self.isr)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResult:
    """The outcome of one item; with an error, nothing else is set.

    Shapes:  ``acknowledged``: the controller has taken the request and has not decided it yet
             (KIP-497's text); the outcome comes with the metadata.
    """

    error: ErrorCode = ErrorCode.NONE
    acknowledged: bool = False
    leader: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    recovery_state: int = RECOVERED
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class CommittedPartitionState:
    """The ISR as the controller last committed it, members by ascending id."""

    isr: tuple[int, ...]
    recovery_state: int = RECOVERED

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The replicas that the high watermark waits for."""
        return self.isr

    @property
    def is_pending(self) -> bool:
        """A change is under way."""
        return False

    @property
    def last_committed(self) -> CommittedPartitionState:
        """The state to revert to."""
        return self


@dataclass(frozen=True, slots=True)
class _PendingPartitionChange:
    sent: AlterPartitionItem
    last_committed: CommittedPartitionState

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed ISR."""
        return self.last_committed.isr

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The replicas that the high watermark waits for."""
        return self.last_committed.isr

    @property
    def is_pending(self) -> bool:
        """A change is under way."""
        return True

    @property
    def recovery_state(self) -> int:
        """The committed recovery state."""
        return self.last_committed.recovery_state


@dataclass(frozen=True, slots=True)
class PendingExpandIsr(_PendingPartitionChange):
    """A replica is proposed for the ISR; it holds back the high watermark from now on."""

    new_in_sync_replica: int

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR and the new replica."""
        return tuple(sorted((*self.last_committed.isr, self.new_in_sync_replica)))


@dataclass(frozen=True, slots=True)
class PendingShrinkIsr(_PendingPartitionChange):
    """Members are proposed for removal; they hold back the high watermark until it is committed."""

    out_of_sync_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PendingRecovery(_PendingPartitionChange):
    """The leader reports that it has recovered from its unclean election; the ISR is unchanged.

    Only where a leader reports its recovery by itself (``Rules.unclean_leader_recovers``, KIP-704).
    """


Pending = PendingExpandIsr | PendingShrinkIsr | PendingRecovery
PartitionState = CommittedPartitionState | Pending
