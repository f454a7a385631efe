"""The state of one partition on one broker, for its leader and its follower.

The rules are functions of a partition, one file for each subject:

    leadership       make_leader, make_follower          metadata; the table of roles
    isr              maybe_expand_isr, maybe_shrink_isr  AlterPartition; the table of ISR states
    high_watermark   maybe_increment_leader_hw           fetches, appends, ISR changes
    reads            fetch_records, list_offsets         followers, consumers
    leader_log       append_records_to_leader            producers
    follower_log     append_records_to_follower          the fetcher

A function that rejects raises ``ReplicaError`` and has changed nothing. Effects are added to
``context.effects`` in the order in which they happen.

Leaves out: tiered storage.
Source:     KIP-101, KIP-279, KIP-320, KIP-497, KIP-704, KIP-841, KIP-903; Partition.scala.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec import Struct

from minicluster.effects import Trace
from minicluster.log import Log, RecordBatch
from minicluster.metadata.image.directory_id import UNASSIGNED
from minicluster.metadata.image.partition import RECOVERED
from minicluster.protocol import ErrorCode
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.broker_context import AlterPartitionItem, BrokerContext
from minicluster.replica.config import DEFAULT_LOG_CONFIG, MIN_INSYNC_REPLICAS, LogConfig
from minicluster.replica.errors import ReplicaError
from minicluster.replica.log_manager import log_name
from minicluster.replica.partition.replica_log import ReplicaLog
from minicluster.replica.partition.replica_state import ReplicaState
from minicluster.replica.requests.purgatory import Key
from minicluster.rules import Rules
from minicluster.trace import TABLES
from minicluster.values import Value

if TYPE_CHECKING:
    from minicluster.replica.fetching.skipped import SkippedPartition

# --- states of the ISR: the head of ``isr`` has their table ------------------------------------


class CommittedPartitionState(Value):
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


class _PendingPartitionChange(Value):
    """A change that has no result yet; the committed ISR and recovery state hold until then."""

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


class PendingExpandIsr(_PendingPartitionChange):
    """A replica is proposed for the ISR; it holds back the high watermark from now on."""

    new_in_sync_replica: int

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR and the new replica."""
        return tuple(sorted((*self.last_committed.isr, self.new_in_sync_replica)))


class PendingShrinkIsr(_PendingPartitionChange):
    """Members are proposed for removal; they hold back the high watermark until it is committed."""

    out_of_sync_replicas: tuple[int, ...]


class PendingRecovery(_PendingPartitionChange):
    """The leader reports that it has recovered from its unclean election; the ISR is unchanged.

    Only where a leader reports its recovery by itself (``Rules.unclean_leader_recovers``, KIP-704).
    """


Pending = PendingExpandIsr | PendingShrinkIsr | PendingRecovery
PartitionState = CommittedPartitionState | Pending


# --- the partition -----------------------------------------------------------------------------


class FutureReplica(Struct):
    """The copy of a log that is about to replace it from another directory (``log_directories``).

    Shapes:  is_queued: the new directory is reported to the controller (ReassignmentState.Queued).
    """

    directory: UUID
    log: Log
    is_queued: bool = False


class Partition:
    """One replica of a partition; it has no role before the first make_leader or make_follower.

    Shapes:  ``leader`` is None before the first metadata and -1 where the metadata names no leader.
             ``min_insync_replicas`` and ``log_config`` are the topic's configs; a change of them
             takes effect with the next operation.
    """

    def __init__(
        self,
        context: BrokerContext,
        *,
        topic: str,
        topic_id: UUID,
        partition: int,
        log: Log,
        high_watermark_checkpoint: int = 0,
        min_insync_replicas: int = MIN_INSYNC_REPLICAS,
        log_config: LogConfig = DEFAULT_LOG_CONFIG,
        directory: UUID = UNASSIGNED,
    ) -> None:
        self.context = context
        self.broker_id = context.broker_id  # that holds this replica
        self.faults, self.hit = context.faults, context.hit
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.key: Key = (topic_id, partition)
        self.min_insync_replicas = min_insync_replicas
        self.log_config = log_config
        self.name = log_name(topic, partition)

        self.skipped_by: list[SkippedPartition] = []
        context.unwritten[self] = context.isr_unchecked[self] = None
        self.replica_log = ReplicaLog(
            log, context.rules, high_watermark_checkpoint, on_change=self.on_change
        )
        self.future: FutureReplica | None = None  # while it moves to another directory
        self.leader: int | None = None
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.partition_epoch = 0
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.remote_replicas: dict[int, ReplicaState] = {}

        self.isr_state: PartitionState = CommittedPartitionState(())
        self.in_flight: AlterPartitionItem | None = None  # sent, and not completed
        self.overtaken: AlterPartitionItem | None = None  # by a later partition epoch
        self.acknowledged: Pending | None = None  # KIP-497's text: taken, and not decided
        self.isr_expands = 0
        self.isr_shrinks = 0
        self.failed_isr_updates = 0
        self.blank_trace_row: dict[str, Any] = {
            **dict.fromkeys(TABLES["partition_event"]),
            "broker": context.broker_id,
            "incarnation": context.config.incarnation,
            "topic": topic,
            "topic_id": format_uuid(topic_id),
            "part": partition,
            "directory": format_uuid(directory),
        }

    # --- shared with the broker ---------------------------------------------------------------

    @property
    def rules(self) -> Rules:
        """The release of Kafka that is followed."""
        return self.context.rules

    # --- log ----------------------------------------------------------------------------------

    @property
    def log(self) -> Log:
        """The log on disk."""
        return self.replica_log.log

    def replace_log(self, log: Log, directory: UUID) -> None:
        """Continue with another log of the same records, in another directory.

        Source:  Partition.maybeReplaceCurrentWithFutureReplica.
        """
        self.on_change()
        self.replica_log = ReplicaLog(
            log, self.rules, self.high_watermark, on_change=self.on_change
        )
        self.blank_trace_row["directory"] = format_uuid(directory)

    def on_change(self) -> None:
        """Let followers' fetches read this partition: its log, role or ISR changes.

        Called before the change where a session's times still have to be noted in the state that
        the change replaces.
        """
        self.context.unwritten[self] = self.context.isr_unchecked[self] = None
        while self.skipped_by:
            self.skipped_by[-1].read_again()

    @property
    def log_start_offset(self) -> int:
        """The first offset of the log."""
        return self.replica_log.log.start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.replica_log.log.end_offset

    @property
    def high_watermark(self) -> int:
        """The end of the committed records, as known here."""
        return self.replica_log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The end of what a consumer with read_committed may read."""
        return self.replica_log.last_stable_offset

    @property
    def latest_epoch(self) -> int | None:
        """The highest leader epoch in the log's cache."""
        return self.replica_log.log.epochs.latest

    # --- ISR ----------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """This broker leads."""
        return self.leader == self.broker_id

    @property
    def effective_min_isr(self) -> int:
        """min.insync.replicas, but never more than there are replicas."""
        return min(self.min_insync_replicas, len(self.remote_replicas) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        """The ISR is smaller than min.insync.replicas."""
        return self.is_leader and len(self.isr_state.isr) < self.effective_min_isr

    # --- rejections ---------------------------------------------------------------------------

    def require_leader(self) -> None:
        """Reject what only a leader does.

        Errors:  NOT_LEADER_OR_FOLLOWER.
        """
        if not self.is_leader:
            raise ReplicaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.broker_id} does not lead"
            )

    def require_epoch(self, current_leader_epoch: int | None, *, leader_only: bool) -> None:
        """Reject a request of another leader epoch (KIP-320).

        An older epoch is FENCED, so that the sender refreshes its metadata. A newer one is UNKNOWN:
        this broker is the one with old metadata, and the sender retries.

        Errors:  FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER.
        Source:  Partition.getLocalLog, checkCurrentLeaderEpoch.
        """
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


# --- the rows of the table ``partition_event`` of the trace -------------------------------------

_LEADS = frozenset(
    {"become_leader", "isr_pending", "isr_commit", "isr_revert", "hw", "ack", "stop"}
)
_BEGINS = frozenset({"become_leader", "become_follower"})


def trace(
    partition: Partition,
    kind: str,
    *,
    offset: int | None = None,
    hw_old: int | None = None,
    error: str | None = None,
    appended: Sequence[RecordBatch] = (),
) -> None:
    """Record an event with the partition's state after it.

    Shapes:  rows of a leader's events also hold ISR, maximal ISR and the fetch state of its
             followers: {broker: [log end, leader epoch in which it was learned, broker epoch]}.
             appended: of an append; those above the offset were not appended.
    """
    context = partition.context
    if not context.config.traced:
        return
    replica_log = partition.replica_log
    high_watermark = replica_log.high_watermark
    row = partition.blank_trace_row.copy()
    row["kind"] = kind
    row["leader_epoch"] = partition.leader_epoch
    row["partition_epoch"] = partition.partition_epoch
    row["hw_old"] = high_watermark if hw_old is None else hw_old
    row["hw_new"] = high_watermark
    row["leo"] = replica_log.log.end_offset
    row["offset"] = offset
    row["error"] = error
    if kind == "append":
        row["epochs"] = _epochs(appended, -1 if offset is None else offset)
    elif kind in _BEGINS:
        row["epochs"] = [number for entry in replica_log.log.epochs.entries for number in entry]
    if (kind in _LEADS or kind == "append") and partition.is_leader:
        state = partition.isr_state
        row["isr"] = state.isr
        row["maximal_isr"] = state.maximal_isr
        if kind != "append":
            row["min_isr"] = partition.effective_min_isr
            row["follower_leos"] = _fetch_states(partition.remote_replicas)
    context.effects.append(Trace("partition_event", row))


def _fetch_states(replicas: Mapping[int, ReplicaState]) -> str:
    """The fetch states of a leader's followers as JSON, which is written at each acknowledgement:
    Python's encoder takes six times as long.
    """
    states = [
        f'"{broker}": [{replica.log_end_offset}, {replica.leader_epoch}, '
        f"{'null' if replica.broker_epoch is None else replica.broker_epoch}]"
        for broker, replica in replicas.items()
    ]
    return f"{{{', '.join(states)}}}"


def _epochs(appended: Sequence[RecordBatch], last_offset: int) -> list[int]:
    """Each leader epoch of the batches, and the offset from which on they have it."""
    epochs: list[int] = []
    for batch in appended:
        if batch.base_offset > last_offset:
            break
        if not epochs or epochs[-2] != batch.leader_epoch:
            epochs += (batch.leader_epoch, batch.base_offset)
    return epochs
