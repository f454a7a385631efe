"""The views of ``rules.replica``: replicas' events beside the metadata that they rest on."""

from __future__ import annotations

from minicluster.verify.rules.trace_views import AN_IMAGE, BEFORE, UP_TO_HERE

# What a broker took over of a partition, beside the committed state of that partition epoch.
APPLIED = """
select e.run, e.seq, e.broker, e.topic, e.topic_id, e.part, e.kind, e.leader_epoch,
  e.partition_epoch, s.offset, s.leader, s.le, s.pe
from (select * from partition_event
  where kind in ('become_leader', 'become_follower', 'isr_commit')) e
join (select run, topic_id, part, min(pe) as first_pe from partition_states where state
  group by run, topic_id, part) f
  on e.run = f.run and e.topic_id = f.topic_id and e.part = f.part
    and e.partition_epoch >= f.first_pe
left join (select * from partition_states where state) s
  on e.run = s.run and e.topic_id = s.topic_id and e.part = s.part
    and e.partition_epoch = s.pe
"""

# An image that a broker published counts for what it does from this long after on.
_SETTLED_MS = 1000
_IMAGES = f"""
select *,
  last({AN_IMAGE}, true) over (
    partition by run, broker order by seq {UP_TO_HERE}) as image,
  last({AN_IMAGE}, true) over (
    partition by run, broker, incarnation order by vt
    range between unbounded preceding and {_SETTLED_MS} preceding) as settled_image
from (
  select run, vt, seq, broker, incarnation, topic, topic_id, part, kind, leader_epoch, leo,
    maximal_isr, false as published, cast(null as bigint) as offset,
    cast(null as bigint) as first_image
  from partition_event
  where kind = 'delete' or (maximal_isr is not null and kind in ('append', 'hw', 'ack', 'stop'))
  union all
  select distinct run, vt, seq, broker, incarnation, topic, topic_id, part, 'end', null, null,
    null, false, null, null
  from replica_log where at = 'end' and incarnation is not null
  union all
  select run, vt, seq, node, incarnation, null, null, null, null, null, null, null, true, offset,
    first_image
  from publish
)
"""

# What a broker does with a replica, beside the state that its own image gives the partition.
ACTING = f"""
select * from (
  select *, last(state, true) over (
    partition by run, topic_id, part order by at, rank {UP_TO_HERE}) as seen
  from (
    select run, seq, broker, topic, topic_id, part, kind, leader_epoch,
      image.offset as at, 1 as rank,
      cast(null as struct<live: boolean, leader: int, le: bigint, replicas: array<int>>) as state
    from (select * except (image, settled_image),
        case when kind = 'delete' then image else settled_image end as image
      from ({_IMAGES}))
    where not published and image.offset >= image.first
    union all
    select run, null, null, topic, topic_id, part, null, null, pos, 0,
      named_struct('live', kind <> 'RemoveTopic', 'leader', leader, 'le', le,
        'replicas', replicas)
    from partition_states
  )
) where rank = 1
"""

# Replicas beside what is committed: who may be elected, and the highest high watermark so far.
HOLDERS = f"""
select *, coalesce(bool_or(broken) over (
    partition by run, topic_id, part order by seq, log_offset {UP_TO_HERE}), false) as lossy
from (
  select *, (coalesce(unclean, false) or (kind = 'become_leader' and size(candidates) <= 1
      and coalesce(leo < true_hw, false))) as broken
  from (
    select *,
      last(told, true) over (partition by run, topic_id, part order by seq, log_offset {UP_TO_HERE})
        as candidates,
      max(hw) over (partition by run, topic_id, part order by seq, log_offset {BEFORE}) as true_hw
    from (
      select run, seq, topic, topic_id, part, null as broker, 'commit' as kind,
        offset as log_offset, null as leo,
        null as hw, cast(candidates as array<bigint>) as told, unclean
      from commits
      union all
      select run, seq, topic, topic_id, part, broker, kind, null, leo,
        case when kind = 'hw' and maximal_isr is not null then hw_new end, null, null
      from partition_event where kind not in ('stop', 'delete', 'truncate')
    )
  )
)
"""

_ASKED = (
    "topics array<struct<topic: string, topicId: string, partitions: array<struct<"
    "partition: int, currentLeaderEpoch: int>>>>"
)
_TOLD = (
    "responses array<struct<topic: string, topicId: string, partitions: array<struct<"
    "partitionIndex: int, errorCode: int>>>>"
)
# Each partition of a fetch, beside the leader epoch of the broker that handled it.
FETCHES = f"""
select * from (
  select *, last(le, true) over (
    partition by run, topic_id, part, broker order by seq {UP_TO_HERE}) as seen
  from (
    select run, handle_seq as seq, id, dst as broker, src, topic.topicId as topic_id,
      asked.partition as part, asked.currentLeaderEpoch as asked,
      try_element_at(transform(filter(answers, a -> a.topic_id = topic.topicId
        and a.part = asked.partition), a -> a.error), 1) as error, cast(null as bigint) as le
    from (
      select *, explode(topic.partitions) as asked from (
        select run, handle_seq, id, src, dst, explode(from_json(request, '{_ASKED}').topics)
            as topic,
          flatten(transform(from_json(response, '{_TOLD}').responses, t -> transform(t.partitions,
            p -> named_struct('topic_id', t.topicId, 'part', p.partitionIndex,
              'error', p.errorCode)))) as answers
        from rpc where api = 'Fetch' and resp_seq is not null and handle_seq is not null
      )
    )
    union all
    select run, seq, null, broker, null, topic_id, part, null, null, leader_epoch
    from partition_event where kind in ('become_leader', 'become_follower', 'isr_commit', 'hw')
  )
) where id is not null and asked >= 0 and seen is not null
"""

# What consumers were told of the ends of partitions, beside where the leader's epoch began.
LISTED = """
select told.run, told.id, told.broker, told.topic, told.part, told.end_offset, epochs.began
from (
  select run, id, broker, topic, answer.partitionIndex as part, answer.offset as end_offset,
    answer.leaderEpoch as le
  from (
    select run, id, broker, asked, topic.name as topic, explode(topic.partitions) as answer from (
      select run, id, dst as broker,
        from_json(request, 'replicaId int, topics array<struct<name: string, partitions:
          array<struct<partitionIndex: int, timestamp: bigint>>>>') as asked,
        explode(from_json(response, 'topics array<struct<name: string, partitions:
          array<struct<partitionIndex: int, errorCode: int, offset: bigint,
            leaderEpoch: bigint>>>>').topics) as topic
      from rpc where api = 'ListOffsets' and resp_seq is not null and handle_seq is not null
    )
  )
  where answer.errorCode = 0 and asked.replicaId < 0 and exists(asked.topics, t ->
    t.name = topic and exists(t.partitions, p ->
      p.partitionIndex = answer.partitionIndex and p.timestamp = -1))
) as told
join (
  select run, broker, topic, part, leader_epoch as le, min(leo) as began
  from partition_event where kind = 'become_leader'
  group by run, broker, topic, part, leader_epoch
) as epochs
on told.run = epochs.run and told.broker = epochs.broker and told.topic = epochs.topic
  and told.part = epochs.part and told.le = epochs.le
"""

REPLICA_LOGS = """
select *, lag(leader_epoch) over (
    partition by run, broker, topic_id, part, at, seq order by offset) as p_leader_epoch
from replica_log
"""

# What replicas hold where a run or a broker ends, with how far each had seen it committed by then;
# and whatever any of them ever held at the same offset under the same leader epoch. Numbered are
# those that an idempotent producer may have sent again. A partition that has lost records, by an
# unclean election or with its last member, promises nothing.
REPLICA_VALUES = """
select *,
  min(value_id) over (partition by run, topic_id, part, offset, leader_epoch) as lowest_value,
  max(value_id) over (partition by run, topic_id, part, offset, leader_epoch) as highest_value,
  min(told) over (partition by run, topic_id, part, offset) as lowest_told,
  max(told) over (partition by run, topic_id, part, offset) as highest_told,
  count_if(at = 'end' and numbered) over (
    partition by run, topic_id, part, broker, seq, value_id) as copies
from (
  select l.*, case when l.at = 'end' and l.offset < w.high_watermark
    then concat_ws(' ', l.leader_epoch, l.value_id) end as told,
    coalesce(s.numbered, false) as numbered
  from replica_log l
  left join (
    select d.run, d.topic_id, d.part, d.broker, d.seq, max_by(e.hw_new, e.seq) as high_watermark
    from (select distinct run, topic_id, part, broker, seq from replica_log where at = 'end') d
    join partition_event e
      on d.run = e.run and d.topic_id = e.topic_id and d.part = e.part and d.broker = e.broker
        and e.seq < d.seq and e.hw_new is not null
    group by d.run, d.topic_id, d.part, d.broker, d.seq
  ) w
    on l.run = w.run and l.topic_id = w.topic_id and l.part = w.part and l.broker = w.broker
      and l.seq = w.seq
  left join (select run, topic_id, part, bool_or(lossy) as lossy from holders
    group by run, topic_id, part) h
    on l.run = h.run and l.topic_id = h.topic_id and l.part = h.part
  left join (select run, topic, part, value, bool_or(idempotent) as numbered from history
    where f = 'send' and idempotent group by run, topic, part, value) s
    on l.run = s.run and l.topic = s.topic and l.part = s.part and l.value_id = s.value
  where not coalesce(h.lossy, false)
)
"""
