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


# The logs of the brokers that run at the end. A broker that was shut down before has left its logs
# of then as well, and may have truncated them since.
_AT_END = """
select l.* from replica_log l
join (select run, broker, max_by(incarnation, seq) as incarnation from replica_log
  where at = 'end' group by run, broker) b
  on l.run = b.run and l.broker = b.broker and l.incarnation = b.incarnation
where l.at = 'end'
"""

# The committed records of each leader at the end, beside those of the other members of its ISR.
_OF_ISR = """
select l.run, l.topic, l.topic_id, l.part, l.offset as record_offset, f.member, f.leader,
  concat_ws(' ', l.leader_epoch, l.value_id) as committed, h.held, e.log_end,
  cast(null as bigint) as log_offset
from (select * from logs_at_end where value_id is not null) l
join (
  select s.run, s.topic_id, s.part, s.leader, s.member, w.high_watermark
  from (select *, explode(isr) as member from (
    select run, topic_id, part, max_by(alive, pos) as alive, max_by(leader, pos) as leader,
      max_by(le, pos) as le, max_by(isr, pos) as isr
    from partition_states group by run, topic_id, part) where alive) s
  join (select run, topic_id, part, broker, leader_epoch, max_by(hw_new, seq) as high_watermark
    from partition_event where hw_new is not null and maximal_isr is not null
    group by run, topic_id, part, broker, leader_epoch) w
    on s.run = w.run and s.topic_id = w.topic_id and s.part = w.part and s.leader = w.broker
      and s.le = w.leader_epoch
  where s.member <> s.leader
) f
  on l.run = f.run and l.topic_id = f.topic_id and l.part = f.part and l.broker = f.leader
    and l.offset < f.high_watermark
join (select e.run, e.topic_id, e.part, e.broker, max_by(e.leo, e.seq) as log_end
  from partition_event e
  join (select distinct run, topic_id, part, broker, incarnation from logs_at_end) i
    on e.run = i.run and e.topic_id = i.topic_id and e.part = i.part and e.broker = i.broker
      and e.incarnation = i.incarnation
  where e.leo is not null group by e.run, e.topic_id, e.part, e.broker) e
  on f.run = e.run and f.topic_id = e.topic_id and f.part = e.part and f.member = e.broker
left join (select run, topic_id, part, broker, offset,
    concat_ws(' ', leader_epoch, value_id) as held from logs_at_end) h
  on f.run = h.run and f.topic_id = h.topic_id and f.part = h.part and f.member = h.broker
    and l.offset = h.offset
left join (select run, topic_id, part, bool_or(lossy) as lossy from electable_replicas
  group by run, topic_id, part) x
  on l.run = x.run and l.topic_id = x.topic_id and l.part = x.part
where not coalesce(x.lossy, false)
"""

# The logs of running brokers at the end, by their directories, beside the last leader of each. What
# fails is reported, and another leader elected, within the timeout for failed directories, unless
# no controller commits anything.
_PLACED = """
select d.run, d.topic, d.topic_id, d.part, d.broker, d.online, s.leader,
  cast(null as bigint) as log_offset
from (select distinct run, topic, topic_id, part, broker, online from logs_at_end
  where online is not null) d
join (select run, topic_id, part, max_by(alive, pos) as alive, max_by(leader, pos) as leader
  from partition_states group by run, topic_id, part) s
  on d.run = s.run and d.topic_id = s.topic_id and d.part = s.part
left join (select run, max(vt) as committed_ms from raft_event where kind = 'hw' group by run) c
  on d.run = c.run
left join (select run, targets, max(vt) as failed_ms from fault
  where action = 'fail_dir' and phase = 'start' group by run, targets) f
  on d.run = f.run and f.targets = concat_ws('', '[', d.broker, ']')
where s.alive and (f.failed_ms is null or c.committed_ms - f.failed_ms > 40000)
"""

# The part of D1 that the disks show.
LEADS_FROM_DEAD_DIRECTORY = Check(
    view="placed_logs",
    when="leader = broker",
    bad="not online",
    message="broker {broker} leads a partition whose log lies in a directory that has failed",
    offset="log_offset",
    broker="broker",
    counts=False,
)

VIEWS = (
    View(name="logs_at_end", sql=_AT_END, empty_unless=("replica_log", "at", "end")),
    View(name="placed_logs", sql=_PLACED, empty_unless=("replica_log", "at", "end")),
    View(name="isr_logs", sql=_OF_ISR, empty_unless=("replica_log", "at", "end")),
    View(name="replica_logs", sql=_LOGS),
    View(name="replica_values", sql=_VALUES),
)

RULES = (
    Rule(
        id="F2",
        title="Every ISR member holds what is committed",
        statement="At the end of a run each running member of the committed ISR holds, at every "
        "offset below its leader's high watermark, the leader's record, except after an unclean "
        "election or the loss of the last ISR member.",
        source="KIP-101, KIP-320; StrongISR",
        evidence=Evidence.TRACE,
        tables=("replica_log", "partition_event", "raft_event"),
        checks=(
            Check(
                view="isr_logs",
                when="true",
                bad="(held is not null and held <> committed) "
                "or (held is null and log_end <= record_offset)",
                message="broker {broker} is in the ISR and lacks the committed record at offset "
                "{number}, or holds another there",
                broker="member",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
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
