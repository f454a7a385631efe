"""How leaders change their ISRs: KIP-497, KAFKA-14140, KAFKA-13091."""

from __future__ import annotations

from minicluster.verify.histories.isr_changes import (
    CommitBesideLeader,
    IsrProposed,
    IsrReverted,
    IsrShrunk,
    LeaderBesideCommit,
    ProposalOvertaken,
    ProposedReplica,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, ids, rule

_NO_BROKER_EPOCH = -1


@rule("A5", "Leaders propose only eligible replicas",
      source="KAFKA-14140, KIP-841; Partition.isReplicaIsrEligible", evidence=Evidence.TRACE,
      tables=("partition_event", "publish"),
      breaks="Broker 3 is fenced in the image of leader 1, which proposes ISR [1, 2, 3].",
      keeps="Leader 1 proposes broker 3 before its broker has published the fencing "
      "of 3.")  # fmt: skip
def leaders_propose_only_eligible_replicas(replica: ProposedReplica) -> Findings:
    """A leader never proposes to add a replica that is fenced, in controlled shutdown or of another
    broker epoch in the image that its own broker has published."""
    yield CASE
    # A Fetch carries the broker epoch of the replica from version 15 on.
    is_incarnation_of_image = replica.fetched_as is None or replica.fetched_as in (
        _NO_BROKER_EPOCH,
        replica.broker_epoch,
    )
    if not replica.is_active or not is_incarnation_of_image:
        yield broken(
            f"the leader proposes broker {replica.broker} for the ISR {ids(replica.maximal_isr)}"
            ", which is ineligible in its own image at offset "
            f"{replica.image}",
            broker=replica.broker,
        )


@rule("B1", "A leader's maximal ISR contains the committed ISR",
      source="KIP-497; Partition.scala PartitionState.maximalIsr", evidence=Evidence.TRACE,
      tables=("partition_event", "raft_event"),
      breaks="Leader 1 proposes to shrink ISR [1, 2, 3], and has maximal ISR [1, 2] before that "
      "is committed.",
      keeps="Broker 3 is in the maximal ISR from its proposal on; a deposed "
      "leader's maximal ISR does not count.")  # fmt: skip
def the_maximal_isr_contains_the_committed_isr(leader: LeaderBesideCommit) -> Findings:
    """The committed ISR is a subset of the maximal ISR of the leader of that epoch; without a
    change in flight the leader's ISR and maximal ISR are equal."""
    if leader.committed_isr is not None:
        yield CASE
        if not set(leader.maximal_isr).issuperset(leader.committed_isr):
            yield broken(
                f"leader {leader.broker} has maximal ISR {ids(leader.maximal_isr)} "
                f"while the committed ISR is {ids(leader.committed_isr)}",
                broker=leader.broker,
                offset=leader.committed_at,
            )
    if not leader.in_flight and sorted(leader.isr) != sorted(leader.maximal_isr):
        yield broken(
            f"leader {leader.broker} has no ISR change in flight, but ISR {ids(leader.isr)} and "
            f"maximal ISR {ids(leader.maximal_isr)}",
            broker=leader.broker,
        )


@the_maximal_isr_contains_the_committed_isr.also
def _when_an_isr_is_committed(commit: CommitBesideLeader) -> Findings:
    if not set(commit.maximal_isr).issuperset(commit.isr):
        yield broken(
            f"the controller committed ISR {ids(commit.isr)} while leader {commit.leader} has "
            f"maximal ISR {ids(commit.maximal_isr)}",
            broker=commit.leader,
        )


@rule("B7", "One ISR change is in flight at a time",
      source="KIP-497, KAFKA-12686, KAFKA-12751; Partition.submitAlterPartition",
      evidence=Evidence.TRACE, tables=("partition_event",),
      breaks="Leader 1 proposes [1, 2, 3], and then [1, 2, 4] before the first change has ended.",
      keeps="An ISR change is rejected, proposed again, shown again with metadata "
      "of before, and ended by newer metadata.")  # fmt: skip
def one_isr_change_is_in_flight_at_a_time(proposed: IsrProposed) -> Findings:
    """A leader's ISR change is completed by its own response or by newer metadata before the next
    one begins."""
    yield CASE
    if proposed.in_flight is not None:
        yield broken(
            f"leader {proposed.broker} proposed {ids(proposed.maximal_isr)} while another ISR "
            "change was in flight",
            broker=proposed.broker,
        )


@one_isr_change_is_in_flight_at_a_time.also
def _it_is_reverted_when_it_is_rejected(reverted: IsrReverted) -> Findings:
    yield CASE
    if reverted.error is None:
        yield broken(
            f"leader {reverted.broker} reverted an ISR change that was not rejected",
            broker=reverted.broker,
        )


@one_isr_change_is_in_flight_at_a_time.also
def _or_dropped_for_newer_metadata(overtaken: ProposalOvertaken) -> Findings:
    yield CASE
    if not overtaken.is_newer:
        yield broken(
            f"leader {overtaken.broker} dropped an ISR change for metadata that is not newer",
            broker=overtaken.broker,
        )


@rule("B8", "The high watermark advances when the ISR shrinks",
      source="KAFKA-13091; Partition.handleAlterPartitionUpdate", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="Broker 3, with 5 of 9 records, leaves the ISR, and the high watermark stays at 5.",
      keeps="Broker 3, with 5 of 9 records, leaves the ISR, and the high watermark "
      "goes to 9 in the same step.")  # fmt: skip
def the_high_watermark_advances_when_the_isr_shrinks(shrunk: IsrShrunk) -> Findings:
    """When a shrink of the ISR is committed, the leader advances its high watermark in the same
    step to the lowest log end of the smaller ISR."""
    yield CASE
    followers, mark = shrunk.followers, shrunk.high_watermark
    if shrunk.advances or followers is None or not shrunk.isr or shrunk.isr_end <= mark:
        return
    if len(shrunk.isr) < (1 if shrunk.min_isr is None else shrunk.min_isr):
        return
    # The leader also waits for replicas outside the ISR that have caught up within the lag time;
    # one that has fetched beyond the high watermark may be among them.
    if any(
        member not in shrunk.isr and follower.log_end > mark
        for member, follower in followers.items()
    ):
        return
    # A replica that leaves and has fetched since the request may have caught up: the leader waits
    # for it.
    before = shrunk.followers_before or {}
    if any(
        member in before and member in followers and before[member] != followers[member]
        for member in shrunk.leaving
    ):
        return
    yield broken(
        f"leader {shrunk.broker} did not advance its high watermark when the ISR shrank to "
        f"{ids(shrunk.isr)}",
        broker=shrunk.broker,
    )


@rule("F14", "Only a caught-up replica is proposed for the ISR",
      source="KIP-497; Partition.isFollowerInSync", evidence=Evidence.TRACE,
      tables=("partition_event",),
      breaks="The epoch began at 6; leader 1 proposes broker 3, which has fetched up to 5.",
      keeps="The epoch began at 6; leader 1 proposes broker 3, which has fetched up "
      "to 6.")  # fmt: skip
def only_a_caught_up_replica_is_proposed(proposed: IsrProposed) -> Findings:
    """A leader proposes a replica that has fetched in this leader epoch, up to the high watermark
    and to the start of the epoch."""
    if not proposed.joining or proposed.followers is None:
        return
    yield CASE
    needed = max(proposed.high_watermark or 0, proposed.epoch_start or 0)
    states = [proposed.fetch_state(member) for member in proposed.joining]
    if any(
        state.log_end < needed or state.leader_epoch != proposed.leader_epoch for state in states
    ):
        yield broken(
            f"leader {proposed.broker} proposed {ids(proposed.maximal_isr)} before all of them had "
            "caught up",
            broker=proposed.broker,
        )
