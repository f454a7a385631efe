"""The history of each partition: leader, ISR, replicas, epochs.

The view folds the records of a partition in order. A field that a record leaves out keeps its
value, so a state is ``last(field, ignore nulls)`` over a running window, and the state before it is
the same window without the record itself.
"""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

FIELDS = (
    "isr",
    "leader",
    "replicas",
    "adding",
    "removing",
    "elr",
    "last_elr",
    "rec",
    "directories",
)

# Epochs count: a PartitionRecord sets them, a change that names a leader raises the leader epoch,
# every change raises the partition epoch.
_EPOCHS = """sum(case when kind = 'Partition' then leader_epoch
    when kind = 'Change' and leader is not null then 1 else 0 end) over {window} as {prefix}le,
  sum(case when kind = 'Partition' then partition_epoch
    when kind in ('Change', 'ClearElr') then 1 else 0 end) over {window} as {prefix}pe"""

# A partition exists from its PartitionRecord to the RemoveTopicRecord of its topic.
_ALIVE = "case when kind in ('Partition', 'RemoveTopic') then kind = 'Partition' end"

_FOLD = f"""
select run, offset, pos, op, kind, judged, traced, failures_in_log, leaves_from,
  topic, topic_id, part, mv, elr_on, min_isr, leader_epoch, partition_epoch,
  {", ".join(f"{name} as d_{name}" for name in FIELDS)},
  {", ".join(f"last({name}, true) over s as {name}" for name in FIELDS)},
  {", ".join(f"last({name}, true) over b as p_{name}" for name in FIELDS)},
  last({_ALIVE}, true) over s as alive,
  last({_ALIVE}, true) over b as p_alive,
  {_EPOCHS.format(window="s", prefix="")},
  {_EPOCHS.format(window="b", prefix="p_")},
  last(case when isr is not null then not elr_on or not judged
    or coalesce(size(adding) = 0, false) or coalesce(size(removing) = 0, false)
    when leader = -1 and not elr_on then true end, true) over s
    as may_keep,
  coalesce(lead(op) over w, {2**62}) as next_op,
  coalesce(lead(pos) over w, {2**62}) as next_pos
from partitions
window w as (partition by run, topic_id, part order by pos),
  s as (partition by run, topic_id, part order by pos
    rows between unbounded preceding and current row),
  b as (partition by run, topic_id, part order by pos
    rows between unbounded preceding and 1 preceding)
"""

# The names that the rules use; computed above the windows.
_STATES = """
select *,
  kind in ('Partition', 'Change', 'ClearElr') and coalesce(alive, false) as state,
  next_op <> op as final,
  judged and kind = 'Change' and coalesce(alive, false) as change,
  array_except(isr, coalesce(p_isr, array())) as added,
  size(array_except(coalesce(p_isr, array()), isr)) > 0 as shrank,
  size(array_except(coalesce(p_replicas, array()), replicas)) > 0 as replicas_removed,
  judged and kind = 'Change' and coalesce(alive, false)
    and d_leader >= 0 and not array_contains(coalesce(p_isr, array()), d_leader)
    and not array_contains(coalesce(p_elr, array()), d_leader)
    and not ((size(p_adding) > 0 or size(p_removing) > 0) and size(adding) = 0
      and size(removing) = 0 and array_contains(isr, d_leader)) as unclean
from ({view})
"""

DIRECTORIES = Check(
    view="partition_states",
    when="state and size(directories) > 0",
    bad="size(directories) <> size(replicas)",
    message="the replicas {new} have {number} directories",
    new="replicas",
    number="size(directories)",
)

# The part of E17 that one record shows; the states of brokers are another view.
CREATION = Check(
    view="partition_states",
    when="judged and kind = 'Partition' and p_alive is null",
    bad="leader_epoch <> 0 or partition_epoch <> 0 or size(isr) = 0 or leader <> get(isr, 0)",
    message="a new partition begins with leader {broker} and ISR {new}: its epochs are not "
    "0, or the leader is not the first ISR member",
    broker="leader",
    new="isr",
)

UNKNOWN_PARTITION = Check(
    view="partition_states",
    when="judged and kind in ('Change', 'RemoveTopic')",
    bad="not coalesce(p_alive, false)",
    message="a record changes a partition that does not exist",
)


VIEWS = (View(name="partition_states", sql=_STATES.format(view=_FOLD)),)

RULES = (
    Rule(
        id="E10",
        title="The leader is in the ISR",
        statement="The leader is a member of the ISR, or there is no leader.",
        source="KIP-497; PartitionRegistration",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="state",
                bad="leader <> -1 and not array_contains(isr, leader)",
                message="leader {broker} is not in the ISR {new}",
                broker="leader",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="E11",
        title="ISR, adding and removing replicas are subsets of the replicas",
        statement="ISR, adding and removing replicas are subsets of the replicas, the ISR has "
        "no member twice, and no replica is both adding and removing.",
        source="KIP-455; PartitionRegistration, PartitionReassignmentReplicas",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="state",
                bad="size(array_except(isr, replicas)) > 0 "
                "or size(array_distinct(isr)) <> size(isr)",
                message="the ISR {new} is no subset of the replicas {old}, or has a member twice",
                old="replicas",
                new="isr",
            ),
            Check(
                view="partition_states",
                when="state",
                counts=False,
                bad="size(array_except(concat(adding, removing), replicas)) > 0",
                message="adding and removing replicas {new} are not all replicas {old}",
                old="replicas",
                new="concat(adding, removing)",
            ),
            Check(
                view="partition_states",
                when="state",
                counts=False,
                bad="arrays_overlap(adding, removing)",
                message="replicas {new} are both adding and removing (a bug of Kafka 4.3: a "
                "reassignment that replaces another)",
                new="array_intersect(adding, removing)",
            ),
        ),
    ),
    Rule(
        id="E14",
        title="Every PartitionChangeRecord changes something",
        statement="Without ELR a PartitionChangeRecord changes a field or names the leader again.",
        source="PartitionChangeBuilder.changeRecordIsNoOp",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="change and not elr_on",
                bad="d_leader is null and "
                + " and ".join(
                    f"(d_{name} is null or d_{name} <=> p_{name})"
                    for name in FIELDS
                    if name != "leader"
                ),
                message="the record changes nothing (ISR {new})",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="E16",
        title="The leader epoch is bumped exactly when it must be",
        statement="Expanding the ISR keeps the leader epoch, removing a replica bumps it, and "
        "shrinking the ISR bumps it only below 3.6-IV0.",
        source="KAFKA-15021; PartitionChangeBuilder.triggerLeaderEpochBump…IfNeeded",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="change and "
                "(d_isr is not null or d_replicas is not null or d_leader = p_leader)",
                bad="d_leader = p_leader and d_leader >= 0 and not replicas_removed "
                "and not (mv < 12 and shrank)",
                message="the record names leader {broker} again (ISR {old} to {new}), which "
                "bumps the leader epoch without a reason",
                broker="d_leader",
                old="p_isr",
                new="isr",
            ),
            Check(
                view="partition_states",
                when="change and replicas_removed",
                counts=False,
                bad="d_leader is null",
                message="the replicas changed from {old} to {new} without a leader epoch bump",
                old="p_replicas",
                new="replicas",
            ),
            Check(
                view="partition_states",
                when="change and mv < 12 and shrank",
                counts=False,
                bad="d_leader is null",
                message="the ISR shrank from {old} to {new} without a leader epoch bump, "
                "which is needed below 3.6-IV0",
                old="p_isr",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="E28",
        title="A reassignment completes when its new replicas are in sync",
        statement="When a reassignment completes, every adding replica that stays is in the "
        "ISR, before the completing record or after it.",
        source="KIP-455, KAFKA-15665; PartitionReassignmentReplicas.maybeCompleteReassignment",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="change and (size(p_adding) > 0 or size(p_removing) > 0) "
                "and size(adding) = 0 and size(removing) = 0",
                bad="size(array_except(array_intersect(p_adding, replicas), "
                "concat(p_isr, isr))) > 0",
                message="the reassignment completed although its adding replicas {old} are "
                "not all in the ISR {new}",
                old="array_intersect(p_adding, replicas)",
                new="isr",
            ),
        ),
    ),
)
