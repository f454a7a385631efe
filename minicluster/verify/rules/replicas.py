"""What replicas hold, and when their high watermarks move (KIP-497, KIP-101)."""

from __future__ import annotations

from minicluster.verify.histories.electable import ElectableReplica
from minicluster.verify.histories.failed_directories import LeaderAfterFailure, LogAtEnd
from minicluster.verify.histories.held_logs import HighWatermarkBesideLogs
from minicluster.verify.histories.replicas import (
    Acknowledged,
    HighWatermarkMoved,
    PartitionEpochApplied,
    ReplicaBegun,
    Truncated,
    WrittenByLeader,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.memberships import no_isr_member_is_in_a_lost_directory
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, ids, rule


@rule("B2", "The high watermark waits for the maximal ISR",
      source="KIP-497, KIP-101; Partition.maybeIncrementLeaderHW", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="The high watermark goes to 8, and broker 3 of the maximal ISR has fetched up to 7.",
      keeps="The high watermark goes to 8; brokers 2 and 3 have fetched that, and 4 "
      "is not in the maximal ISR.")  # fmt: skip
def the_high_watermark_waits_for_the_maximal_isr(moved: HighWatermarkMoved) -> Findings:
    """A leader advances its high watermark only over offsets that every member of its maximal ISR
    has fetched up to, in this leader epoch, and that the member's own log has."""
    if moved.waited_for is None:
        return
    yield CASE
    have_fetched = all(
        fetch.leader_epoch == moved.leader_epoch and fetch.log_end >= moved.new
        for fetch in moved.waited_for
    )
    if moved.log_end < moved.new or not have_fetched:
        yield broken(
            f"leader {moved.broker} advanced its high watermark to {moved.new} before all of "
            f"{ids(moved.maximal_isr)} had fetched up to it",
            broker=moved.broker,
        )


@the_high_watermark_waits_for_the_maximal_isr.also
def _as_the_members_own_logs_have_it(advance: HighWatermarkBesideLogs) -> Findings:
    """A leader knows the fetches of its followers alone: one that crashed may have lost since what
    it had fetched, which its own events show."""
    for member in advance.lacking:
        yield broken(
            f"leader {advance.leader} advanced its high watermark to {advance.high_watermark}, and "
            f"the log of a member of its maximal ISR, {ids([member])}, does not hold the leader's "
            "records up to there",
            broker=advance.leader,
        )


@rule("B3", "Replicas that may be elected hold every committed record",
      source="KIP-497, KIP-966; StrongISR", at_end=True, evidence=Evidence.TRACE,
      tables=("partition_event", "raft_event"),
      breaks="The high watermark is 8; broker 2 is in the ISR, and its log ends at 3.",
      keeps="Broker 2 has all 8 committed records; after an unclean election it "
      "leads with 3.")  # fmt: skip
def electable_replicas_hold_what_is_committed(replica: ElectableReplica) -> Findings:
    """A running replica in the committed ISR or ELR holds every record below the highest high
    watermark, except after an unclean election or the loss of the last ISR member."""
    if replica.has_lost:
        yield exempt("the partition had lost records by then, rightly")
        return
    yield CASE
    mark = replica.true_high_watermark
    if replica.log_end is not None and replica.log_end < mark:
        yield broken(
            f"broker {replica.broker} may be elected (ISR and ELR {ids(replica.candidates)}) and "
            f"its log ends below the high watermark {mark}",
            broker=replica.broker,
        )


@electable_replicas_hold_what_is_committed.also
def _and_none_loses_records_while_it_runs(begun: ReplicaBegun) -> Findings:
    end, end_before = begun.log_end, begun.log_end_before
    if end is not None and end_before is not None and end < end_before:
        yield broken(
            f"broker {begun.broker} lost records without a truncation: its log ends at {end}",
            broker=begun.broker,
        )


@rule("B6", "Partition epochs never decrease on a broker",
      source="KIP-497, KAFKA-13790; Partition.makeLeader, makeFollower",
      evidence=Evidence.TRACE, tables=("partition_event",),
      breaks="Broker 1 applies partition epoch 1, and then 0.",
      keeps="Broker 1 applies partition epochs 0, 0 and 1; another incarnation of "
      "it applies 0.")  # fmt: skip
def partition_epochs_never_decrease_on_a_broker(applied: PartitionEpochApplied) -> Findings:
    """A running broker never applies an older partition epoch, and an equal partition epoch has the
    same leader epoch."""
    yield CASE
    is_equal = applied.partition_epoch == applied.partition_epoch_before
    if applied.partition_epoch < applied.highest_before or (
        is_equal and applied.leader_epoch != applied.leader_epoch_before
    ):
        yield broken(
            f"broker {applied.broker} applied an older partition epoch, or the same one with "
            "another leader epoch",
            broker=applied.broker,
        )


@rule("B10", "The high watermark does not advance below min.insync.replicas",
      source="KIP-966, KAFKA-15583; Partition.maybeIncrementLeaderHW", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="min.insync.replicas is 2, the ISR [1], and the high watermark goes from 0 to 8.",
      keeps="min.insync.replicas is 2, the ISR [1, 2], and the high watermark goes "
      "from 0 to 8.")  # fmt: skip
def the_high_watermark_waits_for_min_isr(moved: HighWatermarkMoved) -> Findings:
    """A leader's high watermark does not advance while its ISR is smaller than
    min.insync.replicas."""
    if moved.min_isr is None:
        return
    yield CASE
    if moved.new > moved.old and len(moved.isr) < moved.min_isr:
        yield broken(
            f"leader {moved.broker} advanced its high watermark with the ISR {ids(moved.isr)}, "
            "below min.insync.replicas",
            broker=moved.broker,
        )


@rule("E27", "A new replica begins empty",
      source="KIP-516, KAFKA-14616; LogManager.isStrayKraftReplica", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="Broker 2 creates a replica whose log ends at 4.",
      keeps="Broker 2 restarts with the 4 records that it had, deletes its replica, "
      "and begins another at 0.")  # fmt: skip
def a_new_replica_begins_empty(begun: ReplicaBegun) -> Findings:
    """A replica that a broker creates for the first time, or again after deleting it, begins with
    an empty log."""
    if not begun.is_new:
        return
    yield CASE
    if begun.log_end is not None and begun.log_end > 0:
        yield broken(
            f"broker {begun.broker} created a new replica whose log ends at {begun.log_end}",
            broker=begun.broker,
        )


@rule("F5", "Committed records are not truncated",
      source="KIP-101, KIP-279; AbstractFetcherThread.truncate", evidence=Evidence.TRACE,
      at_end=True, tables=("partition_event", "raft_event"),
      breaks="The high watermark is 8, and broker 2 truncates to 7.",
      keeps="The high watermark is 8, and broker 2 truncates to 8.")  # fmt: skip
def committed_records_are_not_truncated(truncated: Truncated) -> Findings:
    """No replica truncates below the highest high watermark of its partition, except of what an
    unclean election or the last ISR member has lost. A replica whose records are all older than the
    epoch of that high watermark may have diverged there, and does not truncate below its own high
    watermark."""
    if truncated.excuse is not None:
        yield exempt(truncated.excuse)
        return
    yield CASE
    log_epoch, true_epoch = truncated.log_epoch, truncated.true_epoch
    mark = truncated.true_high_watermark
    # A deposed leader cannot know what was committed after it: it may cut off what only it had.
    lowest = mark
    if log_epoch is not None and true_epoch is not None and log_epoch < true_epoch:
        lowest = truncated.own_high_watermark or 0
    if lowest is not None and truncated.to < lowest:
        yield broken(
            f"broker {truncated.broker} truncated below the high watermark {mark}",
            broker=truncated.broker,
        )


@rule("F8", "acks=all waits for the whole maximal ISR",
      source="KIP-497; Partition.checkEnoughReplicasReachOffset", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="acks=all succeeds for offset 8, and broker 2 of the ISR has fetched up to 8.",
      keeps="acks=all succeeds for offset 8; broker 2 has fetched up to 9, and 3 is "
      "not in the ISR.")  # fmt: skip
def acks_all_waits_for_the_maximal_isr(acknowledged: Acknowledged) -> Findings:
    """When a Produce with acks=all succeeds, every member of the maximal ISR holds its records, and
    they are at least min.insync.replicas."""
    if acknowledged.waited_for is None:
        return
    yield CASE
    members = acknowledged.maximal_isr
    log_ends = [acknowledged.log_end, *(fetch.log_end for fetch in acknowledged.waited_for)]
    all_have_it = min(log_ends) > acknowledged.offset
    are_enough = len(members) >= (acknowledged.min_isr or 1)
    if not all_have_it or not are_enough:
        yield broken(
            f"leader {acknowledged.broker} acknowledged offset {acknowledged.offset} before all "
            f"of {ids(members)} had it, or with fewer than min.insync.replicas",
            broker=acknowledged.broker,
        )


@rule("F16", "One writer per leader epoch",
      source="KIP-101, KIP-320; Partition.appendRecordsToLeader", evidence=Evidence.TRACE,
      at_end=True, tables=("partition_event",),
      breaks="Brokers 1 and 2 both append records of clients in leader epoch 0.",
      keeps="Broker 1 appends records of clients in leader epoch 0, and 2 in 1; "
      "broker 3 appends what it fetched.")  # fmt: skip
def one_writer_per_leader_epoch(written: WrittenByLeader) -> Findings:
    """In each leader epoch of a partition only one broker appends records of clients."""
    yield CASE
    if not written.alone:
        yield broken(
            f"broker {written.broker} appended records in a leader epoch in which another broker "
            "did",
            broker=written.broker,
        )


@rule("F18", "A leader's high watermark does not decrease",
      source="KIP-101, KIP-207; Partition.maybeIncrementLeaderHW, fetchOffsetForTimestamp",
      evidence=Evidence.TRACE,
      tables=("partition_event", "rpc", "client_record", "raft_event"),
      breaks="Leader 1 moves its high watermark from 8 back to 7.",
      keeps="Leader 1 has high watermark 8, and follower 2 moves its own from 8 "
      "back to 7.")  # fmt: skip
def a_leaders_high_watermark_does_not_decrease(moved: HighWatermarkMoved) -> Findings:
    """While a broker leads an epoch its high watermark only advances, also as clients see it, and
    consumers receive an end offset only once the high watermark has passed the start of the
    epoch."""
    yield CASE
    if moved.new < moved.old:
        yield broken(
            f"leader {moved.broker} moved its high watermark back to {moved.new}",
            broker=moved.broker,
        )


@no_isr_member_is_in_a_lost_directory.also
def _nor_does_a_leader_write_to_one(leader: LeaderAfterFailure) -> Findings:
    """No record shows it: the broker itself leads on."""
    if leader.is_in_failed_directory:
        yield broken(
            f"broker {leader.broker} leads a partition in a directory of its own that has failed",
            broker=leader.broker,
        )


@no_isr_member_is_in_a_lost_directory.also
def _nor_is_a_leaders_log_in_one(log: LogAtEnd) -> Findings:
    """The disks show it."""
    if log.leads and not log.is_online:
        yield broken(
            f"broker {log.broker} leads a partition whose log lies in a directory that has failed",
            broker=log.broker,
        )
