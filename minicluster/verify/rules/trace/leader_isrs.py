"""ISRs as the controller commits them and as leaders act on them, each beside the other."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.trace.windows import AN_IMAGE, BEFORE, UP_TO_HERE

_FETCH_EPOCH = (
    "get(try_element_at(from_json(follower_leos, 'map<string, array<bigint>>'), "
    "cast(about as string)), 2)"
)

# Each replica that a leader proposes to add, beside its state in the image that the leader's
# broker had published by then.
_ADDITIONS = f"""
select * from (
  select *, last(state, true) over (
    partition by run, about order by at, rank {UP_TO_HERE}) as seen
  from (
    select run, seq, broker, topic, part, isr, maximal_isr, image.offset as at, 1 as rank,
      explode(array_except(maximal_isr, isr)) as about, follower_leos,
      cast(null as struct<active: boolean, epoch: bigint>) as state
    from (
      select *, last({AN_IMAGE}, true) over (
        partition by run, broker order by seq {UP_TO_HERE}) as image
      from (
        select run, seq, broker, topic, part, isr, maximal_isr, follower_leos, kind,
          false as published, cast(null as bigint) as offset, cast(null as bigint) as first_image
        from partition_event where kind = 'isr_pending'
        union all
        select run, seq, node, null, null, null, null, null, 'publish', true, offset, first_image
        from publish
      )
    ) where not published and image.offset >= image.first
    union all
    select run, null, null, null, null, null, null, pos, 0, broker, null,
      named_struct('active', active, 'epoch', epoch)
    from broker_states
  )
) where rank = 1
"""

# The event number by which each partition state was committed: the first high watermark above it.
_COMMITS = f"""
select * from (
  select *, min(hw_seq) over (partition by run order by above desc, rank {UP_TO_HERE}) as seq
  from (
    select run, offset as above, 0 as rank, seq as hw_seq, cast(null as bigint) as offset,
      null as topic, null as topic_id, null as part, null as isr, null as leader, null as le,
      null as candidates, null as unclean, null as may_stay
    from raft_event where kind = 'hw'
    union all
    select run, offset + 1, 1, null, offset, topic, topic_id, part, isr, leader, le,
      array_union(isr, coalesce(elr, array())), unclean, mv < leaves_from
    from partition_states where state
  )
) where rank = 1 and seq is not null
"""

# A partition's committed states and its leaders' events, each beside the latest of the other.
_LEADER_ISRS = f"""
select *,
  last(committed, true) over w as controller,
  last(assumed, true) over w as replica
from (
  select run, seq, 'commit' as kind, offset, topic, topic_id, part,
    cast(null as int) as broker, cast(leader as bigint) as leader, cast(le as bigint) as le,
    cast(isr as array<bigint>) as isr, cast(null as array<bigint>) as maximal_isr,
    named_struct('isr', cast(isr as array<bigint>), 'le', cast(le as bigint),
      'leader', cast(leader as bigint), 'offset', offset) as committed,
    cast(null as struct<maximal: array<bigint>, le: bigint, broker: bigint>) as assumed
  from commits
  union all
  select run, seq, kind, null, topic, topic_id, part, broker, broker, leader_epoch, isr,
    maximal_isr, null,
    named_struct('maximal', maximal_isr, 'le', leader_epoch, 'broker', broker)
  from partition_event where maximal_isr is not null
)
window w as (partition by run, topic_id, part order by seq, offset {UP_TO_HERE})
"""

# The log ends of replicas, beside the replicas that may be elected and the highest high watermark.
# A partition has lost records by an unclean election, with its last ISR member, or under Kafka 3.x
# by a new incarnation that stays in the ISR with a shorter log.
_ELECTABLE = f"""
select *, coalesce(bool_or(broken) over (
    partition by run, topic_id, part order by seq, log_offset {UP_TO_HERE}), false) as lossy
from (
  select *, (coalesce(unclean, false) or (coalesce(leo < true_hw, false) and (
      (kind = 'become_leader' and size(candidates) <= 1)
      or (is_first and coalesce(may_stay, false)
        and kind in ('become_leader', 'become_follower'))))) as broken
  from (
    select *,
      last(committed_candidates, true) over (
        partition by run, topic_id, part order by seq, log_offset {UP_TO_HERE}) as candidates,
      last(stays, true) over (
        partition by run, topic_id, part order by seq, log_offset {UP_TO_HERE}) as may_stay,
      row_number() over (
        partition by run, topic_id, part, broker, incarnation order by seq) = 1 as is_first,
      max(hw) over (partition by run, topic_id, part order by seq, log_offset {BEFORE}) as true_hw
    from (
      select run, seq, topic, topic_id, part, null as broker, 'commit' as kind,
        offset as log_offset, null as leo, null as leader_epoch,
        null as hw, cast(candidates as array<bigint>) as committed_candidates, unclean,
        may_stay as stays, null as incarnation
      from commits
      union all
      select run, seq, topic, topic_id, part, broker, kind, null, leo, leader_epoch,
        case when kind = 'hw' and maximal_isr is not null then hw_new end, null, null, null,
        incarnation
      from partition_event where kind not in ('stop', 'delete', 'truncate')
    )
  )
)
"""


VIEWS = (
    View(
        name="isr_additions",
        sql=_ADDITIONS,
        empty_unless=("partition_event", "kind", "isr_pending"),
    ),
    View(name="commits", sql=_COMMITS),
    View(name="leader_isrs", sql=_LEADER_ISRS),
    View(name="electable_replicas", sql=_ELECTABLE),
)

RULES = (
    Rule(
        id="A5",
        title="Leaders propose only eligible replicas",
        statement="A leader never proposes to add a replica that is fenced, in controlled "
        "shutdown or of another broker epoch in the image that its own broker has published.",
        source="KAFKA-14140, KIP-841; Partition.isReplicaIsrEligible",
        evidence=Evidence.TRACE,
        tables=("partition_event", "publish"),
        checks=(
            Check(
                view="isr_additions",
                when="true",
                bad="not coalesce(seen.active, false) "
                f"or coalesce({_FETCH_EPOCH} not in (-1, seen.epoch), false)",
                message="the leader proposes broker {broker} for the ISR {new} (event "
                "{number}), which is ineligible in its own image at offset {offset}",
                offset="at",
                broker="about",
                new="maximal_isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="B1",
        title="A leader's maximal ISR contains the committed ISR",
        statement="The committed ISR is a subset of the maximal ISR of the leader of that "
        "epoch; without a change in flight the leader's ISR and maximal ISR are equal.",
        source="KIP-497; Partition.scala PartitionState.maximalIsr",
        evidence=Evidence.TRACE,
        tables=("partition_event", "raft_event"),
        checks=(
            Check(
                view="leader_isrs",
                when="kind <> 'commit' and controller.le = le and controller.leader = leader",
                bad="size(array_except(controller.isr, maximal_isr)) > 0",
                message="leader {broker} has maximal ISR {new} (event {number}) while the "
                "committed ISR is {old}",
                offset="controller.offset",
                broker="broker",
                old="controller.isr",
                new="maximal_isr",
                number="seq",
            ),
            Check(
                view="leader_isrs",
                when="kind = 'commit' and replica.le = le and replica.broker = leader",
                counts=False,
                bad="size(array_except(isr, replica.maximal)) > 0",
                message="the controller committed ISR {new} while leader {broker} has "
                "maximal ISR {old}",
                broker="leader",
                old="replica.maximal",
                new="isr",
            ),
            Check(
                view="leader_isrs",
                when="kind in ('become_leader', 'isr_commit', 'isr_revert')",
                counts=False,
                bad="array_sort(isr) <> array_sort(maximal_isr)",
                message="leader {broker} has no ISR change in flight, but ISR {old} and "
                "maximal ISR {new} (event {number})",
                broker="broker",
                old="isr",
                new="maximal_isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="B3",
        title="Replicas that may be elected hold every committed record",
        statement="A running replica in the committed ISR or ELR holds every record below the "
        "highest high watermark, except after an unclean election or the loss of the last ISR "
        "member.",
        source="KIP-497, KIP-966; StrongISR",
        evidence=Evidence.TRACE,
        tables=("partition_event", "raft_event"),
        checks=(
            Check(
                view="electable_replicas",
                when="kind <> 'commit' and array_contains(candidates, broker) "
                "and size(candidates) > 1 and true_hw is not null and not lossy",
                bad="leo < true_hw",
                message="broker {broker} may be elected (ISR and ELR {new}) and its log ends "
                "below the high watermark {number}",
                broker="broker",
                number="true_hw",
                offset="cast(null as bigint)",
                new="candidates",
            ),
            Check(
                view="replica_events",
                when="kind in ('become_leader', 'become_follower') and last_kind <> 'delete'",
                bad="leo < last_leo",
                message="broker {broker} lost records without a truncation: its log ends at "
                "{number}",
                broker="broker",
                number="leo",
                offset="cast(null as bigint)",
                counts=False,
            ),
        ),
    ),
)
