"""Rules over the quorum's own events: votes, elections, high watermarks (KIP-595), voters."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule

_TABLES = ("raft_event",)

ONE_LEADER = Check(  # of E03: an election of which no record is left counts, too
    group="raft",
    when="kind = 'elected'",
    counts=False,
    bad="disputed",
    message="controller {broker} was elected in epoch {number}, and another, too",
    offset="cast(null as bigint)",
    broker="node",
    number="epoch",
)
SAME_BATCH = Check(  # of E05: what was truncated since, or is a broker's, counts, too
    group="raft",
    when="kind = 'append' and copies > 1",
    bad="differs",
    message="node {broker} held another batch of epoch {number} that ends at {offset} than others",
    broker="node",
    number="epoch",
)
_IDS = "transform(split({column}, ','), voter -> try_cast(split(voter, '@')[0] as int))"

RULES = (
    Rule(
        id="E04",
        title="One vote per epoch",
        statement="A controller votes for one candidate in an epoch, whatever happens to it.",
        source="KIP-595; QuorumState (quorum-state file)",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                group="raft",
                when="kind = 'voted'",
                bad="lowest_vote <> highest_vote",
                message="controller {broker} voted twice in epoch {number}",
                offset="cast(null as bigint)",
                broker="node",
                number="epoch",
            ),
        ),
    ),
    Rule(
        id="E06",
        title="The high watermark is where a majority is, and does not go back",
        statement="What a leader calls committed is on the disks of a majority of its voters and "
        "not less than what any leader has called so before; no node is ahead of the leaders, none "
        "goes back while it runs, and none answers a fetch in the name of a past epoch.",
        source="KIP-595; LeaderState.maybeUpdateHighWatermark",
        evidence=Evidence.TRACE,
        tables=("raft_event", "rpc"),
        checks=(
            Check(
                group="raft",
                when="kind = 'hw' and p_hw is not null",
                bad="offset < p_hw",
                message="node {broker} moved its high watermark back to {offset} from {number}",
                broker="node",
                number="p_hw",
            ),
            Check(
                group="raft",
                when="kind = 'hw' and leads and epoch = top_epoch and true_hw is not null",
                counts=False,
                bad="offset < true_hw.offset",
                message="leader {broker} told high watermark {offset} where {number} was committed",
                broker="node",
                number="true_hw.offset",
            ),
            Check(
                group="raft",
                when="kind = 'hw' and not leads and true_hw is not null",
                counts=False,
                bad="offset > true_hw.offset",
                message="node {broker} took high watermark {offset} when leaders had told {number}",
                broker="node",
                number="true_hw.offset",
            ),
            Check(
                group="raft_majorities",
                when="true",
                bad="2 * holders <= voters",
                message="leader {broker} told high watermark {offset}, which {number} of its "
                "voters had on disk: no majority",
                broker="node",
                number="holders",
            ),
            Check(
                group="raft_answers",
                when="true",
                counts=False,
                bad="told < known",
                message="node {broker} answered a fetch in the name of an epoch before its own, "
                "{number}",
                broker="node",
                number="known",
            ),
        ),
    ),
    Rule(
        id="E07",
        title="A leader holds all that is committed",
        statement="A controller that is elected holds every record below the high watermark: its "
        "log ends in that epoch, and not before it, or in a later one.",
        source="KIP-595; VoteRequest (last offset and epoch)",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                group="raft",
                when="kind = 'elected' and true_hw is not null and log_end is not null",
                bad="log_end < true_hw.offset or log_epoch < true_hw.epoch",
                message="controller {broker} was elected with a log that ends at {offset} and "
                "lacks records below the high watermark {number}",
                offset="log_end",
                broker="node",
                number="true_hw.offset",
            ),
        ),
    ),
    Rule(
        id="E08",
        title="An epoch commits by a record of its own",
        statement="A leader tells no high watermark before one of its own epoch is committed.",
        source="KIP-595, KAFKA-12619; LeaderState.maybeUpdateHighWatermark",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                group="raft",
                when="kind = 'hw' and leads and epoch_start is not null",
                bad="offset <= epoch_start and offset > coalesce(p_hw, -1)",
                message="controller {broker} told high watermark {offset} before a record of "
                "epoch {number} was committed",
                broker="node",
                number="epoch",
            ),
        ),
    ),
    Rule(
        id="E43",
        title="Voters are those that the log names last",
        statement="The voter set and kraft.version that a node goes by are those of the last such "
        "records in its log, or in the snapshot before it.",
        source="KIP-853; PartitionState (KRaftControlRecordStateMachine)",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                group="raft_voters",
                when="said is not null and goes_by is not null",
                bad="goes_by <> said",
                message="node {broker} goes by the voters {new} (event {number}), its log says "
                "{old}",
                broker="node",
                old=_IDS.format(column="said"),
                new=_IDS.format(column="goes_by"),
                number="seq",
            ),
            Check(
                group="raft_voters",
                when="said_version is not null and version is not null",
                bad="version <> said_version",
                message="node {broker} goes by kraft.version {number}, its log says another",
                broker="node",
                number="version",
            ),
        ),
    ),
)
