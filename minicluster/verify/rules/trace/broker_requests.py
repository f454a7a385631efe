"""Fetch and ListOffsets requests beside the leader epoch of the broker that handled them."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.trace.client_records import WATERMARKS_OF_CLIENTS
from minicluster.verify.rules.trace.windows import UP_TO_HERE

_FETCH_REQUEST = (
    "topics array<struct<topic: string, topicId: string, partitions: array<struct<"
    "partition: int, currentLeaderEpoch: int>>>>"
)

_FETCH_RESPONSE = (
    "responses array<struct<topic: string, topicId: string, partitions: array<struct<"
    "partitionIndex: int, errorCode: int>>>>"
)

# Each partition of a fetch, beside the leader epoch of the broker that handled it.
_FETCHES = f"""
select * from (
  select *, last(le, true) over (
    partition by run, topic_id, part, broker order by seq {UP_TO_HERE}) as seen
  from (
    select run, handle_seq as seq, id, dst as broker, src, topic.topicId as topic_id,
      request.partition as part, request.currentLeaderEpoch as requested_epoch,
      try_element_at(transform(filter(responses, a -> a.topic_id = topic.topicId
        and a.part = request.partition), a -> a.error), 1) as error, cast(null as bigint) as le
    from (
      select *, explode(topic.partitions) as request from (
        select run, handle_seq, id, src, dst, explode(from_json(request, '{_FETCH_REQUEST}').topics)
            as topic,
          flatten(transform(from_json(response, '{_FETCH_RESPONSE}').responses,
            t -> transform(t.partitions, p -> named_struct('topic_id', t.topicId,
              'part', p.partitionIndex, 'error', p.errorCode)))) as responses
        from rpc where api = 'Fetch' and resp_seq is not null and handle_seq is not null
      )
    )
    union all
    select run, seq, null, broker, null, topic_id, part, null, null, leader_epoch
    from partition_event where kind in ('become_leader', 'become_follower', 'isr_commit', 'hw')
  )
) where id is not null and requested_epoch >= 0 and seen is not null
"""

# End offsets that consumers received, beside the start of the leader's epoch.
_LISTED = """
select listed.run, listed.id, listed.broker, listed.topic, listed.part, listed.end_offset,
  epochs.began
from (
  select run, id, broker, topic, response.partitionIndex as part, response.offset as end_offset,
    response.leaderEpoch as le
  from (
    select run, id, broker, request, topic.name as topic, explode(topic.partitions) as response
    from (
      select run, id, dst as broker,
        from_json(request, 'replicaId int, topics array<struct<name: string, partitions:
          array<struct<partitionIndex: int, timestamp: bigint>>>>') as request,
        explode(from_json(response, 'topics array<struct<name: string, partitions:
          array<struct<partitionIndex: int, errorCode: int, offset: bigint,
            leaderEpoch: bigint>>>>').topics) as topic
      from rpc where api = 'ListOffsets' and resp_seq is not null and handle_seq is not null
    )
  )
  where response.errorCode = 0 and request.replicaId < 0 and exists(request.topics, t ->
    t.name = topic and exists(t.partitions, p ->
      p.partitionIndex = response.partitionIndex and p.timestamp = -1))
) as listed
join (
  select run, broker, topic, part, leader_epoch as le, min(leo) as began
  from partition_event where kind = 'become_leader'
  group by run, broker, topic, part, leader_epoch
) as epochs
on listed.run = epochs.run and listed.broker = epochs.broker and listed.topic = epochs.topic
  and listed.part = epochs.part and listed.le = epochs.le
"""


VIEWS = (
    View(name="fetched_partitions", sql=_FETCHES),
    View(name="listed_offsets", sql=_LISTED, empty_unless=("rpc", "api", "ListOffsets")),
)

RULES = (
    Rule(
        id="F15",
        title="Fetches with another leader epoch are rejected",
        statement="A Fetch whose current leader epoch is not that of the partition where it is "
        "handled returns an error.",
        source="KIP-320, KAFKA-7395; Partition.localLogWithEpochOrThrow",
        evidence=Evidence.TRACE,
        tables=("rpc", "partition_event"),
        checks=(
            Check(
                view="fetched_partitions",
                when="error is not null",
                bad="requested_epoch <> seen and error = 0",
                message="a Fetch of broker {broker} with another leader epoch was accepted "
                "(request {number})",
                broker="src",
                number="id",
                offset="cast(null as bigint)",
                topic="cast(null as string)",
            ),
        ),
    ),
    Rule(
        id="F18",
        title="A leader's high watermark does not decrease",
        statement="While a broker leads an epoch its high watermark only advances, also as "
        "clients see it, and consumers receive an end offset only once the high watermark has "
        "passed the start of the epoch.",
        source="KIP-101, KIP-207; Partition.maybeIncrementLeaderHW, fetchOffsetForTimestamp",
        evidence=Evidence.TRACE,
        tables=("partition_event", "rpc", "client_record", "raft_event"),
        checks=(
            Check(
                view="replica_events",
                when="kind = 'hw' and maximal_isr is not null",
                bad="hw_new < hw_old",
                message="leader {broker} moved its high watermark back to {number}",
                broker="broker",
                number="hw_new",
                offset="cast(null as bigint)",
            ),
            Check(
                view="listed_offsets",
                when="true",
                bad="end_offset < began",
                message="leader {broker} returned end offset {number} to a consumer, which "
                "is before the start of its leader epoch",
                broker="broker",
                number="end_offset",
                offset="cast(null as bigint)",
            ),
            WATERMARKS_OF_CLIENTS,
        ),
    ),
)
