"""The views over a run's trace: events beside the records and images that they go with.

Requests meet the records that answering them wrote, by offset; leaders' events meet the images that
their brokers had published and the states that the controllers had committed, by event number.
Every such meeting is a stream in one order in which each row sees the last row of the other kind.
"""

from __future__ import annotations

UP_TO_HERE = "rows between unbounded preceding and current row"
BEFORE = "rows between unbounded preceding and 1 preceding"

REQUESTS = """
select run, seq, id, api, version, src, dst, resp_seq, error, records_written, high_watermark,
  broker_epoch, registered_epoch, array_max(records_written) as offset,
  cast(null as string) as topic, cast(null as int) as part
from rpc where handle_seq is not null
"""

# What each request wrote, and what that did to partitions.
WRITTEN = """
select run, id, api, src, request, explode(records_written) as offset from rpc
"""
EFFECTS = """
select w.id, s.run, s.offset, s.topic, s.topic_id, s.part, s.p_leader, s.p_le, s.p_pe, s.le, s.pe,
  s.leader, s.isr, s.adding, s.removing, s.p_adding, s.p_removing
from (select * from written where api = 'AlterPartition') w
join partition_states s on w.run = s.run and w.offset = s.offset
"""

_REQUEST_JSON = (
    "topics array<struct<topicName: string, topicId: string, partitions: array<struct<"
    "partitionIndex: int, leaderEpoch: int, partitionEpoch: int, "
    "newIsrWithEpochs: array<struct<brokerId: int, brokerEpoch: bigint>>>>>>"
)
_RESPONSE_JSON = (
    "topics array<struct<topicName: string, topicId: string, partitions: array<struct<"
    "partitionIndex: int, errorCode: int, leaderEpoch: int, partitionEpoch: int>>>>"
)

# Requests that promise to be one operation, and in how many their records stand.
ATOMIC = """
select w.run, w.id, any_value(w.src) as src, count(distinct t.op) as operations,
  max(w.offset) as offset, any_value(t.topic) as topic, cast(null as int) as part
from written w join (select run, offset, op, topic from topics where judged) t
  on w.run = t.run and w.offset = t.offset
where w.api in ('CreateTopics', 'CreatePartitions', 'DeleteTopics')
group by w.run, w.id
"""

# Each member of an accepted ISR beside the broker epoch registered just before.
MEMBERS = """
select * from (
  select *, last(epoch, true) over (
    partition by run, about order by at, rank rows between unbounded preceding and current row)
    as seen
  from (
    select run, written as offset, topic, part, member.brokerId as about,
      member.brokerEpoch as member_epoch, written as at, 0 as rank, cast(null as bigint) as epoch
    from (select *, explode(members) as member from proposals
      where written is not null and answer in (0, 108))
    union all
    select run, offset, null, null, broker, null, pos, 1, epoch from broker_states
  )
) where member_epoch is not null
"""

# One row per partition that an answered AlterPartition asked about.
PROPOSALS = f"""
select i.run, i.id, i.seq, i.src, i.version, i.error, i.broker_epoch, i.registered_epoch,
  i.part, i.leader_epoch, i.partition_epoch, i.members, e.le, e.pe,
  coalesce(e.topic, i.topic_name) as topic,
  coalesce(e.offset, i.last_written) as offset, e.offset as written,
  size(i.records_written) as writes, e.p_leader, e.p_le, e.p_pe,
  try_element_at(transform(filter(i.answers,
    a -> a.topic = i.topic_key and a.part = i.part), a -> a.error), 1) as answer,
  try_element_at(filter(i.answers,
    a -> a.topic = i.topic_key and a.part = i.part), 1) as told
from (
  select run, id, seq, src, version, error, broker_epoch, registered_epoch, records_written,
    array_max(records_written) as last_written, answers,
    topic.topicName as topic_name, topic.topicId as topic_id,
    coalesce(topic.topicId, topic.topicName) as topic_key,
    inline(transform(topic.partitions, p -> named_struct('part', p.partitionIndex,
      'leader_epoch', p.leaderEpoch, 'partition_epoch', p.partitionEpoch,
      'members', p.newIsrWithEpochs)))
  from (
    select *, explode(from_json(request, '{_REQUEST_JSON}').topics) as topic,
      flatten(transform(from_json(response, '{_RESPONSE_JSON}').topics,
        t -> transform(t.partitions, p -> named_struct(
          'topic', coalesce(t.topicId, t.topicName),
          'part', p.partitionIndex, 'error', p.errorCode, 'le', p.leaderEpoch,
          'pe', p.partitionEpoch)))) as answers
    from rpc where api = 'AlterPartition' and resp_seq is not null
  )
) i
left join effects e on i.run = e.run and i.id = e.id and i.part = e.part
  and (i.topic_id = e.topic_id or i.topic_name = e.topic)
"""

# Records that end a recovery, and the request that caused each.
RECOVERIES = """
select s.run, s.offset, s.topic, s.part, s.p_leader, w.api, w.src, u.open
from (select * from partition_states where traced and change and p_rec = 1 and d_rec = 0) s
left join written w on s.run = w.run and s.offset = w.offset
left join (select run, src, count(*) as open from rpc
  where api = 'AlterPartition' and resp_seq is null group by run, src) u
  on s.run = u.run and s.p_leader = u.src
"""

# Unclean elections that a request asked for.
ELECTIONS = """
select s.run, s.offset, s.topic, s.part, s.mv, s.leader, s.p_isr, w.id,
  from_json(w.request, 'electionType int').electionType as election_type
from (select * from partition_states where unclean) s
join (select * from written where api = 'ElectLeaders') w
  on w.run = s.run and w.offset = s.offset
"""

# Records that unfence, and the heartbeat that caused each.
UNFENCINGS = """
select b.run, b.offset, b.broker, b.registered_at, w.api, w.src,
  cast(null as string) as topic, cast(null as int) as part,
  from_json(w.request, 'currentMetadataOffset bigint').currentMetadataOffset as caught_up_to
from (select * from broker_states where judged and kind in ('Change', 'Unfence')
  and p_registered and not d_fenced) b
join written w on b.run = w.run and b.offset = w.offset
"""

# An image that a node published, beside the first one that what is left of the log can tell.
AN_IMAGE = "case when published then named_struct('offset', offset, 'first', first_image) end"

# Whom a leader proposes to add, under the image that its broker had published by then.
ADDITIONS = f"""
select * from (
  select *, last(state, true) over (
    partition by run, about order by at, rank {UP_TO_HERE}) as seen
  from (
    select run, seq, broker, topic, part, isr, maximal_isr, image.offset as at, 1 as rank,
      explode(array_except(maximal_isr, isr)) as about, follower_leos,
      cast(null as struct<active: boolean, epoch: bigint>) as state
    from (
      select *, last({AN_IMAGE}, true) over (
        partition by run, broker order by seq {UP_TO_HERE}) as image
      from (
        select run, seq, broker, topic, part, isr, maximal_isr, follower_leos, kind,
          false as published, cast(null as bigint) as offset, cast(null as bigint) as first_image
        from partition_event where kind = 'isr_pending'
        union all
        select run, seq, node, null, null, null, null, null, 'publish', true, offset, first_image
        from publish
      )
    ) where not published and image.offset >= image.first
    union all
    select run, null, null, null, null, null, null, pos, 0, broker, null,
      named_struct('active', active, 'epoch', epoch)
    from broker_states
  )
) where rank = 1
"""

# The event number by which each partition state was committed: the first high watermark above it.
COMMITS = f"""
select * from (
  select *, min(hw_seq) over (partition by run order by above desc, rank {UP_TO_HERE}) as seq
  from (
    select run, offset as above, 0 as rank, seq as hw_seq, cast(null as bigint) as offset,
      null as topic, null as topic_id, null as part, null as isr, null as leader, null as le,
      null as candidates, null as unclean
    from raft_event where kind = 'hw'
    union all
    select run, offset + 1, 1, null, offset, topic, topic_id, part, isr, leader, le,
      array_union(isr, coalesce(elr, array())), unclean
    from partition_states where state
  )
) where rank = 1 and seq is not null
"""

# A partition's committed states and its leaders' events, each beside the latest of the other.
QUORUMS = f"""
select *,
  last(committed, true) over w as controller,
  last(believed, true) over w as replica
from (
  select run, seq, 'commit' as kind, offset, topic, topic_id, part,
    cast(null as int) as broker, cast(leader as bigint) as leader, cast(le as bigint) as le,
    cast(isr as array<bigint>) as isr, cast(null as array<bigint>) as maximal_isr,
    named_struct('isr', cast(isr as array<bigint>), 'le', cast(le as bigint),
      'leader', cast(leader as bigint), 'offset', offset) as committed,
    cast(null as struct<maximal: array<bigint>, le: bigint, broker: bigint>) as believed
  from commits
  union all
  select run, seq, kind, null, topic, topic_id, part, broker, broker, leader_epoch, isr,
    maximal_isr, null,
    named_struct('maximal', maximal_isr, 'le', leader_epoch, 'broker', broker)
  from partition_event where maximal_isr is not null
)
window w as (partition by run, topic_id, part order by seq, offset {UP_TO_HERE})
"""

# Leaders' events with what they knew of their followers; truncations with the highest watermark.
_MINE = "partition by e.run, e.topic_id, e.part, e.broker, e.incarnation order by e.seq"
REPLICAS = f"""
select e.*, cast(null as bigint) as log_offset, u.unclean_from,
  max(partition_epoch) over ({_MINE} {BEFORE}) as p_partition_epoch,
  lag(partition_epoch) over ({_MINE}) as last_partition_epoch,
  lag(leader_epoch) over ({_MINE}) as last_leader_epoch,
  lag(isr) over ({_MINE}) as last_isr,
  lag(kind) over ({_MINE}) as last_kind,
  lag(leo) over ({_MINE}) as last_leo,
  lead(kind) over ({_MINE}) as next_kind,
  last(case when kind in ('become_leader', 'become_follower', 'isr_pending', 'isr_commit',
      'isr_revert')
    then named_struct('kind', kind, 'isr', maximal_isr, 'le', leader_epoch, 'pe', partition_epoch,
      'known', from_json(follower_leos, 'map<string, array<bigint>>'))
    end, true) over ({_MINE} {BEFORE}) as p_change,
  first(case when kind = 'become_leader' then leo end, true) over (
    partition by e.run, e.topic_id, e.part, e.broker, e.incarnation, leader_epoch order by e.seq
    {UP_TO_HERE}) as epoch_start,
  lag(kind) over (partition by e.run, e.topic_id, e.part, e.broker order by e.seq) as before_it,
  min(case when kind = 'append' and maximal_isr is not null then broker end) over (
    partition by e.run, e.topic_id, e.part, leader_epoch) as lowest_writer,
  max(case when kind = 'append' and maximal_isr is not null then broker end) over (
    partition by e.run, e.topic_id, e.part, leader_epoch) as highest_writer,
  from_json(follower_leos, 'map<string, array<bigint>>') as known,
  filter(maximal_isr, m -> m <> broker) as others,
  max(case when kind = 'hw' and maximal_isr is not null then hw_new end) over (
    partition by e.run, e.topic_id, e.part order by e.seq {BEFORE}) as true_hw,
  max(case when kind = 'hw' and maximal_isr is not null then leader_epoch end) over (
    partition by e.run, e.topic_id, e.part order by e.seq {BEFORE}) as hw_epoch,
  max(case when kind = 'append' then leader_epoch end) over (
    partition by e.run, e.topic_id, e.part, e.broker order by e.seq {BEFORE}) as log_epoch,
  max(hw_new) over (
    partition by e.run, e.topic_id, e.part, e.broker order by e.seq {BEFORE}) as own_hw
from partition_event e
left join (select run, topic_id, part, min(le) as unclean_from from partition_states
  where unclean group by run, topic_id, part) u
  on e.run = u.run and e.topic_id = u.topic_id and e.part = u.part
"""

PUBLICATIONS = f"""
select p.*, cast(null as string) as topic, cast(null as int) as part,
  i.hash, i.offset is not null as aligned,
  lag(p.offset) over (partition by p.run, p.node, p.incarnation order by p.seq) as p_offset,
  coalesce(bool_or(p.manifest = 'snapshot' and p.offset > coalesce(p.first_image, 0)) over (
    partition by p.run, p.node, p.incarnation order by p.seq), false) as after_snapshot
from (
  select *, max(hw) over (partition by run order by seq {UP_TO_HERE}) as high_watermark
  from (
    select run, seq, node, incarnation, offset, image_hash, manifest, in_tx, first_image,
      cast(null as bigint) as hw
    from publish
    union all
    select run, seq, null, null, null, null, null, null, null, offset
    from raft_event where kind = 'hw'
  )
) p
left join images i on p.run = i.run and p.offset = i.offset
where p.node is not null
"""

HEADERS = """
select *, cast(null as bigint) as offset, cast(null as string) as topic, cast(null as int) as part
from headers
"""

SNAPSHOTS = """
select *, cast(null as string) as topic, cast(null as int) as part from snapshots
"""
