"""The quorum of controllers: their logs, votes, elections, high watermarks (KIP-595, KIP-853)."""

from __future__ import annotations

from minicluster.verify.histories.batches import (
    CopiedBatch,
    FirstBatch,
    NextBatch,
    SecondLeader,
)
from minicluster.verify.histories.quorum import (
    AppendedCopy,
    CommitInEpoch,
    DisputedElection,
    ElectedController,
    FetchResponseEpoch,
    QuorumHighWatermark,
    Vote,
    VoterView,
    voter_ids,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Findings, broken, rule

# Before, a leader may hear that it leads before its LeaderChange is appended (KAFKA-15345).
LEADER_CHANGE_COMES_FIRST = (3, 6)

# --- their logs -----------------------------------------------------------------------------------


@rule("E01", "Log offsets have no gap",
      source="KIP-595, KIP-630, KAFKA-14238; UnifiedLog, KafkaMetadataLog.deleteBeforeSnapshot",
      evidence=Evidence.QUORUM,
      breaks="A batch begins one offset above the end of the one before.",
      keeps="Batches of one record and of two follow each other without a gap.")  # fmt: skip
def log_offsets_have_no_gap(batch: NextBatch) -> Findings:
    """A log is contiguous from offset 0, or from an offset that a snapshot covers: records are
    deleted once they are in one."""
    yield CASE
    if batch.gap is not None:
        begins, due = batch.gap
        yield broken(
            f"controller {batch.node}: a batch begins at {begins} where {due} was expected",
            broker=batch.node,
        )


@log_offsets_have_no_gap.also
def _a_log_begins_at_0_or_in_a_snapshot(first: FirstBatch) -> Findings:
    yield CASE
    if not first.begins_well:
        yield broken(
            f"controller {first.node}: the log begins at {first.base_offset}, and no snapshot "
            "covers the records before",
            broker=first.node,
        )


@rule("E02", "Leader epochs do not decrease along a log",
      source="KIP-595; LeaderEpochFileCache", evidence=Evidence.QUORUM,
      breaks="A batch of epoch 3 follows the LeaderChange of epoch 4.",
      keeps="A batch of epoch 4 follows the LeaderChange of epoch 4, and those of "
      "epoch 1 come before.")  # fmt: skip
def leader_epochs_do_not_decrease(batch: FirstBatch | NextBatch) -> Findings:
    """The leader epoch of batches never decreases along a log."""
    yield CASE
    if isinstance(batch, NextBatch) and batch.epoch < batch.epoch_before:
        yield broken(
            f"controller {batch.node}: a batch of epoch {batch.epoch} follows a batch of a later "
            "epoch",
            broker=batch.node,
        )


@rule("E03", "Each epoch begins with the LeaderChange of its one leader",
      source="KIP-595; LeaderState.appendLeaderChangeMessage", evidence=Evidence.QUORUM,
      tables=("raft_event",),
      breaks="Epoch 2 begins with a NoOpRecord.",
      keeps="Epochs 2 and 5 begin with their LeaderChange.")  # fmt: skip
def each_epoch_begins_with_its_leader_change(batch: FirstBatch | NextBatch) -> Findings:
    """The first record of an epoch is the LeaderChange of its leader, and no epoch has two
    leaders. Up to Kafka 3.5 the leader's own records may come first."""
    # Where a log begins above 0, the records before it may have begun the epoch.
    is_first = batch.base_offset == 0 if isinstance(batch, FirstBatch) else _begins_epoch(batch)
    if not is_first:
        return
    if batch.elected is None and batch.release < LEADER_CHANGE_COMES_FIRST:
        yield NOT_PROMISED
        return
    yield CASE
    if batch.elected is None:
        yield broken(
            f"controller {batch.node}: epoch {batch.epoch} does not begin with a LeaderChange",
            broker=batch.node,
        )


def _begins_epoch(batch: NextBatch) -> bool:
    return batch.epoch != batch.epoch_before


@each_epoch_begins_with_its_leader_change.also
def _of_which_the_logs_name_one(second: SecondLeader) -> Findings:
    yield broken(
        f"epoch {second.epoch} has a second leader besides {second.leader}", broker=second.leader
    )


@each_epoch_begins_with_its_leader_change.also
def _and_one_is_elected(election: DisputedElection) -> Findings:
    yield broken(
        f"controller {election.node} was elected in epoch {election.epoch}, and so was another "
        "controller",
        broker=election.node,
    )


@rule("E05", "Logs match: one epoch and offset is one record",
      source="KIP-595, KAFKA-10527; log matching", at_end=True, evidence=Evidence.QUORUM,
      tables=("raft_event",),
      breaks="Controllers 101 and 102 hold different records at one offset of epoch 1.",
      keeps="Controllers 101 and 102 hold different records at one offset, in "
      "epochs 1 and 2.")  # fmt: skip
def logs_match(batch: CopiedBatch) -> Findings:
    """Two nodes never hold different records at the same offset of the same epoch, not even before
    a truncation."""
    yield CASE
    if batch.differs:
        yield broken(
            f"controller {batch.node} holds a batch of epoch {batch.epoch} at {batch.base_offset} "
            "that differs from other controllers'",
            broker=batch.node,
        )


@logs_match.also
def _also_before_a_truncation(batch: AppendedCopy) -> Findings:
    yield CASE
    if batch.differs:
        yield broken(
            f"node {batch.node} held a batch of epoch {batch.epoch} that ends at "
            f"{batch.last_offset} and differs from other nodes'",
            broker=batch.node,
        )


# --- votes, elections, high watermarks ------------------------------------------------------------


@rule("E04", "One vote per epoch", source="KIP-595; QuorumState (quorum-state file)",
      evidence=Evidence.TRACE, tables=("raft_event",),
      breaks="Controller 101 votes for 102 in epoch 1, restarts, and votes for 103 in epoch 1.",
      keeps="Controller 101 votes for 102 twice in epoch 1 and for 103 in epoch 2; "
      "103 votes for itself in epoch 1.")  # fmt: skip
def one_vote_per_epoch(vote: Vote) -> Findings:
    """A controller votes for at most one candidate in an epoch, across restarts."""
    yield CASE
    if vote.candidate is not None and any(other != vote.candidate for other in vote.others):
        yield broken(f"controller {vote.node} voted twice in epoch {vote.epoch}", broker=vote.node)


@rule("E06", "The high watermark is held by a majority and does not decrease",
      source="KIP-595; LeaderState.maybeUpdateHighWatermark", evidence=Evidence.TRACE,
      tables=("raft_event", "rpc"),
      breaks="Controller 101 moves its high watermark back from 5 to 4.",
      keeps="Controller 102, and a new incarnation of 101, begin below the high "
      "watermark 5 of 101.")  # fmt: skip
def the_high_watermark_is_held_by_a_majority(mark: QuorumHighWatermark) -> Findings:
    """A leader's high watermark is on the disks of a majority of its voters and not below that of
    any earlier leader; no node is ahead of the leaders, no running node goes back, and no node
    responds to a Fetch with an epoch below its own."""
    node, offset, committed = mark.node, mark.offset, mark.committed
    if mark.own_before is not None:
        yield CASE
        if offset < mark.own_before:
            yield broken(
                f"node {node} moved its high watermark back to {offset} from {mark.own_before}",
                broker=node,
            )
    # A leader that was deposed and has not heard of it may still lag.
    if committed is not None and mark.leads and mark.is_newest and offset < committed:
        yield broken(
            f"leader {node} has high watermark {offset}, below the committed offset {committed}",
            broker=node,
        )
    if committed is not None and not mark.leads and offset > committed:
        yield broken(
            f"node {node} has high watermark {offset}, above the leaders' {committed}", broker=node
        )
    if mark.voters:
        yield CASE
        if 2 * (mark.holders + mark.unrecorded) <= mark.voters:
            yield broken(
                f"leader {node} has high watermark {offset}, which only {mark.holders} of its "
                "voters have on disk: no majority",
                broker=node,
            )


@the_high_watermark_is_held_by_a_majority.also
def _responses_have_the_epoch_of_their_node(response: FetchResponseEpoch) -> Findings:
    if response.epoch < response.own_epoch:
        yield broken(
            f"node {response.node} responded to a Fetch with an epoch below its own, "
            f"{response.own_epoch}",
            broker=response.node,
        )


@rule("E07", "An elected leader holds every committed record",
      source="KIP-595; VoteRequest (last offset and epoch)", evidence=Evidence.TRACE,
      tables=("raft_event",),
      breaks="The high watermark is 6, and controller 102 is elected with a log that ends at 5.",
      keeps="The high watermark is 6, and controller 102 is elected with a log that "
      "ends at 6.")  # fmt: skip
def an_elected_leader_holds_what_is_committed(elected: ElectedController) -> Findings:
    """The log of a newly elected leader ends at the high watermark or later, and its last epoch is
    not older."""
    yield CASE
    is_older = elected.log_epoch is not None and elected.log_epoch < elected.committed_epoch
    if elected.log_end < elected.committed or is_older:
        yield broken(
            f"controller {elected.node} was elected with a log that ends at {elected.log_end} and "
            f"lacks records below the high watermark {elected.committed}",
            broker=elected.node,
        )


@rule("E08", "An epoch's first commit is a record of its own",
      source="KIP-595, KAFKA-12619; LeaderState.maybeUpdateHighWatermark",
      at_end=True, evidence=Evidence.TRACE, tables=("raft_event",),
      breaks="The leader of epoch 2 advances its high watermark to the offset of its LeaderChange.",
      keeps="The leader of epoch 2 advances its high watermark past its "
      "LeaderChange.")  # fmt: skip
def an_epochs_first_commit_is_its_own(mark: CommitInEpoch) -> Findings:
    """A leader does not advance its high watermark before a record of its own epoch is
    committed."""
    yield CASE
    if mark.own_before < mark.offset <= mark.epoch_start:
        yield broken(
            f"controller {mark.node} advanced its high watermark to {mark.offset} before a record "
            f"of epoch {mark.epoch} was committed",
            broker=mark.node,
        )


@rule("E43", "Nodes use the voter set that their log names last",
      source="KIP-853; PartitionState (KRaftControlRecordStateMachine)", evidence=Evidence.TRACE,
      tables=("raft_event",),
      breaks="The log of 101 names voters 101 and 102, and 101 still uses 103 as well.",
      keeps="Voters are written, truncated, written again, and taken from a "
      "snapshot: 101 follows at once.")  # fmt: skip
def nodes_use_the_voters_of_their_log(view: VoterView) -> Findings:
    """The voter set and kraft.version that a node uses are those of the last such records in its
    log, or in the snapshot before it."""
    if view.used is not None and view.logged is not None:
        yield CASE
        if view.used != view.logged:
            yield broken(
                f"node {view.node} uses the voters {_ids(view.used)}, its log "
                f"has {_ids(view.logged)}",
                broker=view.node,
            )
    if view.used_version is not None and view.logged_version is not None:
        yield CASE
        if view.used_version != view.logged_version:
            yield broken(
                f"node {view.node} uses kraft.version {view.used_version}, its log has another",
                broker=view.node,
            )


def _ids(voters: str) -> str:
    return "[" + ", ".join(str(voter) for voter in voter_ids(voters)) + "]"
