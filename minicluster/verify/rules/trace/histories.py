"""Whole histories of consumers in groups: what they passed, left out, and saw twice.

The names are those of Jepsen's workload for Kafka. The places of records are those in the log of
the last leader. Only the cluster's own consumers are judged: another client may seek.
"""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

# The records of the last leader's log and the markers, with their numbers along it.
_NUMBERED = """
select g.run, g.topic_id, g.part, g.offset as record_offset, count(1) over (
    partition by g.run, g.topic_id, g.part order by g.offset
    rows between unbounded preceding and current row) as number
from replica_log g
join (
  select run, topic_id, part, max_by(broker, leader_epoch) as broker
  from partition_event where kind = 'become_leader' group by run, topic_id, part
) l on g.run = l.run and g.topic_id = l.topic_id and g.part = l.part and g.broker = l.broker
where g.at = 'end'
"""

# Each record that one of the cluster's consumers got, with how often it was assigned partitions
# before: a consumer begins anew with each assignment, and ignores what it fetched for an earlier
# one.
_READ = """
select s.run, s.seq, s.send_seq, s.is_early,
  lag(s.seq) over (
    partition by s.run, s.client_id, s.topic_id, s.part, s.assignment, s.is_early
    order by s.seq, s.record_offset) as seq_before,
  s.topic_id, s.topic, s.part, s.broker, s.record_offset, s.visible, s.client_id,
  s.value, s.log_offset, n.number,
  lag(s.record_offset) over (
    partition by s.run, s.client_id, s.topic_id, s.part, s.assignment, s.is_early
    order by s.seq, s.record_offset) as offset_before,
  lag(n.number) over (
    partition by s.run, s.client_id, s.topic_id, s.part, s.assignment, s.is_early
    order by s.seq, s.record_offset) as number_before
from (
  select *, coalesce(send_seq < last_given, false) as is_early
  from (
    select *, count(given) over (partition by run, client_id order by seq
        rows between unbounded preceding and current row) as assignment,
      last(given, true) over (partition by run, client_id order by seq
        rows between unbounded preceding and current row) as last_given
    from (
      select run, seq, send_seq, f, topic_id, topic, part, broker, record_offset, visible,
        client_id, value, log_offset, case when f = 'own' then seq end as given
      from returned_to_clients
      where connection is null and (f = 'own' or (f = 'read' and received))
    )
  )
) s
left join numbered_records n
  on s.run = n.run and s.topic_id = n.topic_id and s.part = n.part
    and s.record_offset = n.record_offset
where s.f = 'read'
"""

# All that the members of a group got of a partition together: the first number, the last, how many.
_PASSED = """
select run, min(seq) as seq, topic_id, any_value(topic) as topic, part, group_id,
  min(broker) as broker, min(number) as first_number, max(number) as last_number,
  count(number) as numbers, cast(null as bigint) as log_offset
from (
  select r.run, min(r.seq) as seq, r.topic_id, any_value(r.topic) as topic, r.part, g.group_id,
    min(r.broker) as broker, r.number
  from reads_of_members r
  join (select distinct run, client_id, group_id from client_record where f = 'own') g
    on r.run = g.run and r.client_id = g.client_id
  where r.number is not null
  group by r.run, r.topic_id, r.part, g.group_id, r.number
)
group by run, topic_id, part, group_id
"""

# Each value that a consumer saw, with the first and the last offset at which it was seen.
_SEEN = """
select *,
  min(record_offset) over (partition by run, topic_id, part, value) as first_offset,
  max(record_offset) over (partition by run, topic_id, part, value) as last_offset
from reads_of_members where visible
"""

VIEWS = (
    View(name="numbered_records", sql=_NUMBERED, empty_unless=("client_record", "f", "own")),
    View(
        name="reads_of_members",
        sql=_READ,
        is_fold=True,
        empty_unless=("client_record", "f", "own"),
    ),
    View(name="passed_by_groups", sql=_PASSED, empty_unless=("client_record", "f", "own")),
    View(name="seen_by_members", sql=_SEEN, empty_unless=("client_record", "f", "own")),
)

_TABLES = ("client_record", "partition_event", "replica_log", "raft_event")

RULES = (
    Rule(
        id="F7",
        title="Positions of consumers do not go back",
        statement="Between two assignments the records that a consumer reads of a partition have "
        "rising offsets.",
        source="KAFKA-2334; Jepsen, Kafka workload: nonmonotonic poll",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="reads_of_members",
                # Of two fetches at a time a consumer takes each record once.
                when="offset_before is not null and not is_early and send_seq > seq_before",
                bad="record_offset <= offset_before",
                message="a consumer read the record at offset {number} from broker {broker} after "
                "a later one",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="F10",
        title="A group leaves no record out",
        statement="Of a partition the members of a group read, between the first and the last "
        "record that they read together, every record.",
        source="Jepsen, Kafka workload: lost write, unseen",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="passed_by_groups",
                when="true",
                bad="numbers < last_number - first_number + 1",
                message="the members of a group read {number} records of a partition and left "
                "others between them out",
                broker="broker",
                number="numbers",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="F12",
        title="Polls skip no record",
        statement="Between two assignments a consumer reads the records of a partition without a "
        "gap.",
        source="Jepsen, Kafka workload: poll skip",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="reads_of_members",
                when="number is not null and number_before is not null",
                bad="number > number_before + 1",
                message="a consumer read the record at offset {number} from broker {broker} and "
                "had skipped others before it",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="H8",
        title="No record is seen at two offsets",
        statement="A value that a producer with an id sent is seen at one offset.",
        source="KIP-98; Jepsen, Kafka workload: duplicate",
        evidence=Evidence.TRACE,
        tables=(*_TABLES, "log_batch"),
        checks=(
            Check(
                view="seen_by_members",
                when="value is not null and value <> ''",
                bad="first_offset <> last_offset",
                message="consumers saw the record at offset {number} at another offset as well",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
)
