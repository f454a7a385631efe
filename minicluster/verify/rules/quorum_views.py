"""The quorum's own events as the rules about it see them (``raft_event``)."""

from __future__ import annotations

from minicluster.verify.rules.trace_views import BEFORE, UP_TO_HERE

# Each event of a node: the end of its log by then and the epoch there, the highest high watermark
# of all leaders before, the highest epoch that anybody leads, and who else did the same.
EVENTS = f"""
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
# disk that was lost counts as what it held: that is another's fault.
MAJORITIES = f"""
select run, seq, node, epoch, offset, cast(null as string) as topic, cast(null as int) as part,
  count(*) as voters,
  count_if(greatest(coalesce(held, -1), coalesce(lost, -1)) >= offset) as holders
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

# What the records of a node's log said of the voters, until it was cut away or taken up anew.
VOTER_RECORDS = """
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

# The voters and kraft.version that a node goes by whenever it does something, and what its log
# says by then. (A log that grows or is cut is read right afterwards.)
VOTERS = f"""
select e.run, e.node, e.seq, any_value(e.epoch) as epoch, cast(null as bigint) as offset,
  cast(null as string) as topic, cast(null as int) as part,
  any_value(e.goes_by) as goes_by, any_value(e.version) as version,
  max_by(s.voters, case when s.voters is not null then s.seq end) as said,
  max_by(s.kraft_version, case when s.kraft_version is not null then s.seq end) as said_version
from (
  select *,
    last(case when kind = 'voters' then voters end, true) over w as goes_by,
    last(case when kind = 'voters' then kraft_version end, true) over w as version
  from raft_event
  window w as (partition by run, node, incarnation order by seq {UP_TO_HERE})
) e
join voter_records s on e.run = s.run and e.node = s.node and s.seq < e.seq
  and (s.until is null or e.seq < s.until)
where e.kind in ('voters', 'hw', 'voted', 'elected', 'epoch', 'resign')
group by e.run, e.node, e.seq
"""

# Answers to fetches of the metadata log, with the epoch that the one who answers was in by then.
ANSWERS = f"""
select run, seq, node, told, known, cast(null as bigint) as offset, cast(null as string) as topic,
  cast(null as int) as part
from (
  select *, last(epoch, true) over (partition by run, node order by seq {UP_TO_HERE}) as known
  from (
    select run, seq, node, epoch, cast(null as bigint) as told from raft_event
    where kind = 'epoch'
    union all
    select run, resp_seq, dst, null, try_cast(get_json_object(response,
      '$.responses[0].partitions[0].currentLeader.leaderEpoch') as bigint)
    from rpc where api = 'Fetch' and resp_seq is not null and response is not null
      and dst in (select node from raft_event where kind = 'elected')
  )
)
where told is not null and known is not null
"""
