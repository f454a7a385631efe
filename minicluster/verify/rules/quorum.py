"""Rules over the quorum's own events: votes, elections, high watermarks (KIP-595)."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule
from minicluster.verify.rules.trace_views import BEFORE, UP_TO_HERE

# Each event of a node, with the end of its log by then and the highest high watermark of all.
VIEW = f"""
select r.*, cast(null as string) as topic, cast(null as int) as part, b.epoch_start,
  v.lowest_vote, v.highest_vote
from (
  select run, seq, node, incarnation, kind, epoch, leader, offset, voted_for,
    last(log_end, true) over (partition by run, node order by seq {UP_TO_HERE}) as log_end,
    max(case when kind = 'hw' and leads then offset end) over (
      partition by run order by seq {BEFORE}) as true_hw,
    max(case when kind = 'hw' then offset end) over (
      partition by run, node, incarnation order by seq {BEFORE}) as p_hw,
    leads
  from (
    select *,
      case when kind = 'append' then offset + 1 when kind = 'truncate' then offset end as log_end,
      coalesce(last(case when kind in ('elected', 'resign', 'epoch') then kind end, true) over (
        partition by run, node, incarnation order by seq {UP_TO_HERE}) = 'elected', false) as leads
    from raft_event
  )
) r
left join (select run, epoch, min(base_offset) as epoch_start from batches
  where elected is not null group by run, epoch) b
  on r.run = b.run and r.epoch = b.epoch
left join (select run, node, epoch, min(voted_for) as lowest_vote, max(voted_for) as highest_vote
  from raft_event where kind = 'voted' group by run, node, epoch) v
  on r.run = v.run and r.node = v.node and r.epoch = v.epoch
"""

_TABLES = ("raft_event",)

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
        title="The quorum's high watermark does not go back",
        statement="A running node never sees the high watermark lower than before.",
        source="KIP-595; LeaderState.updateHighWatermark",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                group="raft",
                when="kind = 'hw' and p_hw is not null",
                bad="offset < p_hw",
                message="node {broker} moved its high watermark back to {offset} from {number}",
                broker="node",
                number="p_hw",
            ),
        ),
    ),
    Rule(
        id="E07",
        title="A leader holds all that is committed",
        statement="A controller that is elected holds every record below the high watermark.",
        source="KIP-595; VoteRequest (last offset and epoch)",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                group="raft",
                when="kind = 'elected' and true_hw is not null and log_end is not null",
                bad="log_end < true_hw",
                message="controller {broker} was elected with a log that ends below the high "
                "watermark {number}",
                offset="log_end",
                broker="node",
                number="true_hw",
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
)
