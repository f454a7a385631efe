"""One partition on one broker: its leader and its follower, on a log that outlives both.

Inputs are method calls with the time and, where other brokers matter, the broker's view of them.
Each returns a ``Step``: the answer, and effects in the order they happened. A call that is refused
raises ``ReplicaError`` and has changed nothing.

    metadata log  --make_leader, make_follower-->   Partition  --SubmitProposal-->   manager
    followers     --fetch-->                        (leader)   <--on_alter_partition--
    producers     --append_as_leader-->                        --CheckWaiting-->     purgatories
    own fetcher   --append_as_follower, truncate--> (follower)

Leaves out: tiered storage, transactions, a second log while directories change (KIP-113).
Source:     KIP-101, KIP-279, KIP-320, KIP-497, KIP-704, KIP-841, KIP-903; Partition.scala.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.effects import Effect, FaultHit
from minicluster.log import RecordBatch
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_view import BrokerView
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition import reads
from minicluster.replica.partition.follower_state import FollowerState
from minicluster.replica.partition.isr_state import (
    NO_BROKER_EPOCH,
    RECOVERED,
    AlterPartitionAnswer,
)
from minicluster.replica.partition.state import (
    REPLICA_LAG_TIME_MAX_MS as REPLICA_LAG_TIME_MAX_MS,
)
from minicluster.replica.partition.state import (
    PartitionState,
)
from minicluster.replica.partition.steps import (
    AppendResult,
    CheckWaitingProduces,
    DeleteRecordsResult,
    EnoughReplicas,
    EpochEndAnswer,
    FetchResult,
    FollowerAppendResult,
    OffsetAndEpoch,
    Step,
)
from minicluster.replica.partition.unclean_recovery import abort_marker, open_transactions
from minicluster.rules import UncleanRecovery

HIGH_WATERMARK = -1  # as the offset of delete_records
ACKS_ALL = -1


class Partition(PartitionState):
    """One replica of a partition: its inputs."""

    # --- roles --------------------------------------------------------------------------------

    def make_leader(
        self, now_ms: int, view: BrokerView, registration: PartitionRegistration
    ) -> Step[bool]:
        """Lead, as the metadata log says; what it says of the ISR replaces any pending change.

        Metadata below the own partition epoch is ignored, an equal one is applied; but a change
        proposed since, whose answer is on its way, outlives it (as shipped it does not). A leader
        takes its partition as recovered, whatever the metadata says; or, where the rules follow
        KIP-704's text, undoes what an unclean election left undecided and reports that.

        Shapes:  -> whether this broker did not lead before.
        Source:  Partition.makeLeader.
        """
        out: list[Effect] = []
        if self._ignores(registration, out):
            return Step(False, out)
        is_new_leader = not self.is_leader
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        is_repeat = (
            registration.partition_epoch == self.partition_epoch
            and not (is_new_leader or is_new_epoch)
            and not self.rules.equal_partition_epoch_ends_pending
        )
        recovery_state = (
            registration.leader_recovery_state
            if self.faults.s09_expand_while_recovering
            or self.rules.unclean_leader_recovers is UncleanRecovery.REPORTED
            else RECOVERED
        )
        self._assign(registration)
        self.followers = {
            replica: self.followers.get(replica, FollowerState())
            for replica in registration.replicas
            if replica != self.broker_id
        }
        isr = tuple(sorted(set(registration.isr)))
        keeps_asking = is_repeat and self.isr_changes.is_asking(isr)
        if not keeps_asking:
            self.isr_changes.commit(isr, recovery_state)
        if is_new_epoch:
            self._begin_epoch(now_ms, registration, is_new_leader, out)
        self.leader = self.broker_id
        self.tracer.row(out, self, "isr_pending" if keeps_asking else "become_leader")
        if not keeps_asking and self.isr_changes.must_report_recovery(self):
            if is_new_epoch:
                self._abort_transactions(now_ms, out)
            self.isr_changes.report_recovery(self, view, out)
        if self.raise_high_watermark(now_ms, view, out):
            out.append(self.check_waiting())
        return Step(is_new_leader, out)

    def _abort_transactions(self, now_ms: int, out: list[Effect]) -> None:
        """Abort the transactions that nobody will end any more (KIP-704)."""
        for producer in open_transactions(self.log.batches):
            marker = abort_marker(producer, self.leader_epoch, now_ms)
            placed = self.replica_log.append_as_leader(marker, self.leader_epoch)
            self.tracer.row(out, self, "append", offset=placed.last_offset)

    def make_follower(self, now_ms: int, registration: PartitionRegistration) -> Step[bool]:
        """Follow whom the metadata log names, or nobody (leader -1).

        Shapes:  -> whether the leader epoch changed; then the fetcher must begin anew.
        Source:  Partition.makeFollower.
        """
        out: list[Effect] = []
        if self._ignores(registration, out):
            return Step(False, out)
        is_new_epoch = registration.leader_epoch > self.leader_epoch
        self._assign(registration)
        self.leader = registration.leader
        self.leader_epoch = registration.leader_epoch
        self.leader_epoch_start_offset = None
        if not self.faults.s13_stale_acks_count:
            self.followers = {}
        self.isr_changes.commit((), registration.leader_recovery_state)
        self.tracer.row(out, self, "become_follower")
        if is_new_epoch:
            out.append(CheckWaitingProduces(self.topic_id, self.partition))
        return Step(is_new_epoch, out)

    def stop(self, *, delete: bool) -> list[Effect]:
        """Leave the partition, deleting its replica or not; the caller forgets this object."""
        out: list[Effect] = []
        self.leader = None
        self.tracer.row(out, self, "delete" if delete else "stop")
        return out

    def end(self) -> list[Effect]:
        """Note what this replica was when its broker ended in good order."""
        out: list[Effect] = []
        self.tracer.row(out, self, "stop")
        return out

    def _ignores(self, registration: PartitionRegistration, out: list[Effect]) -> bool:
        if registration.partition_epoch >= self.partition_epoch:
            return False
        if self.faults.z15_older_partition_epoch_applied:
            out.append(FaultHit("Z15"))
            return False
        if self.faults.z17_pending_cleared_by_old_metadata and self.isr_state.is_pending:
            out.append(FaultHit("Z17"))
            self.isr_changes.state = self.isr_state.last_committed
            self.tracer.row(out, self, "isr_revert")
        return True

    def _assign(self, registration: PartitionRegistration) -> None:
        self.partition_epoch = registration.partition_epoch
        self.replicas = registration.replicas
        self.adding_replicas = registration.adding_replicas
        self.removing_replicas = registration.removing_replicas

    def _begin_epoch(
        self,
        now_ms: int,
        registration: PartitionRegistration,
        is_new_leader: bool,
        out: list[Effect],
    ) -> None:
        start_offset = self.log_end_offset
        self.leader_epoch = registration.leader_epoch
        self.leader_epoch_start_offset = start_offset
        self.log.epochs.assign(registration.leader_epoch, start_offset)
        forgets = is_new_leader
        if is_new_leader and self.faults.s13_stale_acks_count:
            forgets = False
            if any(f.broker_epoch is not None for f in self.followers.values()):
                out.append(FaultHit("S13"))
        for replica, follower in self.followers.items():
            self.followers[replica] = follower.new_epoch(
                leader_end_offset=start_offset,
                leader_epoch=follower.leader_epoch if is_new_leader else self.leader_epoch,
                is_new_leader=forgets,
                in_isr=replica in registration.isr,
                now_ms=now_ms,
            )

    # --- reading ------------------------------------------------------------------------------

    def fetch(
        self,
        now_ms: int,
        view: BrokerView,
        *,
        replica_id: int,
        broker_epoch: int = NO_BROKER_EPOCH,
        fetch_offset: int,
        log_start_offset: int,
        current_leader_epoch: int | None,
        last_fetched_epoch: int | None,
        max_bytes: int,
        deletes_wait: bool = False,
    ) -> Step[FetchResult]:
        """Answer a follower, and learn from what it asks how far it is.

        A diverging answer changes nothing. The follower may be proposed for the ISR, the high
        watermark may rise. ``deletes_wait`` says that a deletion of records waits here.

        Errors:  FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER (no leader, no
                 replica, or a broker epoch below the image's), OFFSET_OUT_OF_RANGE.
        Source:  Partition.fetchRecords, updateFollowerFetchState.
        """
        self.require_epoch(current_leader_epoch, leader_only=True)
        before = self.followers.get(replica_id)
        if before is None:
            raise ReplicaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER
                if current_leader_epoch is None
                else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {replica_id} is not known as a replica",
            )
        limit = self.log_end_offset
        result, found = reads.read(self, fetch_offset, last_fetched_epoch, max_bytes, limit)
        if result.diverging_epoch is not None:
            return Step(result)
        alive_epoch = view.alive_epoch(replica_id)
        if alive_epoch is not None and NO_BROKER_EPOCH < broker_epoch < alive_epoch:
            raise ReplicaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {replica_id} is at epoch {alive_epoch}, not {broker_epoch}",
            )
        out: list[Effect] = []
        old_low = self.low_watermark(view) if deletes_wait else -1
        after = self.followers[replica_id] = before.fetched(
            log_start_offset=log_start_offset,
            log_end_offset=found,
            leader_end_offset=limit,
            broker_epoch=broker_epoch,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
        )
        new_low = self.low_watermark(view) if deletes_wait else -1
        self.isr_changes.maybe_expand(self, view, replica_id, before, out)
        rose = False
        if before.log_end_offset != after.log_end_offset:
            rose = self.raise_high_watermark(now_ms, view, out)
        if rose or new_low > old_low:
            out.append(self.check_waiting())
        return Step(result, out)

    def consumer_fetch(
        self,
        *,
        fetch_offset: int,
        any_replica: bool = False,
        current_leader_epoch: int | None = None,
        last_fetched_epoch: int | None = None,
        max_bytes: int,
    ) -> Step[FetchResult]:
        """Answer a consumer with what lies below the high watermark.

        Errors:  as fetch; NOT_LEADER_OR_FOLLOWER on a follower unless any replica may answer.
        """
        self.require_epoch(current_leader_epoch, leader_only=not any_replica)
        out: list[Effect] = []
        if self.faults.s31_reads_above_hw:
            limit = self.log_end_offset
        else:
            old = self.high_watermark
            limit = self.replica_log.locate_high_watermark()
            if limit != old:
                self.tracer.row(out, self, "hw", hw_old=old)
        result, _ = reads.read(self, fetch_offset, last_fetched_epoch, max_bytes, limit)
        if result.batches and result.batches[-1].last_offset >= self.high_watermark:
            out.append(FaultHit("S31"))
        return Step(result, out)

    def list_offsets(
        self,
        *,
        timestamp: int,
        from_replica: bool = False,
        current_leader_epoch: int | None = None,
        leader_only: bool = True,
    ) -> OffsetAndEpoch | None:
        """The latest (-1) or earliest (-2) offset, or the first one not before a time.

        A replica is told the log end, all others the high watermark.

        Shapes:  -> None if no record is as young.
        Errors:  as fetch; OFFSET_NOT_AVAILABLE while a new leader's high watermark lags behind
                 the start of its epoch.
        Source:  Partition.fetchOffsetForTimestamp.
        """
        self.require_epoch(current_leader_epoch, leader_only=leader_only)
        return reads.list_offsets(self, timestamp, from_replica=from_replica)

    def last_offset_for_leader_epoch(
        self, epoch: int, *, current_leader_epoch: int | None = None, leader_only: bool = True
    ) -> EpochEndAnswer:
        """Where an epoch ends in this log (OffsetForLeaderEpoch, KIP-320)."""
        try:
            self.require_epoch(current_leader_epoch, leader_only=leader_only)
        except ReplicaError as refusal:
            return EpochEndAnswer(refusal.error)
        return EpochEndAnswer(ErrorCode.NONE, *self.end_offset_for(epoch))

    # --- writing ------------------------------------------------------------------------------

    def append_as_leader(
        self, now_ms: int, view: BrokerView, batch: RecordBatch, *, acks: int
    ) -> Step[AppendResult]:
        """Append a producer's batch; a repeat of an idempotent producer's is answered as then.

        Errors:  NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS (acks=all below the minimum),
                 INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
        Source:  Partition.appendRecordsToLeader.
        """
        self.require_leader()
        if acks == ACKS_ALL and self.is_under_min_isr:
            raise ReplicaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr_state.isr)} in sync, {self.effective_min_isr} needed",
            )
        out: list[Effect] = []
        producers = self.replica_log.producers
        repeat = producers.find_repeat(batch)
        if repeat is not None and self.faults.s34_repeats_are_appended:
            out.append(FaultHit("S34"))
        elif repeat is not None:
            return Step(self._appended(repeat[0], repeat[1], batch, rose=False, repeated=True))
        else:
            producers.check(batch)
        placed = self.replica_log.append_as_leader(batch, self.leader_epoch)
        self.tracer.row(out, self, "append", offset=placed.last_offset)
        rose = self.raise_high_watermark(now_ms, view, out)
        return Step(self._appended(placed.base_offset, placed.last_offset, batch, rose=rose), out)

    def _appended(
        self, first: int, last: int, batch: RecordBatch, *, rose: bool, repeated: bool = False
    ) -> AppendResult:
        return AppendResult(
            first_offset=first,
            last_offset=last,
            size=batch.size,
            log_start_offset=self.log_start_offset,
            high_watermark_increased=rose,
            repeated=repeated,
        )

    def check_enough_replicas(self, required_offset: int) -> EnoughReplicas:
        """Whether a produce with acks=all that waits for an offset (exclusive) is done.

        Source:  Partition.checkEnoughReplicasReachOffset.
        """
        if not self.is_leader:
            return EnoughReplicas(False, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.high_watermark < required_offset and not self.faults.s32_acks_all_at_once:
            return EnoughReplicas(False, ErrorCode.NONE)
        if self.effective_min_isr <= len(self.isr_state.maximal_isr):
            return EnoughReplicas(True, ErrorCode.NONE)
        return EnoughReplicas(True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def acknowledged(self, last_offset: int) -> list[Effect]:
        """Note that an acks=all produce was answered without error up to this offset."""
        out: list[Effect] = []
        if last_offset >= self.high_watermark and self.faults.s32_acks_all_at_once:
            out.append(FaultHit("S32"))
        self.tracer.row(out, self, "ack", offset=last_offset)
        return out

    def append_as_follower(
        self,
        batches: Sequence[RecordBatch],
        *,
        partition_leader_epoch: int,
        leader_high_watermark: int,
        leader_log_start_offset: int,
    ) -> Step[FollowerAppendResult]:
        """Take a leader's fetch answer: its batches, its high watermark, its log start.

        Batches of a higher epoch than that of the fetch fall away. The high watermark follows the
        leader's down as well as up.

        Errors:  OffsetsOutOfOrder, UnexpectedAppendOffset, before anything is appended;
                 OFFSET_OUT_OF_RANGE (a log start above the high watermark), after it.
        Source:  ReplicaFetcherThread.processPartitionData.
        """
        out: list[Effect] = []
        replica_log = self.replica_log
        last_offset = replica_log.append_as_follower(batches, partition_leader_epoch)
        if last_offset >= 0:
            self.tracer.row(out, self, "append", offset=last_offset)
        old = self.high_watermark
        moved = replica_log.set_high_watermark(leader_high_watermark)
        started = replica_log.delete_before(leader_log_start_offset)
        if self.high_watermark != old:
            self.tracer.row(out, self, "hw", hw_old=old)
        result = FollowerAppendResult(
            last_offset=last_offset,
            high_watermark_changed=moved,
            log_start_offset_changed=started,
        )
        return Step(result, out)

    def truncate(self, offset: int) -> list[Effect]:
        """Cut the log to an offset, as a follower does when it has parted from its leader."""
        out: list[Effect] = []
        old = self.high_watermark
        if self.replica_log.truncate(offset):
            self.tracer.row(out, self, "truncate", offset=offset, hw_old=old)
        return out

    def truncate_fully(self, offset: int) -> list[Effect]:
        """Drop everything and begin at an offset, as a follower out of its leader's range does.

        Shapes:  the trace has it as a truncation only if the log reached beyond the offset.
        """
        out: list[Effect] = []
        old, old_end = self.high_watermark, self.log_end_offset
        self.replica_log.truncate_fully(offset)
        if old_end > offset:
            self.tracer.row(out, self, "truncate", offset=offset, hw_old=old)
        else:
            self.tracer.row(out, self, "append", hw_old=old)
        return out

    def delete_records(self, view: BrokerView, offset: int) -> DeleteRecordsResult:
        """Let the log begin at an offset (-1: the high watermark).

        Errors:  NOT_LEADER_OR_FOLLOWER; OFFSET_OUT_OF_RANGE above the high watermark.
        """
        self.require_leader()
        wanted = self.high_watermark if offset == HIGH_WATERMARK else offset
        if wanted < 0:
            raise ReplicaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is no offset")
        self.replica_log.delete_before(wanted)
        return DeleteRecordsResult(wanted, self.low_watermark(view))

    # --- in-sync replicas ---------------------------------------------------------------------

    def maybe_shrink_isr(self, now_ms: int, view: BrokerView) -> list[Effect]:
        """Propose to drop the members that have lagged for too long; the periodic task."""
        out: list[Effect] = []
        if self.is_leader:
            self.isr_changes.ask_again(self, out)
        if self.is_leader and self.isr_changes.must_report_recovery(self):
            self.isr_changes.report_recovery(self, view, out)
        elif self.is_leader:
            self.isr_changes.maybe_shrink(self, now_ms, view, out)
        return out

    def on_alter_partition(
        self, now_ms: int, view: BrokerView, item_id: int, answer: AlterPartitionAnswer
    ) -> list[Effect]:
        """Take the controller's answer to a submission, or what stands in for one."""
        out: list[Effect] = []
        self.isr_changes.on_answer(self, now_ms, view, item_id, answer, out)
        return out
