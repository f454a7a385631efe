"""Members of groups: what they own, what they commit, and what of it they are given back."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

# What sets the offset of a group, at the event that counts: a commit when it was acknowledged, also
# in a transaction, and the coordinator's deletion, which leaves none (-1). A transaction that was
# aborted sets nothing; one that was committed shows to fetches of stable offsets, once its end was
# acknowledged (``shown``).
_SET = """
select run, seq, group_id, topic_id, part, send_seq, record_offset, shown from (
  select *, case when f = 'pending' then ended.seq else seq end as shown
  from (
    select *, last(case when f = 'end' then named_struct('seq', seq, 'committed', committed) end,
        true) over (partition by run, producer_id, producer_epoch order by 0 - seq
        rows between unbounded preceding and 1 preceding) as ended
    from (
      select run, seq, f, group_id, topic_id, part, send_seq, record_offset, producer_id,
        producer_epoch, cast(null as boolean) as committed
      from returned_to_clients where f in ('commit', 'pending')
      union all
      select run, seq, f, null, null, part, null, null, producer_id, producer_epoch, committed
      from client_record where f = 'end'
    )
  ) where f in ('commit', 'pending') and (f = 'commit' or coalesce(ended.committed, true))
)
union all
select e.run, e.seq, e.group_id, n.topic_id, e.part, e.seq, -1, e.seq
from group_event e
join (select run, topic, any_value(topic_id) as topic_id from partition_event
  group by run, topic having count(distinct topic_id) = 1) n
  on e.run = n.run and e.topic = n.topic
where e.kind = 'forget'
"""

# Each fetch of a group's offset, at the event when it was sent, beside what set the offset before
# and what did next.
_OFFSETS = """
select run, seq, f, group_id, topic_id, topic, part, broker, log_offset, fetched_offset,
  last_set.committed as last_committed, next_committed,
  coalesce(last_set.shown < at, false)
    and (last_set.shown = last_set.seq or coalesce(stable, false))
    and not coalesce(forgotten > last_set.sent, false) as is_promised
from (
  select *,
    last(case when f is null then named_struct('committed', committed_offset, 'seq', seq,
        'sent', send_seq, 'shown', shown) end, true) over (
      partition by run, group_id, topic_id, part order by at
      rows between unbounded preceding and 1 preceding) as last_set,
    last(committed_offset, true) over (
      partition by run, group_id, topic_id, part order by 0 - at
      rows between unbounded preceding and 1 preceding) as next_committed,
    max(case when committed_offset = -1 then seq end) over (
      partition by run, group_id, topic_id, part order by seq
      rows between unbounded preceding and current row) as forgotten
  from (
    select run, seq, f, group_id, topic_id, topic, part, broker, log_offset, stable,
      record_offset as fetched_offset, cast(null as bigint) as committed_offset, send_seq as at,
      send_seq, cast(null as bigint) as shown
    from returned_to_clients where f = 'committed'
    union all
    select run, seq, null, group_id, topic_id, null, part, null, null, null, null, record_offset,
      seq, send_seq, shown
    from offsets_set
  )
) where f = 'committed'
"""

# Each partition that a member was given, with the first and the last member to have it then. A
# group that has ended may come again, with its first generation.
_OWNED = """
select *,
  min(member_id) over (
    partition by run, group_id, lives, generation, topic_id, part) as one_owner,
  max(member_id) over (
    partition by run, group_id, lives, generation, topic_id, part) as other_owner
from (
  select *, count(ended) over (partition by run, group_id order by seq
      rows between unbounded preceding and current row) as lives
  from (
    select run, seq, f, group_id, member_id, generation, topic_id, topic, part, broker,
      log_offset, cast(null as bigint) as ended
    from returned_to_clients where f = 'own'
    union all
    select run, seq, null, group_id, null, null, null, null, part, null, null, seq
    from group_event where kind = 'end'
  )
) where f = 'own'
"""

VIEWS = (
    View(name="offsets_set", sql=_SET, empty_unless=("client_record", None, None)),
    View(name="offsets_of_groups", sql=_OFFSETS, empty_unless=("client_record", None, None)),
    View(name="owned_by_members", sql=_OWNED, empty_unless=("client_record", "f", "own")),
)

RULES = (
    Rule(
        id="H1",
        title="Committed offsets are not forgotten",
        statement="The offset that a group fetches is not below the last one whose commit, or that "
        "of its transaction, was acknowledged before, unless it was set later, is expired or was "
        "deleted.",
        source="KIP-211, KIP-447, KIP-709; OffsetMetadataManager.fetchOffsets; Jepsen: stale read",
        evidence=Evidence.TRACE,
        tables=("client_record", "group_event", "partition_event", "raft_event"),
        checks=(
            Check(
                view="offsets_of_groups",
                when="is_promised",
                bad="fetched_offset < last_committed and not (fetched_offset <=> next_committed)",
                message="broker {broker} returned a committed offset of {number} to a group after "
                "it had acknowledged a higher one",
                broker="broker",
                number="fetched_offset",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="H2",
        title="A partition has one owner in a group",
        statement="In one generation of a classic group, or at one member epoch of a consumer "
        "group, a partition is assigned to one member.",
        source="KIP-848; ConsumerCoordinator, CurrentAssignmentBuilder",
        evidence=Evidence.TRACE,
        tables=("client_record", "group_event", "partition_event", "raft_event"),
        checks=(
            Check(
                view="owned_by_members",
                when="true",
                bad="one_owner <> other_owner",
                message="two members own the partition in generation {number} of their group",
                broker="broker",
                number="generation",
                offset="log_offset",
            ),
        ),
    ),
)
