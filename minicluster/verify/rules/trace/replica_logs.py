"""The records that replicas hold where a run or a broker ends."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

_LOGS = """
select *, lag(leader_epoch) over (
    partition by run, broker, topic_id, part, at, seq order by offset) as p_leader_epoch
from replica_log
"""

# The records of replicas where a run or a broker ends, each with the replica's own high watermark
# by then, beside all records that any replica ever held at that offset in that leader epoch.
# Numbered are those of an idempotent producer, which may retry. A partition that has lost records,
# by an unclean election or with its last ISR member, promises nothing.
_VALUES = """
select *,
  min(value_id) over (partition by run, topic_id, part, offset, leader_epoch) as lowest_value,
  max(value_id) over (partition by run, topic_id, part, offset, leader_epoch) as highest_value,
  min(committed_value) over (partition by run, topic_id, part, offset) as lowest_committed,
  max(committed_value) over (partition by run, topic_id, part, offset) as highest_committed,
  count_if(at = 'end' and numbered) over (
    partition by run, topic_id, part, broker, seq, value_id) as copies
from (
  select l.*, case when l.at = 'end' and l.offset < w.high_watermark
    then concat_ws(' ', l.leader_epoch, l.value_id) end as committed_value,
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
  left join (select run, topic_id, part, bool_or(lossy) as lossy from electable_replicas
    group by run, topic_id, part) h
    on l.run = h.run and l.topic_id = h.topic_id and l.part = h.part
  left join (select run, topic, part, value, bool_or(idempotent) as numbered from history
    where f = 'send' and idempotent group by run, topic, part, value) s
    on l.run = s.run and l.topic = s.topic and l.part = s.part and l.value_id = s.value
  where not coalesce(h.lossy, false)
)
"""


VIEWS = (
    View(name="replica_logs", sql=_LOGS),
    View(name="replica_values", sql=_VALUES),
)

RULES = (
    Rule(
        id="F4",
        title="Replicas do not diverge below their high watermarks",
        statement="Two replicas hold the same record at every offset below both of their high "
        "watermarks, and at the same offset and leader epoch at any time, except after an "
        "unclean election or the loss of the last ISR member.",
        source="KIP-101, KIP-279; log matching",
        evidence=Evidence.TRACE,
        tables=("replica_log", "partition_event", "raft_event"),
        checks=(
            Check(
                view="replica_values",
                when="committed_value is not null",
                bad="lowest_committed <> highest_committed",
                message="broker {broker} holds a record at the committed offset {number} "
                "that differs from other replicas'",
                broker="broker",
                number="offset",
                offset="cast(null as bigint)",
            ),
            Check(
                view="replica_values",
                when="value_id is not null",
                bad="lowest_value <> highest_value",
                message="broker {broker} held a record at offset {number} that differs from "
                "other replicas' in the same leader epoch",
                broker="broker",
                number="offset",
                offset="cast(null as bigint)",
                counts=False,
            ),
        ),
    ),
    Rule(
        id="F11",
        title="A retried record is appended once",
        statement="A record of an idempotent producer is at one offset of a log, however often "
        "it was sent, except after an unclean election or the loss of the last ISR member.",
        source="KIP-98; ProducerStateManager, ProducerAppendInfo",
        evidence=Evidence.TRACE,
        tables=("replica_log", "partition_event", "raft_event", "history"),
        checks=(
            Check(
                view="replica_values",
                when="at = 'end' and numbered",
                bad="copies > 1",
                message="broker {broker} holds a record of an idempotent producer more than once "
                "(offset {number})",
                broker="broker",
                number="offset",
                offset="cast(null as bigint)",
            ),
        ),
    ),
    Rule(
        id="F17",
        title="Leader epochs do not decrease along a replica's log",
        statement="The leader epochs of a replica's records never decrease: each epoch begins "
        "once.",
        source="KIP-101; LeaderEpochFileCache",
        evidence=Evidence.TRACE,
        tables=("replica_log",),
        checks=(
            Check(
                view="replica_logs",
                when="true",
                bad="leader_epoch < p_leader_epoch",
                message="broker {broker} holds leader epoch {number} after a later one",
                broker="broker",
                number="leader_epoch",
                offset="cast(null as bigint)",
            ),
        ),
    ),
)
