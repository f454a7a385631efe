"""What a leader holds for the in-sync replicas: committed, or with one change under way (KIP-497).

    Committed --fetch of a caught-up replica--> PendingExpand --success--> Committed (larger)
    Committed --lag of a member--> PendingShrink --success--> Committed (smaller)
    Committed, recovering --recovered--> PendingRecovery --success--> Committed (KIP-704's text)
    Pending --INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED--> the Committed state before it
    Pending --metadata of the own or a newer partition epoch--> Committed (what that says)

Invariant: the high watermark waits for ``maximal_isr``, which holds every ISR that the controller
may have in force: an expansion counts from the moment it is proposed, a shrink once it is
committed (B1).
Source:    Partition.scala, PartitionState; CommittedPartitionState, PendingExpandIsr,
           PendingShrinkIsr.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from minicluster.protocol import ErrorCode

RECOVERED = 0
RECOVERING = 1

NO_BROKER_EPOCH = -1

# After these a leader goes back to the last committed ISR; whoever sees need proposes again.
REVERTS = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
# After these it waits, pending, for metadata that tells it what became of the partition.
WAITS_FOR_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """What a leader asks the controller to write; equal proposals are the same question.

    Shapes:  isr is (broker id, broker epoch) by ascending id; epoch -1 means not known.
    """

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovery_state: int = RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalItem:
    """One submission of a proposal; a retry is a new one."""

    id: int
    topic: str
    topic_id: UUID
    partition: int
    proposal: IsrProposal

    @property
    def isr(self) -> tuple[tuple[int, int], ...]:
        """The proposed members with their broker epochs."""
        return self.proposal.isr


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionAnswer:
    """The controller's answer for one partition; with an error, nothing else is set.

    Shapes:  ``acknowledged``: the proposal has been taken and will be decided (KIP-497's text); the
             outcome comes with the metadata.
    """

    error: ErrorCode = ErrorCode.NONE
    acknowledged: bool = False
    leader: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    recovery_state: int = RECOVERED
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Committed:
    """The ISR as the controller last said it. Members by ascending id."""

    isr: tuple[int, ...]
    recovery_state: int = RECOVERED

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Whom the high watermark waits for."""
        return self.isr

    @property
    def is_pending(self) -> bool:
        """Whether a change is under way."""
        return False

    @property
    def last_committed(self) -> Committed:
        """The state to go back to."""
        return self


@dataclass(frozen=True, slots=True)
class PendingExpand:
    """A replica is to join: it counts from now on, though not as in sync."""

    joining: int
    proposal: IsrProposal
    last_committed: Committed

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed ISR."""
        return self.last_committed.isr

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR and who joins."""
        return tuple(sorted((*self.last_committed.isr, self.joining)))

    @property
    def is_pending(self) -> bool:
        """Whether a change is under way."""
        return True

    @property
    def recovery_state(self) -> int:
        """As committed."""
        return self.last_committed.recovery_state


@dataclass(frozen=True, slots=True)
class PendingShrink:
    """Replicas are to leave: they count until the controller has written it.

    Shapes:  ``applied_early`` is the planted fault S11.
    """

    leaving: tuple[int, ...]
    proposal: IsrProposal
    last_committed: Committed
    applied_early: bool = False

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed ISR."""
        return self.last_committed.isr

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR."""
        if self.applied_early:
            return tuple(member for member in self.isr if member not in self.leaving)
        return self.last_committed.isr

    @property
    def is_pending(self) -> bool:
        """Whether a change is under way."""
        return True

    @property
    def recovery_state(self) -> int:
        """As committed."""
        return self.last_committed.recovery_state


@dataclass(frozen=True, slots=True)
class PendingRecovery:
    """The leader has recovered from its unclean election and tells so; the ISR stays (KIP-704).

    Only where a leader reports its recovery by itself (``Rules.unclean_leader_recovers``).
    """

    proposal: IsrProposal
    last_committed: Committed

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed ISR: the leader."""
        return self.last_committed.isr

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR."""
        return self.last_committed.isr

    @property
    def is_pending(self) -> bool:
        """Whether a change is under way."""
        return True

    @property
    def recovery_state(self) -> int:
        """As committed: recovering."""
        return self.last_committed.recovery_state


Pending = PendingExpand | PendingShrink | PendingRecovery
IsrState = Committed | Pending
