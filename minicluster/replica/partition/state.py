"""What one partition on one broker holds, and what it says of itself.

Source:  Partition.scala.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from uuid import UUID

from minicluster.effects import Effect, FaultHit
from minicluster.faults import Faults
from minicluster.log import Log
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_view import BrokerView
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.follower_state import FollowerState
from minicluster.replica.partition.isr_changes import IsrChanges
from minicluster.replica.partition.isr_state import IsrState, ProposalItem
from minicluster.replica.partition.replica_log import ReplicaLog
from minicluster.replica.partition.steps import CheckWaiting
from minicluster.replica.partition.trace import PartitionTracer
from minicluster.rules import Rules

REPLICA_LAG_TIME_MAX_MS = 30_000


class PartitionState:
    """One replica of a partition; none of its roles holds before the first ``make_*``.

    Shapes:  ``registration`` is what the metadata log says; min_insync_replicas is the topic's
             config and is set from outside; nothing is looked at again when it changes.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        topic: str,
        topic_id: UUID,
        partition: int,
        log: Log,
        high_watermark_checkpoint: int = 0,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        replica_lag_time_max_ms: int = REPLICA_LAG_TIME_MAX_MS,
        min_insync_replicas: int = 1,
        incarnation: str = "",
        traced: bool = True,
        proposal_ids: Iterator[int] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.rules = rules
        self.faults = faults
        self.replica_lag_time_max_ms = replica_lag_time_max_ms
        self.min_insync_replicas = min_insync_replicas

        self.replica_log = ReplicaLog(log, rules, high_watermark_checkpoint)
        self.leader: int | None = None  # -1: metadata says that nobody leads
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.partition_epoch = 0
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.followers: dict[int, FollowerState] = {}
        self.tracer = PartitionTracer(self, incarnation=incarnation, on=traced)
        self.isr_changes = IsrChanges(itertools.count(1) if proposal_ids is None else proposal_ids)

    # --- what it says -------------------------------------------------------------------------

    @property
    def log(self) -> Log:
        """The log underneath."""
        return self.replica_log.log

    @property
    def log_start_offset(self) -> int:
        """Where the log begins."""
        return self.replica_log.log.start_offset

    @property
    def log_end_offset(self) -> int:
        """Where the next record goes."""
        return self.replica_log.log.end_offset

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may read."""
        return self.replica_log.high_watermark

    @property
    def latest_epoch(self) -> int | None:
        """The highest leader epoch in the log's cache."""
        return self.replica_log.log.epochs.latest

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """Where an epoch ends in this log: (largest epoch not above it, end), or (-1, -1)."""
        return self.replica_log.log.end_offset_for(epoch)

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads."""
        return self.leader == self.broker_id

    @property
    def isr_state(self) -> IsrState:
        """The in-sync replicas; a follower holds none."""
        return self.isr_changes.state

    @property
    def in_flight(self) -> ProposalItem | None:
        """The proposal without an answer, which may be one that no longer matters."""
        return self.isr_changes.in_flight

    @property
    def effective_min_isr(self) -> int:
        """min.insync.replicas, but never more than there are replicas."""
        return min(self.min_insync_replicas, len(self.followers) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether acks=all is refused and the high watermark stands."""
        return self.is_leader and len(self.isr_state.isr) < self.effective_min_isr

    @property
    def is_at_min_isr(self) -> bool:
        """Whether one more lost member would be one too many."""
        return self.is_leader and len(self.isr_state.isr) == self.effective_min_isr

    @property
    def is_under_replicated(self) -> bool:
        """Whether the ISR lacks members, not counting replicas that are being added."""
        wanted = [replica for replica in self.replicas if replica not in self.adding_replicas]
        return self.is_leader and len(wanted) > len(self.isr_state.isr)

    def low_watermark(self, view: BrokerView) -> int:
        """Below which every replica on a live broker has deleted; -1 until they all fetched.

        Errors:  NOT_LEADER_OR_FOLLOWER.
        """
        self.require_leader()
        low = self.log_start_offset
        for broker, follower in self.followers.items():
            if follower.log_start_offset < low and view.alive_epoch(broker) is not None:
                low = follower.log_start_offset
        return low

    # --- the high watermark -------------------------------------------------------------------

    def raise_high_watermark(self, now_ms: int, view: BrokerView, out: list[Effect]) -> bool:
        """Move a leader's high watermark to what everybody who counts is known to hold.

        It waits for the maximal ISR and for every eligible replica that is caught up in time, and
        stands while the ISR is below the minimum (KAFKA-15583).

        Shapes:  -> whether it rose.
        Source:  Partition.maybeIncrementLeaderHW.
        """
        under_min = self.is_under_min_isr
        if under_min and not self.faults.z40_hw_moves_under_min_isr:
            return False
        end = new = self.log_end_offset
        state = self.isr_state
        only_committed = self.faults.s12_hw_ignores_joining_replica
        counted = state.isr if only_committed else state.maximal_isr
        for replica, follower in self.followers.items():
            if follower.log_end_offset < new and (
                replica in counted
                or (
                    not only_committed
                    and follower.is_caught_up(end, now_ms, self.replica_lag_time_max_ms)
                    and view.is_eligible(replica, follower.broker_epoch)
                )
            ):
                new = follower.log_end_offset
        old = self.high_watermark
        rose = self.replica_log.raise_high_watermark(new)
        if self.high_watermark != old:
            if under_min:
                out.append(FaultHit("Z40"))
            if only_committed and any(
                self.followers[m].log_end_offset < new
                for m in state.maximal_isr
                if m in self.followers
            ):
                out.append(FaultHit("S12"))
            self.tracer.row(out, self, "hw", hw_old=old)
        return rose

    def check_waiting(self) -> CheckWaiting:
        """The effect that has waiting operations looked at."""
        return CheckWaiting(self.topic_id, self.partition)

    # --- refusals -----------------------------------------------------------------------------

    def require_leader(self) -> None:
        """Refuse what only a leader does."""
        if not self.is_leader:
            raise ReplicaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.broker_id} does not lead"
            )

    def require_epoch(self, current_leader_epoch: int | None, *, leader_only: bool) -> None:
        """Refuse who knows of an older or a newer leadership (KIP-320)."""
        if current_leader_epoch is not None and current_leader_epoch != self.leader_epoch:
            raise ReplicaError(
                ErrorCode.FENCED_LEADER_EPOCH
                if current_leader_epoch < self.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"the leader epoch here is {self.leader_epoch}, not {current_leader_epoch}",
            )
        if self.leader is None or (leader_only and not self.is_leader):
            raise ReplicaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.broker_id} does not lead"
            )
