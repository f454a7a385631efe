"""The cluster's own members that transform: each record that they pass is written once (H9).

A value that they write names the place of the record that it is of. Other clients may write what
they like.
"""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

# The groups that commit offsets in transactions, with the ids of their producers.
_GROUPS = """
select distinct run, group_id, producer_id
from client_record where f = 'pending' and connection is null
"""

# The records that they wrote in committed transactions, as the logs of the last leaders have them.
_WRITTEN = """
select *, count(1) over (partition by run, group_id, topic_id, value) as copies
from (
  select distinct b.run, b.seq, b.topic_id, b.topic, b.part, b.broker, b.base_offset, b.log_offset,
    g.value_id as value, m.group_id
  from batches_of_producers b
  join transforming_groups m on b.run = m.run and b.producer_id = m.producer_id
  join (select * from replica_log where at = 'end') g
    on b.run = g.run and b.topic_id = g.topic_id and b.part = g.part and b.broker = g.broker
      and b.base_offset = g.offset
  where b.ended_by = 'commit' and b.marker is null and b.topic <> '__consumer_offsets'
)
"""

# The records that they read below the offsets that their groups have committed, beside what was
# written for each. What a partition has lost may have been written.
_PASSED = """
select r.run, r.seq, r.topic_id, r.topic, r.part, r.broker, r.record_offset, r.log_offset, w.copies
from (
  select distinct t.run, t.seq, t.topic_id, t.topic, t.part, t.broker, t.record_offset,
    t.log_offset, t.value, m.group_id
  from returned_to_clients t
  join (
    select distinct o.run, o.client_id, o.group_id
    from client_record o
    join transforming_groups k on o.run = k.run and o.group_id = k.group_id
    where o.f = 'own' and o.connection is null
  ) m
    on t.run = m.run and t.client_id = m.client_id
  where t.f = 'read' and t.visible
) r
join (
  select run, group_id, topic_id, part, max(record_offset) as passed
  from offsets_set where shown is not null group by run, group_id, topic_id, part
) c
  on r.run = c.run and r.group_id = c.group_id and r.topic_id = c.topic_id and r.part = c.part
left join (select run, group_id, value, max(copies) as copies from written_by_transforms
  group by run, group_id, value) w
  on r.run = w.run and r.group_id = w.group_id
    and w.value = concat(r.topic, '-', cast(r.part as string), '@',
      cast(r.record_offset as string), ' ', r.value)
left join (select run, bool_or(lossy) as lossy from electable_replicas group by run) h
  on r.run = h.run
where r.record_offset < c.passed and not coalesce(h.lossy, false)
"""

_OF_TRANSFORMS = ("client_record", "f", "pending")

VIEWS = (
    View(name="transforming_groups", sql=_GROUPS, empty_unless=_OF_TRANSFORMS),
    View(name="written_by_transforms", sql=_WRITTEN, empty_unless=_OF_TRANSFORMS),
    View(name="passed_by_transforms", sql=_PASSED, empty_unless=_OF_TRANSFORMS),
)

RULES = (
    Rule(
        id="H9",
        title="A transform writes each record once",
        statement="Each record that a transforming group has passed is in one committed "
        "transaction of its members, and no record is in two.",
        source="KIP-98, KIP-447; KafkaProducer.sendOffsetsToTransaction",
        evidence=Evidence.TRACE,
        tables=(
            "client_record",
            "group_event",
            "log_batch",
            "partition_event",
            "raft_event",
            "replica_log",
        ),
        checks=(
            Check(
                view="written_by_transforms",
                when="true",
                bad="copies > 1",
                message="a transforming group wrote the record at offset {number} more than once",
                broker="broker",
                number="base_offset",
                offset="log_offset",
            ),
            Check(
                view="passed_by_transforms",
                when="true",
                bad="copies is null",
                message="a transforming group has passed the record at offset {number}, and wrote "
                "nothing for it",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
)
