"""When a leader proposes another ISR, and what it makes of the controller's answer (KIP-497).

One change is under way at a time. A proposal leaves through the AlterPartition manager; while one
of this partition has no answer yet, be it one that no longer matters, another is refused at once.

Source:  Partition.maybeExpandIsr, maybeShrinkIsr, submitAlterPartition; KIP-841, KIP-903.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from minicluster.effects import Effect, FaultHit
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_view import BrokerView
from minicluster.replica.partition.follower_state import FollowerState
from minicluster.replica.partition.isr_state import (
    NO_BROKER_EPOCH,
    RECOVERED,
    RECOVERING,
    REVERTS,
    WAITS_FOR_METADATA,
    AlterPartitionAnswer,
    Committed,
    IsrProposal,
    IsrState,
    Pending,
    PendingExpand,
    PendingRecovery,
    PendingShrink,
    ProposalItem,
)
from minicluster.replica.partition.steps import ProposalNotAttempted, SubmitProposal
from minicluster.rules import UncleanRecovery

if TYPE_CHECKING:
    from minicluster.replica.partition.state import PartitionState


class IsrChanges:
    """The ISR state of one partition, its proposals, and how many of them came to what."""

    __slots__ = ("_ids", "acknowledged", "expands", "failures", "in_flight", "shrinks", "state")

    def __init__(self, ids: Iterator[int]) -> None:
        self.state: IsrState = Committed(())
        self.in_flight: ProposalItem | None = None
        self.acknowledged: Pending | None = None  # KIP-497's text: answered, the outcome not known
        self.expands = 0
        self.shrinks = 0
        self.failures = 0
        self._ids = ids

    def commit(self, isr: tuple[int, ...], recovery_state: int = RECOVERED) -> None:
        """Take an ISR as the controller's word. Members by ascending id."""
        self.state = Committed(isr, recovery_state)

    def is_asking(self, isr: tuple[int, ...]) -> bool:
        """Whether a change of this committed ISR has been proposed and not been answered."""
        state, item = self.state, self.in_flight
        return (
            item is not None
            and not isinstance(state, Committed)
            and state.proposal == item.proposal
            and state.isr == isr
        )

    # --- proposing ----------------------------------------------------------------------------

    def must_report_recovery(self, partition: PartitionState) -> bool:
        """Whether the leader takes no replica into the ISR before it has told of its recovery."""
        return (
            partition.rules.unclean_leader_recovers is UncleanRecovery.REPORTED
            and self.state.recovery_state == RECOVERING
            and not partition.faults.s09_expand_while_recovering
        )

    def report_recovery(
        self, partition: PartitionState, view: BrokerView, out: list[Effect]
    ) -> None:
        """Propose the ISR as it is, recovered.

        Source:  KIP-704: an AlterPartition whose ISR is the leader alone, or larger.
        """
        state = self.state
        if isinstance(state, Committed):
            proposal = _proposal(partition, view, state.isr, RECOVERED)
            self._propose(partition, PendingRecovery(proposal, state), out)

    def maybe_expand(
        self,
        partition: PartitionState,
        view: BrokerView,
        replica_id: int,
        before: FollowerState,
        out: list[Effect],
    ) -> None:
        """Propose a replica that has just fetched, if it is in sync and may join.

        In sync is who holds everything below the high watermark and below the start of this leader
        epoch; time does not count.
        """
        state = self.state
        if not isinstance(state, Committed) or replica_id in state.isr:
            return
        if self.must_report_recovery(partition):
            self.report_recovery(partition, view, out)
            return
        follower = partition.followers[replica_id]
        in_sync = _in_sync(partition, follower)
        faults = partition.faults
        if not in_sync and faults.z04_eligibility_read_twice:
            rejoined = before.broker_epoch not in (None, follower.broker_epoch)
            if rejoined and _in_sync(partition, before):
                out.append(FaultHit("Z04"))
                in_sync = True
        if not in_sync:
            return
        if not view.is_eligible(replica_id, follower.broker_epoch):
            if not faults.z02_no_local_eligibility_check:
                return
            out.append(FaultHit("Z02"))
        if faults.s09_expand_while_recovering and state.recovery_state == RECOVERING:
            out.append(FaultHit("S09"))
        members = (*state.isr, replica_id)
        proposal = _proposal(partition, view, members, state.recovery_state)
        self._propose(partition, PendingExpand(replica_id, proposal, state), out)

    def maybe_shrink(
        self, partition: PartitionState, now_ms: int, view: BrokerView, out: list[Effect]
    ) -> None:
        """Propose to drop all members that have not caught up in time, in one change."""
        state = self.state
        if not isinstance(state, Committed):
            return
        end, lag_ms = partition.log_end_offset, partition.replica_lag_time_max_ms
        leaving = tuple(
            member
            for member in state.isr
            if member != partition.broker_id
            and not (
                (follower := partition.followers.get(member)) is not None
                and follower.is_caught_up(end, now_ms, lag_ms)
            )
        )
        if not leaving:
            return
        staying = tuple(member for member in state.isr if member not in leaving)
        proposal = _proposal(partition, view, staying, state.recovery_state)
        early = partition.faults.s11_shrink_applied_early
        self._propose(partition, PendingShrink(leaving, proposal, state, early), out)
        if early and self.state.is_pending:
            out.append(FaultHit("S11"))
            if partition.raise_high_watermark(now_ms, view, out):
                out.append(partition.check_waiting())

    def _propose(self, partition: PartitionState, pending: Pending, out: list[Effect]) -> None:
        self.state = pending
        partition.tracer.row(out, partition, "isr_pending")
        self._submit(partition, pending, out)

    def _submit(self, partition: PartitionState, pending: Pending, out: list[Effect]) -> None:
        item = ProposalItem(
            id=next(self._ids),
            topic=partition.topic,
            topic_id=partition.topic_id,
            partition=partition.partition,
            proposal=pending.proposal,
        )
        if self.in_flight is None:
            self.in_flight = item
            out.append(SubmitProposal(item))
        else:
            out.append(ProposalNotAttempted(item))
            self._fail(partition, pending, ErrorCode.OPERATION_NOT_ATTEMPTED, out)

    def ask_again(self, partition: PartitionState, out: list[Effect]) -> None:
        """Repeat a proposal that was acknowledged and of which nothing was heard since.

        The controller may have failed before it decided, or decided against it; if it has written
        it after all, the version of the repetition is out of date, which changes nothing.
        """
        pending = self.state
        if self.acknowledged is None or self.acknowledged is not pending or self.in_flight:
            return
        self.acknowledged = None
        self._submit(partition, pending, out)

    # --- answers ------------------------------------------------------------------------------

    def on_answer(
        self,
        partition: PartitionState,
        now_ms: int,
        view: BrokerView,
        item_id: int,
        answer: AlterPartitionAnswer,
        out: list[Effect],
    ) -> None:
        """Take an answer: one to a proposal that no longer stands is ignored.

        After success the high watermark is looked at again (KAFKA-13091).

        Source:  Partition.handleAlterPartitionUpdate, handleAlterPartitionError.
        """
        item, pending = self.in_flight, self.state
        if item is None or item.id != item_id:
            return
        self.in_flight = None
        if isinstance(pending, Committed) or pending.proposal != item.proposal:
            return
        if answer.error != ErrorCode.NONE:
            self._fail(partition, pending, answer.error, out)
            return
        if answer.acknowledged:
            self.acknowledged = pending
            return
        if (
            answer.leader_epoch != partition.leader_epoch
            or answer.partition_epoch < partition.partition_epoch
        ):
            self.failures += 1
            return
        self.commit(tuple(sorted(set(answer.isr))), answer.recovery_state)
        partition.partition_epoch = answer.partition_epoch
        if isinstance(pending, PendingExpand):
            self.expands += 1
        elif isinstance(pending, PendingShrink):
            self.shrinks += 1
        partition.tracer.row(out, partition, "isr_commit")
        if partition.faults.z18_hw_waits_after_shrink and isinstance(pending, PendingShrink):
            out.append(FaultHit("Z18"))
        elif partition.raise_high_watermark(now_ms, view, out):
            out.append(partition.check_waiting())

    def _fail(
        self, partition: PartitionState, pending: Pending, error: ErrorCode, out: list[Effect]
    ) -> None:
        self.failures += 1
        if error in REVERTS:
            self.state = pending.last_committed
            partition.tracer.row(out, partition, "isr_revert", error=error.name)
        elif error not in WAITS_FOR_METADATA:
            self._submit(partition, pending, out)


def _in_sync(partition: PartitionState, follower: FollowerState) -> bool:
    start = partition.leader_epoch_start_offset
    end = follower.log_end_offset
    return start is not None and end >= partition.high_watermark and end >= start


def _proposal(
    partition: PartitionState, view: BrokerView, members: tuple[int, ...], recovery_state: int
) -> IsrProposal:
    """The proposal with the broker epochs that the members' fetches carried (KIP-903)."""

    def epoch_of(member: int) -> int:
        if member == partition.broker_id:
            return view.broker_epoch
        follower = partition.followers.get(member)
        known = None if follower is None else follower.broker_epoch
        return NO_BROKER_EPOCH if known is None else known

    return IsrProposal(
        leader=partition.broker_id,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=tuple((member, epoch_of(member)) for member in sorted(members)),
        recovery_state=recovery_state,
    )
