"""Rules over the history of one partition: who leads, who is in sync, how it recovers.

The view folds the records of a partition in order: a field that a record leaves out keeps its
value, so a state is ``last(field, ignore nulls)`` over a running window, and the state before is
the same window without the row itself.
"""

from __future__ import annotations

from minicluster.verify.rules.model import FROM_3_2, Check, Evidence, Rule

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

# Whether there is such a partition: between its PartitionRecord and the end of its topic.
_ALIVE = "case when kind in ('Partition', 'RemoveTopic') then kind = 'Partition' end"

VIEW = f"""
select run, offset, pos, op, kind, judged, traced, failures_told, topic, topic_id, part, mv, elr_on,
  min_isr,
  leader_epoch, partition_epoch,
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
DERIVED = """
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

_ISR_GREW_IN_RECOVERY = Check(
    group="partition",
    when="change and p_rec = 1",
    bad="size(isr) > greatest(1, size(p_isr)) and rec <> 0",
    message="the ISR grew from {old} to {new} while the partition is still RECOVERING",
    old="p_isr",
    new="isr",
)

RULES = (
    Rule(
        id="C1",
        title="A recovering partition has one ISR member",
        statement="RECOVERING means at most one ISR member; none only with ELR and no leader.",
        source="KIP-704; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_2,
        online=True,
        checks=(
            Check(
                group="partition",
                when="state and final and rec = 1",
                bad="size(isr) > 1 or (size(isr) = 0 and not (elr_on and leader = -1))",
                message="the partition is RECOVERING with ISR {new}",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="C2",
        title="No ISR expansion before recovery is over",
        statement="While RECOVERING the ISR does not grow, unless the same record says RECOVERED.",
        source="KIP-704; ReplicationControlManager.validateAlterPartitionData",
        evidence=Evidence.LOG,
        promised_from=FROM_3_2,
        online=True,
        checks=(_ISR_GREW_IN_RECOVERY,),
    ),
    Rule(
        id="C3",
        title="Recovery begins with an election of a lone leader",
        statement="RECOVERED turns into RECOVERING only by a record that elects a leader and "
        "leaves it alone in the ISR.",
        source="KIP-704; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_2,
        online=True,
        checks=(
            Check(
                group="partition",
                when="change and d_rec = 1 and p_rec = 0",
                bad="not (coalesce(d_leader, -1) >= 0 and isr = array(d_leader))",
                message="RECOVERING begins without electing leader {broker} alone into the "
                "ISR {new}",
                broker="coalesce(d_leader, -1)",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="C4",
        title="An unclean election is marked",
        statement="A leader elected from outside ISR and ELR is alone in the ISR and the "
        "partition is RECOVERING.",
        source="KIP-704; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_2,
        online=True,
        checks=(
            Check(
                group="partition",
                when="unclean",
                bad="not (rec = 1 and isr = array(leader))",
                message="broker {broker} was elected from outside the ISR {old}; the ISR is now "
                "{new} and recovery state {number}",
                broker="leader",
                old="p_isr",
                new="isr",
                number="rec",
            ),
        ),
    ),
    Rule(
        id="E10",
        title="The leader is in the ISR",
        statement="The leader is a member of the ISR, or there is none.",
        source="KIP-497; PartitionRegistration",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="partition",
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
        title="ISR, adding and removing replicas are replicas",
        statement="ISR, adding and removing replicas are among the replicas, the ISR has no "
        "member twice, adding and removing have none in common.",
        source="KIP-455; PartitionRegistration, PartitionReassignmentReplicas",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="partition",
                when="state",
                bad="size(array_except(isr, replicas)) > 0 "
                "or size(array_distinct(isr)) <> size(isr)",
                message="the ISR {new} is no set of members of the replicas {old}",
                old="replicas",
                new="isr",
            ),
            Check(
                group="partition",
                when="state",
                counts=False,
                bad="size(array_except(concat(adding, removing), replicas)) > 0",
                message="adding and removing replicas {new} are not all among the replicas {old}",
                old="replicas",
                new="concat(adding, removing)",
            ),
            Check(
                group="partition",
                when="state",
                counts=False,
                bad="arrays_overlap(adding, removing)",
                message="replicas {new} are both added and removed (a defect of Kafka 4.3: a "
                "reassignment that replaces another)",
                new="array_intersect(adding, removing)",
            ),
        ),
    ),
    Rule(
        id="E12",
        title="A clean candidate remains",
        statement="Without ELR the ISR is never empty; with ELR an empty ISR leaves an eligible or "
        "a last known leader.",
        source="KIP-966; PartitionChangeBuilder.build",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="partition",
                when="state",
                bad="size(isr) = 0 and d_isr is not null and not elr_on",
                message="the ISR became empty although eligible leader replicas are off",
            ),
            Check(
                group="partition",
                when="state and elr_on",
                counts=False,
                bad="size(isr) = 0 and size(elr) = 0 and size(last_elr) = 0 and kind <> 'ClearElr'",
                message="ISR, eligible leader replicas and last known leader are all empty",
            ),
            Check(
                group="partition",
                when="kind = 'ClearElr' and elr_on",
                counts=False,
                bad="size(isr) = 0 and size(elr) = 0 and size(last_elr) = 0",
                message="a ClearElrRecord took the last candidates of a partition with an empty "
                "ISR (a defect of Kafka 4.0-4.3)",
            ),
        ),
    ),
    Rule(
        id="E13",
        title="Eligible leader replicas are what they say",
        statement="ELR and ISR are disjoint, ELR and last known leaders are replicas, and there is "
        "no ELR while the ISR has min.insync.replicas members.",
        source="KIP-966; PartitionChangeBuilder.maybePopulateTargetElr",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="partition",
                when="state and elr_on and (size(elr) > 0 or size(last_elr) > 0)",
                bad="arrays_overlap(elr, isr)",
                message="eligible leader replicas {new} and ISR {old} overlap",
                old="isr",
                new="elr",
            ),
            Check(
                group="partition",
                when="state and elr_on and (size(elr) > 0 or size(last_elr) > 0)",
                counts=False,
                bad="size(array_except(concat(elr, last_elr), replicas)) > 0",
                message="eligible or last known leaders {new} are not all among the replicas {old} "
                "(a finished reassignment leaves them so in Kafka 4.0-4.3)",
                old="replicas",
                new="concat(elr, last_elr)",
            ),
            Check(
                group="partition",
                when="change and elr_on and d_isr is not null and min_isr is not null",
                counts=False,
                bad="size(isr) >= min_isr and size(elr) > 0",
                message="eligible leader replicas {new} remain although the ISR {old} has "
                "min.insync.replicas = {number} members",
                old="isr",
                new="elr",
                number="min_isr",
            ),
        ),
    ),
    Rule(
        id="E14",
        title="No partition change changes nothing",
        statement="Without ELR a PartitionChangeRecord changes something or restates the leader.",
        source="PartitionChangeBuilder.changeRecordIsNoOp",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="partition",
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
        id="E28",
        title="A reassignment ends when its new replicas are in sync",
        statement="Whoever was being added and stays is in the ISR, before the record or after it, "
        "that ends the reassignment.",
        source="KIP-455, KAFKA-15665; PartitionReassignmentReplicas.maybeCompleteReassignment",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="partition",
                when="change and (size(p_adding) > 0 or size(p_removing) > 0) "
                "and size(adding) = 0 and size(removing) = 0",
                bad="size(array_except(array_intersect(p_adding, replicas), "
                "concat(p_isr, isr))) > 0",
                message="the reassignment ended although {old} were not all in the ISR {new}",
                old="array_intersect(p_adding, replicas)",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="E16",
        title="The leader epoch moves when it should",
        statement="Expansion keeps the leader epoch, removal of a replica bumps it, a shrink bumps "
        "it only below 3.6-IV0.",
        source="KAFKA-15021; PartitionChangeBuilder.triggerLeaderEpochBump…IfNeeded",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="partition",
                when="change and "
                "(d_isr is not null or d_replicas is not null or d_leader = p_leader)",
                bad="d_leader = p_leader and d_leader >= 0 and not replicas_removed "
                "and not (mv < 12 and shrank)",
                message="leader {broker} was restated (ISR {old} to {new}) with nothing that "
                "bumps its epoch",
                broker="d_leader",
                old="p_isr",
                new="isr",
            ),
            Check(
                group="partition",
                when="change and replicas_removed",
                counts=False,
                bad="d_leader is null",
                message="replicas {old} became {new} without a new leader epoch",
                old="p_replicas",
                new="replicas",
            ),
            Check(
                group="partition",
                when="change and mv < 12 and shrank",
                counts=False,
                bad="d_leader is null",
                message="the ISR shrank from {old} to {new} without a new leader epoch, which "
                "below 3.6-IV0 it needs",
                old="p_isr",
                new="isr",
            ),
        ),
    ),
)

DIRECTORIES = Check(
    group="partition",
    when="state and size(directories) > 0",
    bad="size(directories) <> size(replicas)",
    message="the replicas {new} have another number of directories: {number}",
    new="replicas",
    number="size(directories)",
)

# The part of E17 that one record shows; whether the ISR is the active part, another group says.
CREATION = Check(
    group="partition",
    when="judged and kind = 'Partition' and p_alive is null",
    bad="leader_epoch <> 0 or partition_epoch <> 0 or size(isr) = 0 or leader <> get(isr, 0)",
    message="a new partition begins with leader {broker}, ISR {new}, epochs not both 0 or a leader "
    "that is not the first of the ISR",
    broker="leader",
    new="isr",
)

UNKNOWN_PARTITION = Check(
    group="partition",
    when="judged and kind in ('Change', 'RemoveTopic')",
    bad="not coalesce(p_alive, false)",
    message="a record changes a partition that does not exist",
)
