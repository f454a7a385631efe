"""Responses to Kafka's clients, beside the logs and the high watermarks of the replicas.

A partition that has lost records, by an unclean election or with its last ISR member, promises
nothing. A name that several topics had is that of the one which the broker had by the response;
of a broker that has none of them, such as a group's coordinator, it names none.
"""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.trace.windows import UP_TO_HERE

# The topics that each broker had under a name that several topics had, one after the other.
_SUCCEEDING = """
select e.run, e.topic, e.topic_id, e.part, e.broker, e.since,
  lead(e.since) over (partition by e.run, e.topic, e.part, e.broker order by e.since) as until
from (select run, topic, topic_id, part, broker, min(seq) as since from partition_event
  group by run, topic, topic_id, part, broker) e
join (select run, topic from partition_event group by run, topic
  having count(distinct topic_id) > 1) s
  on e.run = s.run and e.topic = s.topic
"""

# Each row with the id of its topic, of partitions that have lost nothing.
_RETURNED = """
select r.run, r.seq, r.rpc, r.broker, r.f, r.part, r.acks, r.offset as record_offset, r.value,
  r.high_watermark, r.last_stable_offset, r.isolation, r.batch_offset, r.visible, r.send_seq,
  r.client_id, r.connection, r.received_seq, r.fetch_offset, r.group_id, r.member_id,
  r.generation, r.stable, r.producer_id, r.producer_epoch, r.sequence,
  coalesce(r.producer_id, -1) >= 0 as idempotent,
  coalesce(r.topic_id, n.topic_id) as topic_id, n.topic,
  cast(null as bigint) as log_offset
from client_record r
join (
  select run, topic, any_value(topic_id) as topic_id, true as by_name, cast(null as int) as part,
    cast(null as int) as broker, cast(null as bigint) as since, cast(null as bigint) as until
  from partition_event group by run, topic having count(distinct topic_id) = 1
  union all
  select run, any_value(topic), topic_id, false, null, null, null, null
  from partition_event group by run, topic_id
  union all
  select run, topic, topic_id, true, part, broker, since, until from succeeding_topics
) n
  on r.run = n.run and (r.topic_id is null) = n.by_name
    and case when n.by_name then r.topic = n.topic else r.topic_id = n.topic_id end
    and (n.broker is null or (r.f in ('send', 'read', 'fetch', 'list') and r.broker = n.broker
      and r.part = n.part and r.seq >= n.since and (n.until is null or r.seq < n.until)))
left join (select run, topic_id, part, bool_or(lossy) as lossy from electable_replicas
  group by run, topic_id, part) h
  on r.run = h.run and n.topic_id = h.topic_id and r.part = h.part
where not coalesce(h.lossy, false)
"""

# Each row beside the state of the replica that responded: its leader epoch, whether it leads, and
# its own high watermark.
_SERVED = f"""
select *, max(high_watermark) over (
    partition by run, topic_id, part, broker, replica.incarnation, replica.leader_epoch
    order by seq rows between unbounded preceding and 1 preceding) as returned_before
from (
  select *,
    last(state, true) over (partition by run, topic_id, part, broker order by seq {UP_TO_HERE})
      as replica,
    last(hw, true) over (partition by run, topic_id, part, broker order by seq {UP_TO_HERE})
      as own_high_watermark
  from (
    select run, seq, rpc, broker, f, part, record_offset, high_watermark, topic_id, topic,
      log_offset, cast(null as bigint) as hw,
      cast(null as struct<incarnation: string, leader_epoch: bigint, leads: boolean>) as state
    from returned_to_clients where f in ('read', 'fetch', 'list')
    union all
    select run, seq, null, broker, null, part, null, null, topic_id, topic, null, hw_new,
      case when kind in ('become_leader', 'become_follower') then named_struct('incarnation',
        incarnation, 'leader_epoch', cast(leader_epoch as bigint),
        'leads', kind = 'become_leader') end
    from partition_event
  )
) where rpc is not null
"""

# Records that were acknowledged for all replicas, beside the last leader's log at the end. It has
# the record, or none at that offset where its log ends above it (compaction, retention).
_ACKNOWLEDGED = """
select t.*, l.leader, l.log_end, h.value_id as held, l.deleted
from (select * from returned_to_clients where f = 'send' and acks = -1) t
join (
  select e.run, e.topic_id, e.part, e.broker as leader, max_by(e.leo, e.seq) as log_end,
    bool_or(e.kind = 'delete' and e.seq > b.began) as deleted
  from partition_event e
  join (select run, topic_id, part, max_by(broker, leader_epoch) as broker,
      max_by(seq, leader_epoch) as began
    from partition_event where kind = 'become_leader' group by run, topic_id, part) b
    on e.run = b.run and e.topic_id = b.topic_id and e.part = b.part and e.broker = b.broker
  where e.leo is not null or e.kind = 'delete'
  group by e.run, e.topic_id, e.part, e.broker
) l
  on t.run = l.run and t.topic_id = l.topic_id and t.part = l.part
left join (select run, topic_id, part, broker, offset, value_id from replica_log where at = 'end') h
  on t.run = h.run and t.topic_id = h.topic_id and t.part = h.part and l.leader = h.broker
    and t.record_offset = h.offset
"""

# Every value that a response to a client has placed at an offset for good. A producer with an id
# may send another batch under a sequence number again, acknowledged at the offset of the first.
_VALUES = """
select *,
  min(value) over (partition by run, topic_id, part, record_offset) as lowest_value,
  max(value) over (partition by run, topic_id, part, record_offset) as highest_value
from returned_to_clients where f = 'read' or (f = 'send' and acks = -1 and not idempotent)
"""


VIEWS = (
    View(name="succeeding_topics", sql=_SUCCEEDING, empty_unless=("client_record", None, None)),
    View(name="returned_to_clients", sql=_RETURNED, empty_unless=("client_record", None, None)),
    View(name="served_to_clients", sql=_SERVED, empty_unless=("client_record", None, None)),
    View(
        name="acknowledged_to_clients",
        sql=_ACKNOWLEDGED,
        empty_unless=("client_record", "f", "send"),
    ),
    View(name="values_of_clients", sql=_VALUES, empty_unless=("client_record", None, None)),
)

WATERMARKS_OF_CLIENTS = Check(
    view="served_to_clients",
    when="f in ('fetch', 'list') and replica.leads and returned_before is not null",
    bad="high_watermark < returned_before",
    message="leader {broker} returned the high watermark {number} to a client after a higher one "
    "in the same leader epoch",
    broker="broker",
    number="high_watermark",
    offset="log_offset",
    counts=False,
)

RULES = (
    Rule(
        id="F1",
        title="Acknowledged records are not lost",
        statement="A record of a client that was acknowledged by all in-sync replicas (acks=all) "
        "is at its offset in the log of the last leader, except after an unclean election, "
        "the loss of the last ISR member, or where it was deleted or compacted away.",
        source="KIP-101, KIP-279; StrongISR as outcome",
        evidence=Evidence.TRACE,
        tables=("client_record", "partition_event", "replica_log", "raft_event"),
        checks=(
            Check(
                view="acknowledged_to_clients",
                when="not coalesce(deleted, false)",
                bad="log_end <= record_offset "
                "or (held is not null and held <> value and not idempotent)",
                message="a record that was acknowledged to a client at offset {number} is not in "
                "the log of the last leader {broker}",
                broker="leader",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="F6",
        title="Clients read committed records only",
        statement="A consumer receives records below the high watermark of the replica that "
        "responds, and no higher high watermark than the replica has.",
        source="KIP-392, KIP-207; ReplicaManager.readFromLog, FetchIsolation",
        evidence=Evidence.TRACE,
        tables=("client_record", "partition_event", "raft_event"),
        checks=(
            Check(
                view="served_to_clients",
                when="f = 'read' and own_high_watermark is not null",
                bad="record_offset >= own_high_watermark or record_offset >= high_watermark",
                message="broker {broker} gave a client the record at offset {number}, which was "
                "not below its high watermark",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
            Check(
                view="served_to_clients",
                when="f in ('fetch', 'list') and own_high_watermark is not null",
                bad="high_watermark > own_high_watermark",
                message="broker {broker} returned the high watermark {number} to a client, above "
                "its own",
                broker="broker",
                number="high_watermark",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="F9",
        title="Clients see one value at each offset",
        statement="All records that clients read at one offset of a partition, or that were "
        "acknowledged there for all in-sync replicas, have one value, except after an unclean "
        "election or the loss of the last ISR member.",
        source="Jepsen, Kafka workload: inconsistent offsets, version orders",
        evidence=Evidence.TRACE,
        tables=("client_record", "partition_event", "raft_event"),
        checks=(
            Check(
                view="values_of_clients",
                when="value is not null",
                bad="lowest_value <> highest_value",
                message="clients received two values at offset {number} (broker {broker})",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
)
