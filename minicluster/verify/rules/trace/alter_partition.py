"""AlterPartition requests beside the partition states that they met and made (KIP-497)."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

_ACCEPTED = "error = 'NONE' and response_error in (0, 108)"  # 108: NEW_LEADER_ELECTED, and a record

# Before version 2 a leader that lost its leadership gets FENCED_LEADER_EPOCH (74) for a change with
# a record.
_REJECTED = (
    "(error <> 'NONE' or (response_error is not null and response_error not in (0, 108) "
    "and not (version < 2 and response_error = 74)))"
)

_EFFECTS = """
select w.id, s.run, s.offset, s.topic, s.topic_id, s.part, s.p_leader, s.p_le, s.p_pe, s.le, s.pe,
  s.leader, s.isr, s.adding, s.removing, s.p_adding, s.p_removing
from (select * from written_records where api = 'AlterPartition') w
join partition_states s on w.run = s.run and w.offset = s.offset
"""

_REQUEST_JSON = (
    "topics array<struct<topicName: string, topicId: string, partitions: array<struct<"
    "partitionIndex: int, leaderEpoch: int, partitionEpoch: int, "
    "newIsrWithEpochs: array<struct<brokerId: int, brokerEpoch: bigint>>>>>>"
)

_RESPONSE_JSON = (
    "topics array<struct<topicName: string, topicId: string, partitions: array<struct<"
    "partitionIndex: int, errorCode: int, leaderEpoch: int, partitionEpoch: int>>>>"
)

# One row per partition of an AlterPartition that got a response.
_PROPOSALS = f"""
select i.run, i.id, i.seq, i.src, i.version, i.error, i.broker_epoch, i.registered_epoch,
  i.part, i.leader_epoch, i.partition_epoch, i.members, e.le, e.pe,
  coalesce(e.topic, i.topic_name) as topic,
  coalesce(e.offset, i.last_written) as offset, e.offset as written,
  size(i.records_written) as writes, e.p_leader, e.p_le, e.p_pe,
  try_element_at(transform(filter(i.responses,
    a -> a.topic = i.topic_key and a.part = i.part), a -> a.error), 1) as response_error,
  try_element_at(filter(i.responses,
    a -> a.topic = i.topic_key and a.part = i.part), 1) as new_state
from (
  select run, id, seq, src, version, error, broker_epoch, registered_epoch, records_written,
    array_max(records_written) as last_written, responses,
    topic.topicName as topic_name, topic.topicId as topic_id,
    coalesce(topic.topicId, topic.topicName) as topic_key,
    inline(transform(topic.partitions, p -> named_struct('part', p.partitionIndex,
      'leader_epoch', p.leaderEpoch, 'partition_epoch', p.partitionEpoch,
      'members', p.newIsrWithEpochs)))
  from (
    select *, explode(from_json(request, '{_REQUEST_JSON}').topics) as topic,
      flatten(transform(from_json(response, '{_RESPONSE_JSON}').topics,
        t -> transform(t.partitions, p -> named_struct(
          'topic', coalesce(t.topicId, t.topicName),
          'part', p.partitionIndex, 'error', p.errorCode, 'le', p.leaderEpoch,
          'pe', p.partitionEpoch)))) as responses
    from rpc where api = 'AlterPartition' and resp_seq is not null
  )
) i
left join requested_changes e on i.run = e.run and i.id = e.id and i.part = e.part
  and (i.topic_id = e.topic_id or i.topic_name = e.topic)
"""

# Each member of an accepted ISR beside the broker epoch registered just before.
_MEMBERS = """
select * from (
  select *, last(epoch, true) over (
    partition by run, about order by at, rank rows between unbounded preceding and current row)
    as seen
  from (
    select run, written as offset, topic, part, member.brokerId as about,
      member.brokerEpoch as member_epoch, written as at, 0 as rank, cast(null as bigint) as epoch
    from (select *, explode(members) as member from proposals
      where written is not null and response_error in (0, 108))
    union all
    select run, offset, null, null, broker, null, pos, 1, epoch from broker_states
  )
) where member_epoch is not null
"""


VIEWS = (
    View(name="requested_changes", sql=_EFFECTS, empty_unless=("rpc", "api", "AlterPartition")),
    View(name="proposals", sql=_PROPOSALS, empty_unless=("rpc", "api", "AlterPartition")),
    View(name="proposed_members", sql=_MEMBERS, empty_unless=("rpc", "api", "AlterPartition")),
)

RULES = (
    Rule(
        id="A6",
        title="A rejected AlterPartition writes nothing",
        statement="A rejected AlterPartition writes no record for its partition, and its "
        "leader gives up the change only for errors that mean a final rejection.",
        source="KIP-497; ReplicationControlManager.alterPartition",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                view="proposals",
                when=_REJECTED,
                bad="written is not null or (error <> 'NONE' and writes > 0)",
                message="AlterPartition {number} of broker {broker} was rejected and wrote a "
                "record",
                broker="src",
                number="id",
            ),
            Check(
                view="replica_events",
                when="kind = 'isr_revert' and error is not null",
                bad="error not in ('INELIGIBLE_REPLICA', 'OPERATION_NOT_ATTEMPTED')",
                message="leader {broker} reverted to ISR {new} on an error that is no final "
                "rejection (event {number})",
                offset="log_offset",
                broker="broker",
                new="isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="A7",
        title="An accepted ISR names current incarnations",
        statement="Each member of an accepted ISR carries no broker epoch (-1) or the epoch "
        "that was registered right before the record.",
        source="KIP-903; ReplicationControlManager.ineligibleReplicasForIsr",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                view="proposed_members",
                when="true",
                bad="member_epoch not in (-1, coalesce(seen, -2))",
                message="broker {broker} was accepted into an ISR with broker epoch "
                "{number}, which is not the registered one",
                broker="about",
                number="member_epoch",
            ),
        ),
    ),
    Rule(
        id="B4",
        title="An accepted AlterPartition matches the current leader and epochs",
        statement="The request comes from the current leader and carries the leader epoch, "
        "partition epoch and broker epoch that were current right before its record.",
        source="KIP-497; ReplicationControlManager.validateAlterPartitionData",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                view="proposals",
                when=f"{_ACCEPTED} and written is not null",
                bad="partition_epoch <> p_pe or leader_epoch <> p_le or src <> p_leader "
                "or coalesce(broker_epoch >= 0 and broker_epoch <> registered_epoch, false)",
                message="AlterPartition {number} of broker {broker} was accepted although "
                "its leader, leader epoch, partition epoch or broker epoch was not the current "
                "one",
                broker="src",
                number="id",
            ),
        ),
    ),
    Rule(
        id="B9",
        title="AlterPartition elects no leader",
        statement="The record of an accepted AlterPartition names another leader only if it "
        "completes a reassignment.",
        source="KIP-497, KIP-455; ReplicationControlManager.alterPartition",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                view="requested_changes",
                when="true",
                bad="leader <> p_leader and not ((size(p_adding) > 0 or size(p_removing) > 0) "
                "and size(adding) = 0 and size(removing) = 0)",
                message="an AlterPartition made broker {broker} the leader (ISR {new}) "
                "without completing a reassignment",
                broker="leader",
                new="isr",
            ),
        ),
    ),
)
