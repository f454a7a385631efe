"""Whole histories of consumers in groups: what they passed, left out, and saw twice.

The names are those of Jepsen's workload for Kafka. The places of records are those in the log of
the last leader. Only the cluster's own consumers are judged: another client may seek.
"""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

# The records and markers of the last leader's log, with their numbers along it.
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

# Each fetch of one of the cluster's own consumers, and each record that it returned, with how often
# the consumer was assigned partitions before it sent the fetch. It begins anew with each
# assignment, at the offsets that it fetches then.
_FETCHED = """
select *, count(given) over (partition by run, client_id order by at
    rows between unbounded preceding and current row) as assignment
from (
  select run, seq, rpc, f, topic_id, topic, part, broker, client_id, record_offset, fetch_offset,
    send_seq, received_seq, log_offset,
    case when f in ('own', 'committed') then received_seq else send_seq end as at,
    case when f in ('own', 'committed') then received_seq end as given
  from returned_to_clients
  where connection is null and f in ('own', 'committed', 'fetch', 'read')
    and (f in ('fetch', 'read') or received_seq is not null)
)
"""

# The position of a consumer at each fetch, beside the highest that it had before, and each record
# beside the offset at which the next one had to be: that of the fetch, or behind the record before.
_PROGRESS = """
select *, case when f = 'read' then greatest(coalesce(offset_before + 1, fetch_offset),
    fetch_offset) when position_before is not null then greatest(position_before,
    coalesce(passed, position_before)) end as expected
from (
  select run, seq, f, topic_id, topic, part, broker, log_offset, fetch_offset,
    coalesce(record_offset, fetch_offset) as reached,
    lag(record_offset) over (
      partition by run, rpc, f, topic_id, part order by record_offset) as offset_before,
    case when f = 'fetch' then lag(fetch_offset) over (
      partition by run, client_id, topic_id, part, assignment, f order by send_seq) end
      as position_before,
    max(case when f = 'read' then record_offset + 1 end) over (
      partition by run, client_id, topic_id, part, assignment
      order by case when f = 'read' then received_seq else send_seq end
      rows between unbounded preceding and current row) as passed
  from fetched_by_members
  where fetch_offset is not null and (f = 'fetch' or (f = 'read' and received_seq is not null))
)
"""

# The same, with the first record of the log at or behind the expected offset.
_EXPECTED = """
select run, seq, topic_id, topic, part, broker, reached, next_offset, log_offset
from (
  select *, last(held, true) over (
    partition by run, topic_id, part order by 0 - at, is_expected
    rows between unbounded preceding and current row) as next_offset
  from (
    select run, seq, topic_id, topic, part, broker, reached, log_offset, expected as at,
      1 as is_expected, cast(null as bigint) as held
    from progress_of_members where expected is not null
    union all
    select run, null, topic_id, null, part, null, null, null, record_offset, 0, record_offset
    from numbered_records
  )
) where is_expected = 1
"""

# All that the members of a group got of a partition together: the first number, the last, how many.
_PASSED = """
select run, min(seq) as seq, topic_id, any_value(topic) as topic, part, group_id,
  min(broker) as broker, min(number) as first_number, max(number) as last_number,
  count(number) as numbers, cast(null as bigint) as log_offset
from (
  select r.run, min(r.seq) as seq, r.topic_id, any_value(r.topic) as topic, r.part, g.group_id,
    min(r.broker) as broker, r.number
  from (
    select t.run, t.seq, t.topic_id, t.topic, t.part, t.broker, t.client_id, n.number
    from returned_to_clients t
    join numbered_records n
      on t.run = n.run and t.topic_id = n.topic_id and t.part = n.part
        and t.record_offset = n.record_offset
    where t.f = 'read' and t.connection is null and t.received_seq is not null
  ) r
  join (select distinct run, client_id, group_id from client_record where f = 'own') g
    on r.run = g.run and r.client_id = g.client_id
  group by r.run, r.topic_id, r.part, g.group_id, r.number
)
group by run, topic_id, part, group_id
"""

# Each record of a producer with an id that a client saw, with the first and the last offset at
# which its sequence number was seen.
_SEEN = """
select *,
  min(record_offset) over (
    partition by run, topic_id, part, producer_id, producer_epoch, sequence) as first_offset,
  max(record_offset) over (
    partition by run, topic_id, part, producer_id, producer_epoch, sequence) as last_offset
from returned_to_clients where f = 'read' and visible and producer_id >= 0 and sequence >= 0
"""

_OF_GROUPS = ("client_record", None, None)

VIEWS = (
    View(name="numbered_records", sql=_NUMBERED, empty_unless=_OF_GROUPS),
    View(name="fetched_by_members", sql=_FETCHED, empty_unless=_OF_GROUPS),
    View(name="progress_of_members", sql=_PROGRESS, empty_unless=_OF_GROUPS),
    View(name="expected_by_members", sql=_EXPECTED, empty_unless=_OF_GROUPS),
    View(name="passed_by_groups", sql=_PASSED, empty_unless=_OF_GROUPS),
    View(name="seen_by_clients", sql=_SEEN, empty_unless=("client_record", "f", "read")),
)

_TABLES = ("client_record", "partition_event", "replica_log", "raft_event")

RULES = (
    Rule(
        id="F7",
        title="Positions of consumers do not go back",
        statement="Between two assignments the offsets at which a consumer fetches a partition do "
        "not fall.",
        source="KAFKA-2334; Jepsen, Kafka workload: nonmonotonic poll",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="progress_of_members",
                when="position_before is not null",
                bad="reached < position_before",
                message="a consumer went back to offset {number}, which it fetched from broker "
                "{broker}",
                broker="broker",
                number="reached",
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
        statement="A fetch of a consumer returns the records of a partition from its offset on "
        "without a gap, and the next one begins no later than behind them.",
        source="Jepsen, Kafka workload: poll skip",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="expected_by_members",
                when="true",
                bad="next_offset < reached",
                message="a consumer came to offset {number} on broker {broker} and had skipped "
                "records before it",
                broker="broker",
                number="reached",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="H8",
        title="No record is seen at two offsets",
        statement="A record of a producer with an id, by its epoch and sequence number, is seen at "
        "one offset.",
        source="KIP-98; Jepsen, Kafka workload: duplicate",
        evidence=Evidence.TRACE,
        tables=("client_record", "partition_event", "raft_event"),
        checks=(
            Check(
                view="seen_by_clients",
                when="true",
                bad="first_offset <> last_offset",
                message="clients saw the record at offset {number} at another offset as well",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
)
