"""Members of groups: what they own, what they commit, and what of it they are given back."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

# Each commit and each fetch of a group's offset, at the event that counts: a commit when it was
# acknowledged, a fetch when it was sent. A group that was deleted, or offsets of it, show nothing.
_OFFSETS = """
select *, last(committed_offset, true) over (
    partition by run, group_id, topic_id, part order by at rows between unbounded preceding
    and 1 preceding) as last_committed,
  last(committed_offset, true) over (
    partition by run, group_id, topic_id, part order by 0 - at rows between unbounded preceding
    and 1 preceding) as next_committed
from (
  select r.run, r.seq, r.f, r.group_id, r.topic_id, r.topic, r.part, r.broker, r.log_offset,
    r.record_offset as fetched_offset,
    case when r.f = 'commit' then r.record_offset end as committed_offset,
    case when r.f = 'commit' then r.seq else r.send_seq end as at
  from returned_to_clients r
  left join (select distinct run, group_id from client_record where f = 'forget') d
    on r.run = d.run and r.group_id = d.group_id
  where r.f in ('commit', 'committed') and d.group_id is null
)
"""

# Each partition that a member was given, with the first and the last member to have it then.
_OWNED = """
select *,
  min(member_id) over (partition by run, group_id, generation, topic_id, part) as one_owner,
  max(member_id) over (partition by run, group_id, generation, topic_id, part) as other_owner
from returned_to_clients where f = 'own'
"""

VIEWS = (
    View(name="offsets_of_groups", sql=_OFFSETS, empty_unless=("client_record", "f", "committed")),
    View(name="owned_by_members", sql=_OWNED, empty_unless=("client_record", "f", "own")),
)

RULES = (
    Rule(
        id="H1",
        title="Committed offsets are not forgotten",
        statement="The offset that a group fetches is not below the last one whose commit was "
        "acknowledged before, unless a later commit set it.",
        source="KIP-211, KIP-709; OffsetMetadataManager.fetchOffsets; Jepsen: stale read",
        evidence=Evidence.TRACE,
        tables=("client_record", "partition_event", "raft_event"),
        checks=(
            Check(
                view="offsets_of_groups",
                when="f = 'committed' and last_committed is not null",
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
        tables=("client_record", "partition_event", "raft_event"),
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
