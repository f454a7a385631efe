"""The quorum's own events: votes, elections, high watermarks (KIP-595), voters (KIP-853)."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.trace.windows import BEFORE, UP_TO_HERE

_TABLES = ("raft_event",)

_IDS = "transform(split({column}, ','), voter -> try_cast(split(voter, '@')[0] as int))"

# Each event of a node: the end of its log by then and the epoch there, the highest high watermark
# of all leaders before, the highest epoch that anybody leads, and who else did the same.
_EVENTS = f"""
select r.*, cast(null as string) as topic, cast(null as int) as part, b.epoch_start,
  v.lowest_vote, v.highest_vote
from (
  select run, seq, node, incarnation, kind, epoch, leader, offset, voted_for, leads,
    last(log_end, true) over n as log_end,
    last(log_epoch, true) over n as log_epoch,
    max(case when kind = 'hw' and leads then struct(offset, epoch) end) over (
      partition by run order by seq {BEFORE}) as true_hw,
    max(case when kind = 'elected' then epoch end) over (
      partition by run order by seq {UP_TO_HERE}) as top_epoch,
    max(case when kind = 'hw' then offset end) over (
      partition by run, node, incarnation order by seq {BEFORE}) as p_hw,
    min(crc) over s <> max(crc) over s as differs,
    count(crc) over s as copies,
    min(leader) over s <> max(leader) over s as disputed
  from (
    select *,
      case when kind = 'append' then offset + 1 when kind in ('truncate', 'begin') then offset end
        as log_end,
      case when kind in ('append', 'truncate', 'begin') then epoch end as log_epoch,
      coalesce(last(case when kind in ('elected', 'resign', 'epoch') then kind end, true) over (
        partition by run, node, incarnation order by seq {UP_TO_HERE}) = 'elected', false) as leads
    from raft_event
  )
  window n as (partition by run, node order by seq {UP_TO_HERE}),
    s as (partition by run, kind, epoch, case when kind = 'append' then offset end)
) r
left join (select run, epoch, min(base_offset) as epoch_start from batches
  where elected is not null group by run, epoch) b
  on r.run = b.run and r.epoch = b.epoch
left join (select run, node, epoch, min(voted_for) as lowest_vote, max(voted_for) as highest_vote
  from raft_event where kind = 'voted' group by run, node, epoch) v
  on r.run = v.run and r.node = v.node and r.epoch = v.epoch
"""

# Each high watermark of a leader, with how many of its voters have that much on disk by then. A
# disk that was lost counts with the log that it held: its loss is no fault of the leader. Nothing
# is recorded of a voter in another process, such as a controller of Apache Kafka.
_MAJORITIES = f"""
select run, seq, node, epoch, offset, cast(null as string) as topic, cast(null as int) as part,
  count(*) as voters,
  count_if(greatest(coalesce(held, -1), coalesce(lost, -1)) >= offset) as holders,
  count_if(held is null) as unrecorded
from (
  select *, last(held_at, true) over w as held, max(lost_at) over w as lost
  from (
    select run, seq, node as voter, offset as held_at,
      case when kind = 'begin' and offset < lag(offset) over (partition by run, node order by seq)
        then lag(offset) over (partition by run, node order by seq) end as lost_at,
      cast(null as bigint) as node, cast(null as bigint) as epoch, cast(null as bigint) as offset
    from raft_event where kind in ('flush', 'begin')
    union all
    select run, seq, try_cast(split(voter, '@')[0] as bigint), null, null, node, epoch, offset
    from (select *, explode(split(voters, ',')) as voter from raft_event
      where kind = 'hw' and voters is not null)
  )
  window w as (partition by run, voter order by seq {UP_TO_HERE})
)
where offset is not null
group by run, seq, node, epoch, offset
"""

# The voters that records of a node's log name, until a truncation, or until the log begins anew.
_VOTER_RECORDS = """
select s.run, s.node, s.seq, any_value(s.voters) as voters,
  any_value(s.kraft_version) as kraft_version, min(c.seq) as until
from (select * from raft_event
  where kind = 'begin' or (kind = 'append' and (voters is not null or kraft_version is not null))
) s
left join (select run, node, seq, kind, offset from raft_event where kind in ('truncate', 'begin')
) c on s.run = c.run and s.node = c.node and c.seq > s.seq
  and (c.kind = 'begin' or c.offset <= s.offset)
group by s.run, s.node, s.seq
"""

# The voters and kraft.version that a node uses at each of its events, and those of its log by then.
# (A node reads them right after an append or a truncation.)
_VOTERS = f"""
select e.run, e.node, e.seq, any_value(e.epoch) as epoch, cast(null as bigint) as offset,
  cast(null as string) as topic, cast(null as int) as part,
  any_value(e.used_voters) as used_voters, any_value(e.version) as version,
  max_by(s.voters, case when s.voters is not null then s.seq end) as logged_voters,
  max_by(s.kraft_version, case when s.kraft_version is not null then s.seq end) as logged_version
from (
  select *,
    last(case when kind = 'voters' then voters end, true) over w as used_voters,
    last(case when kind = 'voters' then kraft_version end, true) over w as version
  from raft_event
  window w as (partition by run, node, incarnation order by seq {UP_TO_HERE})
) e
join voter_records s on e.run = s.run and e.node = s.node and s.seq < e.seq
  and (s.until is null or e.seq < s.until)
where e.kind in ('voters', 'hw', 'voted', 'elected', 'epoch', 'resign')
group by e.run, e.node, e.seq
"""

# Responses to fetches of the metadata log, with the epoch of the responding node by then.
_FETCH_RESPONSES = f"""
select run, seq, node, response_epoch, node_epoch, cast(null as bigint) as offset,
  cast(null as string) as topic, cast(null as int) as part
from (
  select *, last(epoch, true) over (partition by run, node order by seq {UP_TO_HERE}) as node_epoch
  from (
    select run, seq, node, epoch, cast(null as bigint) as response_epoch from raft_event
    where kind = 'epoch'
    union all
    select run, resp_seq, dst, null, try_cast(get_json_object(response,
      '$.responses[0].partitions[0].currentLeader.leaderEpoch') as bigint)
    from rpc where api = 'Fetch' and resp_seq is not null and response is not null
      and dst in (select node from raft_event where kind = 'elected')
  )
)
where response_epoch is not null and node_epoch is not null
"""

GOES_BACK = Check(
    view="raft_history",
    when="kind = 'hw' and p_hw is not null",
    bad="offset < p_hw",
    message="node {broker} moved its high watermark back to {offset} from {number}",
    broker="node",
    number="p_hw",
)

HELD_BY_A_MAJORITY = Check(
    view="raft_majorities",
    when="true",
    bad="2 * (holders + unrecorded) <= voters",
    message="leader {broker} has high watermark {offset}, which only {number} of its voters have "
    "on disk: no majority",
    broker="node",
    number="holders",
)

ONE_LEADER = Check(
    view="raft_history",
    when="kind = 'elected'",
    counts=False,
    bad="disputed",
    message="controller {broker} was elected in epoch {number}, and so was another controller",
    offset="cast(null as bigint)",
    broker="node",
    number="epoch",
)

SAME_BATCH = Check(
    view="raft_history",
    when="kind = 'append' and copies > 1",
    bad="differs",
    message="node {broker} held a batch of epoch {number} that ends at {offset} and differs "
    "from other nodes'",
    broker="node",
    number="epoch",
)


VIEWS = (
    View(name="raft_history", sql=_EVENTS),
    View(name="raft_majorities", sql=_MAJORITIES),
    View(name="voter_records", sql=_VOTER_RECORDS),
    View(name="voter_views", sql=_VOTERS),
    View(name="raft_fetch_responses", sql=_FETCH_RESPONSES),
)

RULES = (
    Rule(
        id="E04",
        title="One vote per epoch",
        statement="A controller votes for at most one candidate in an epoch, across restarts.",
        source="KIP-595; QuorumState (quorum-state file)",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="raft_history",
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
        title="The high watermark is held by a majority and does not decrease",
        statement="A leader's high watermark is on the disks of a majority of its voters and "
        "not below that of any earlier leader; no node is ahead of the leaders, no running node "
        "goes back, and no node responds to a Fetch with an epoch below its own.",
        source="KIP-595; LeaderState.maybeUpdateHighWatermark",
        evidence=Evidence.TRACE,
        tables=("raft_event", "rpc"),
        checks=(
            GOES_BACK,
            Check(
                view="raft_history",
                when="kind = 'hw' and leads and epoch = top_epoch and true_hw is not null",
                counts=False,
                bad="offset < true_hw.offset",
                message="leader {broker} has high watermark {offset}, below the committed "
                "offset {number}",
                broker="node",
                number="true_hw.offset",
            ),
            Check(
                view="raft_history",
                when="kind = 'hw' and not leads and true_hw is not null",
                counts=False,
                bad="offset > true_hw.offset",
                message="node {broker} has high watermark {offset}, above the leaders' {number}",
                broker="node",
                number="true_hw.offset",
            ),
            HELD_BY_A_MAJORITY,
            Check(
                view="raft_fetch_responses",
                when="true",
                counts=False,
                bad="response_epoch < node_epoch",
                message="node {broker} responded to a Fetch with an epoch below its own, {number}",
                broker="node",
                number="node_epoch",
            ),
        ),
    ),
    Rule(
        id="E07",
        title="An elected leader holds every committed record",
        statement="The log of a newly elected leader ends at the high watermark or later, and "
        "its last epoch is not older.",
        source="KIP-595; VoteRequest (last offset and epoch)",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="raft_history",
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
        title="An epoch's first commit is a record of its own",
        statement="A leader does not advance its high watermark before a record of its own "
        "epoch is committed.",
        source="KIP-595, KAFKA-12619; LeaderState.maybeUpdateHighWatermark",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="raft_history",
                when="kind = 'hw' and leads and epoch_start is not null",
                bad="offset <= epoch_start and offset > coalesce(p_hw, -1)",
                message="controller {broker} advanced its high watermark to {offset} before "
                "a record of epoch {number} was committed",
                broker="node",
                number="epoch",
            ),
        ),
    ),
    Rule(
        id="E43",
        title="Nodes use the voter set that their log names last",
        statement="The voter set and kraft.version that a node uses are those of the last such "
        "records in its log, or in the snapshot before it.",
        source="KIP-853; PartitionState (KRaftControlRecordStateMachine)",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="voter_views",
                when="logged_voters is not null and used_voters is not null",
                bad="used_voters <> logged_voters",
                message="node {broker} uses the voters {new} (event {number}), its log has {old}",
                broker="node",
                old=_IDS.format(column="logged_voters"),
                new=_IDS.format(column="used_voters"),
                number="seq",
            ),
            Check(
                view="voter_views",
                when="logged_version is not null and version is not null",
                bad="version <> logged_version",
                message="node {broker} uses kraft.version {number}, its log has another",
                broker="node",
                number="version",
            ),
        ),
    ),
)
