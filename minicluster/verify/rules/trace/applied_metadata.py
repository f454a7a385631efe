"""Metadata as brokers apply it: the state that they act on, beside the committed one."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.trace.windows import AN_IMAGE, UP_TO_HERE

# Each partition state that a broker applied, beside the committed one of that partition epoch.
_APPLIED = """
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

# A published image counts for the events of its broker from this long after it. The replicas of a
# broker that comes back take their first image up once the controller calls it caught up, which
# a lost heartbeat may delay: their first event shows that they have.
_SETTLED_MS = 1000

_IMAGES = f"""
select *,
  last({AN_IMAGE}, true) over (
    partition by run, broker order by seq {UP_TO_HERE}) as image,
  last({AN_IMAGE}, true) over (
    partition by run, broker, incarnation order by vt
    range between unbounded preceding and {_SETTLED_MS} preceding) as settled_image
from (
  select run, vt, seq, broker, incarnation, topic, topic_id, part, kind, leader_epoch,
    partition_epoch, leo, maximal_isr, false as published, cast(null as bigint) as offset,
    cast(null as bigint) as first_image
  from partition_event
  where kind = 'delete' or (maximal_isr is not null and kind in ('append', 'hw', 'ack', 'stop'))
  union all
  select distinct l.run, vt, seq, l.broker, l.incarnation, topic, topic_id, part, 'end', null, null,
    null, null, false, null, null
  from replica_log l
  join (select distinct run, broker, incarnation from partition_event) a
    on l.run = a.run and l.broker = a.broker and l.incarnation = a.incarnation
  where at = 'end'
  union all
  select run, vt, seq, node, incarnation, null, null, null, null, null, null, null, null, true,
    offset, first_image
  from publish
)
"""

# Each action of a broker on a replica, beside the partition's state in its own image. A replica at
# the end of the run is held against the newest image, and against a removal that has settled.
_ACTIONS = f"""
select * from (
  select *, last(state, true) over (
    partition by run, topic_id, part order by at, rank {UP_TO_HERE}) as seen
  from (
    select run, seq, broker, topic, topic_id, part, kind, leader_epoch, partition_epoch,
      image.offset as at, settled, 1 as rank,
      cast(null as struct<live: boolean, leader: int, le: bigint, pe: bigint,
        replicas: array<int>, since: bigint>) as state
    from (select * except (image, settled_image),
        case when kind in ('delete', 'end') then image else settled_image end as image,
        case when settled_image.offset >= settled_image.first then settled_image.offset end
          as settled
      from ({_IMAGES}))
    where not published and image.offset >= image.first
    union all
    select run, null, null, topic, topic_id, part, null, null, null, pos, null, 0,
      named_struct('live', kind <> 'RemoveTopic', 'leader', leader, 'le', le, 'pe', pe,
        'replicas', replicas, 'since', pos)
    from partition_states
  )
) where rank = 1
"""


_ASSIGNED = "coalesce(seen.live and array_contains(seen.replicas, cast(broker as int)), false)"

VIEWS = (
    View(name="applied_states", sql=_APPLIED),
    View(name="replica_actions", sql=_ACTIONS),
)

RULES = (
    Rule(
        id="B5",
        title="Each partition change adds one to the partition epoch",
        statement="The partition epoch that a broker applies, and that a leader receives in a "
        "response, is the epoch of a committed record, one above the epoch before.",
        source="KIP-497; PartitionRegistration.merge",
        evidence=Evidence.TRACE,
        tables=("partition_event", "rpc"),
        checks=(
            Check(
                view="applied_states",
                when="true",
                bad="pe is null",
                message="broker {broker} applied a partition epoch that no record has (event "
                "{number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
            ),
            Check(
                view="proposals",
                when="written is not null and response_error = 0",
                bad="new_state.pe <> p_pe + 1",
                message="the response to AlterPartition {number} of broker {broker} has "
                "another partition epoch than its record",
                broker="src",
                number="id",
                offset="offset",
                counts=False,
            ),
        ),
    ),
    Rule(
        id="E15",
        title="Each record that names a leader adds one to the leader epoch",
        statement="Brokers apply, and leaders receive, each partition state with the leader "
        "epoch that the log gives it: one more for each record that names a leader.",
        source="KIP-497, KIP-631; PartitionRegistration.merge",
        evidence=Evidence.TRACE,
        tables=("partition_event", "rpc"),
        checks=(
            Check(
                view="applied_states",
                when="pe is not null",
                bad="le <> leader_epoch",
                message="broker {broker} applied leader epoch {number}, which is not that of "
                "the log",
                broker="broker",
                number="leader_epoch",
                offset="offset",
            ),
            Check(
                view="proposals",
                when="written is not null and response_error = 0",
                bad="new_state.le <> le",
                message="the response to AlterPartition {number} of broker {broker} has "
                "another leader epoch than the log",
                broker="src",
                number="id",
                offset="offset",
                counts=False,
            ),
        ),
    ),
    Rule(
        id="E36",
        title="Brokers act as their metadata image has it",
        statement="A broker leads the partitions that its metadata makes it lead and no "
        "others, even while it shuts down, and its own epochs of a partition are at least those "
        "of its metadata.",
        source="KAFKA-14296, KAFKA-13858; ReplicaManager.applyDelta",
        evidence=Evidence.TRACE,
        tables=("partition_event", "publish", "replica_log"),
        checks=(
            Check(
                view="applied_states",
                when="kind <> 'isr_commit' and pe is not null",
                bad="(kind = 'become_leader') <> (leader = broker)",
                message="broker {broker} became leader or follower against the metadata "
                "(event {number})",
                broker="broker",
                number="seq",
                offset="offset",
            ),
            Check(
                view="replica_actions",
                when="kind in ('append', 'hw', 'ack', 'stop') and seen is not null",
                bad="seen.live and seen.le > leader_epoch",
                message="broker {broker} acts as leader of an epoch older than that of its "
                "own image (event {number})",
                broker="broker",
                number="seq",
                offset="at",
            ),
            Check(
                view="replica_actions",
                when="kind in ('append', 'hw', 'ack', 'stop') and seen is not null",
                counts=False,
                bad="seen.live and seen.leader = broker and seen.le = leader_epoch "
                "and seen.pe > partition_epoch",
                message="leader {broker} is at a partition epoch older than that of its own image "
                "(event {number})",
                broker="broker",
                number="seq",
                offset="at",
            ),
        ),
    ),
    Rule(
        id="E37",
        title="Brokers keep the replicas that are assigned to them, and no others",
        statement="A broker deletes only replicas that its image does not assign to it, and "
        "keeps no replica that is not assigned.",
        source="KAFKA-13127, KAFKA-14616; ReplicaManager.applyDelta, "
        "LogManager.isStrayKraftReplica",
        evidence=Evidence.TRACE,
        tables=("partition_event", "publish", "replica_log"),
        checks=(
            Check(
                view="replica_actions",
                when="kind = 'delete'",
                bad=_ASSIGNED,
                message="broker {broker} deleted a replica that is assigned to it (event {number})",
                broker="broker",
                number="seq",
                offset="at",
            ),
            Check(
                view="replica_actions",
                when="kind = 'end' and settled is not null",
                bad=f"not {_ASSIGNED} and coalesce(seen.since <= settled, true)",
                message="broker {broker} kept a replica that is not assigned to it",
                broker="broker",
                number="seq",
                offset="at",
            ),
        ),
    ),
)
