"""Rules that need the event trace of a run beside its log.

Requests meet the records that answering them wrote, by offset; leaders' events meet the images that
their brokers had published and the states that the controllers had committed, by event number.
Every such meeting is a stream in one order in which each row sees the last row of the other kind.
"""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule

_UP_TO_HERE = "rows between unbounded preceding and current row"
_BEFORE = "rows between unbounded preceding and 1 preceding"

REQUESTS = """
select run, seq, id, api, version, src, dst, resp_seq, error, records_written, high_watermark,
  broker_epoch, registered_epoch, array_max(records_written) as offset,
  cast(null as string) as topic, cast(null as int) as part
from rpc where handle_seq is not null
"""

# What each request wrote, and what that did to partitions.
WRITTEN = """
select run, id, api, src, request, explode(records_written) as offset from rpc
"""
EFFECTS = """
select w.id, s.run, s.offset, s.topic, s.topic_id, s.part, s.p_leader, s.p_le, s.p_pe
from (select * from written where api = 'AlterPartition') w
join partition_states s on w.run = s.run and w.offset = s.offset
"""

_REQUEST_JSON = (
    "topics array<struct<topicName: string, topicId: string, partitions: array<struct<"
    "partitionIndex: int, leaderEpoch: int, partitionEpoch: int>>>>"
)
_RESPONSE_JSON = (
    "topics array<struct<topicName: string, topicId: string, partitions: array<struct<"
    "partitionIndex: int, errorCode: int>>>>"
)

# One row per partition that an answered AlterPartition asked about.
PROPOSALS = f"""
select i.run, i.id, i.seq, i.src, i.version, i.error, i.broker_epoch, i.registered_epoch,
  i.part, i.leader_epoch, i.partition_epoch, coalesce(e.topic, i.topic_name) as topic,
  coalesce(e.offset, i.last_written) as offset, e.offset as written,
  size(i.records_written) as writes, e.p_leader, e.p_le, e.p_pe,
  try_element_at(transform(filter(i.answers,
    a -> a.topic = i.topic_key and a.part = i.part), a -> a.error), 1) as answer
from (
  select run, id, seq, src, version, error, broker_epoch, registered_epoch, records_written,
    array_max(records_written) as last_written, answers,
    topic.topicName as topic_name, topic.topicId as topic_id,
    coalesce(topic.topicId, topic.topicName) as topic_key,
    inline(transform(topic.partitions, p -> named_struct('part', p.partitionIndex,
      'leader_epoch', p.leaderEpoch, 'partition_epoch', p.partitionEpoch)))
  from (
    select *, explode(from_json(request, '{_REQUEST_JSON}').topics) as topic,
      flatten(transform(from_json(response, '{_RESPONSE_JSON}').topics,
        t -> transform(t.partitions, p -> named_struct(
          'topic', coalesce(t.topicId, t.topicName),
          'part', p.partitionIndex, 'error', p.errorCode)))) as answers
    from rpc where api = 'AlterPartition' and resp_seq is not null
  )
) i
left join effects e on i.run = e.run and i.id = e.id and i.part = e.part
  and (i.topic_id = e.topic_id or i.topic_name = e.topic)
"""

# Records that end a recovery, and the request that caused each.
RECOVERIES = """
select s.run, s.offset, s.topic, s.part, s.p_leader, w.api, w.src, u.open
from (select * from partition_states where change and p_rec = 1 and d_rec = 0) s
join (select run from headers) h on s.run = h.run
left join written w on s.run = w.run and s.offset = w.offset
left join (select run, src, count(*) as open from rpc
  where api = 'AlterPartition' and resp_seq is null group by run, src) u
  on s.run = u.run and s.p_leader = u.src
"""

# Records that unfence, and the heartbeat that caused each.
UNFENCINGS = """
select b.run, b.offset, b.broker, b.registered_at, w.api, w.src,
  cast(null as string) as topic, cast(null as int) as part,
  from_json(w.request, 'currentMetadataOffset bigint').currentMetadataOffset as caught_up_to
from (select * from broker_states where judged and kind in ('Change', 'Unfence')
  and p_registered and not d_fenced) b
join written w on b.run = w.run and b.offset = w.offset
"""

# Whom a leader proposes to add, under the image that its broker had published by then.
ADDITIONS = f"""
select * from (
  select *, last(state, true) over (
    partition by run, about order by at, rank {_UP_TO_HERE}) as seen
  from (
    select run, seq, broker, topic, part, isr, maximal_isr, image as at, 1 as rank,
      explode(array_except(maximal_isr, isr)) as about, follower_leos,
      cast(null as struct<active: boolean, epoch: bigint>) as state
    from (
      select *, last(case when published then offset end, true) over (
        partition by run, broker order by seq {_UP_TO_HERE}) as image
      from (
        select run, seq, broker, topic, part, isr, maximal_isr, follower_leos, kind,
          false as published, cast(null as bigint) as offset
        from partition_event where kind = 'isr_pending'
        union all
        select run, seq, node, null, null, null, null, null, 'publish', true, offset from publish
      )
    ) where not published and image is not null
    union all
    select run, null, null, null, null, null, null, pos, 0, broker, null,
      named_struct('active', active, 'epoch', epoch)
    from broker_states
  )
) where rank = 1
"""

# The event number by which each partition state was committed: the first high watermark above it.
COMMITS = f"""
select * from (
  select *, min(hw_seq) over (partition by run order by above desc, rank {_UP_TO_HERE}) as seq
  from (
    select run, offset as above, 0 as rank, seq as hw_seq, cast(null as bigint) as offset,
      null as topic, null as topic_id, null as part, null as isr, null as leader, null as le
    from raft_event where kind = 'hw'
    union all
    select run, offset + 1, 1, null, offset, topic, topic_id, part, isr, leader, le
    from partition_states where state
  )
) where rank = 1 and seq is not null
"""

# A partition's committed states and its leaders' events, each beside the latest of the other.
QUORUMS = f"""
select *,
  last(committed, true) over w as controller,
  last(believed, true) over w as replica
from (
  select run, seq, 'commit' as kind, offset, topic, topic_id, part,
    cast(null as int) as broker, cast(leader as bigint) as leader, cast(le as bigint) as le,
    cast(isr as array<bigint>) as isr, cast(null as array<bigint>) as maximal_isr,
    named_struct('isr', cast(isr as array<bigint>), 'le', cast(le as bigint),
      'leader', cast(leader as bigint), 'offset', offset) as committed,
    cast(null as struct<maximal: array<bigint>, le: bigint, broker: bigint>) as believed
  from commits
  union all
  select run, seq, kind, null, topic, topic_id, part, broker, broker, leader_epoch, isr,
    maximal_isr, null,
    named_struct('maximal', maximal_isr, 'le', leader_epoch, 'broker', broker)
  from partition_event where maximal_isr is not null
)
window w as (partition by run, topic_id, part order by seq {_UP_TO_HERE})
"""

# Leaders' events with what they knew of their followers; truncations with the highest watermark.
REPLICAS = f"""
select e.*, cast(null as bigint) as log_offset, u.unclean_from,
  from_json(follower_leos, 'map<string, array<bigint>>') as known,
  filter(maximal_isr, m -> m <> broker) as others,
  max(case when kind = 'hw' and maximal_isr is not null then hw_new end) over (
    partition by e.run, e.topic_id, e.part order by e.seq {_BEFORE}) as true_hw
from partition_event e
left join (select run, topic_id, part, min(le) as unclean_from from partition_states
  where unclean group by run, topic_id, part) u
  on e.run = u.run and e.topic_id = u.topic_id and e.part = u.part
"""

PUBLICATIONS = f"""
select p.*, cast(null as string) as topic, cast(null as int) as part,
  i.hash, i.offset is not null as aligned, h.first_image,
  lag(p.offset) over (partition by p.run, p.node, p.incarnation order by p.seq) as p_offset
from (
  select *, max(hw) over (partition by run order by seq {_UP_TO_HERE}) as high_watermark
  from (
    select run, seq, node, incarnation, offset, image_hash, in_tx, cast(null as bigint) as hw
    from publish
    union all
    select run, seq, null, null, null, null, null, offset from raft_event where kind = 'hw'
  )
) p
join headers h on p.run = h.run
left join images i on p.run = i.run and p.offset = i.offset
where p.node is not null
"""

HEADERS = """
select *, cast(null as bigint) as offset, cast(null as string) as topic, cast(null as int) as part
from headers
"""

_BROKER_SCOPED = (
    "'AlterPartition', 'BrokerHeartbeat', 'AllocateProducerIds', 'AssignReplicasToDirs'"
)
_ACCEPTED = "error = 'NONE' and answer in (0, 108)"  # 108: NEW_LEADER_ELECTED, and written
# Before version 2 a leader that lost its place hears FENCED_LEADER_EPOCH (74) for a written change.
_REJECTED = (
    "(error <> 'NONE' or (answer is not null and answer not in (0, 108) "
    "and not (version < 2 and answer = 74)))"
)
_LEO = "coalesce(get(try_element_at(known, cast(m as string)), 0), -1)"
_EPOCH_OF_LEO = "coalesce(get(try_element_at(known, cast(m as string)), 1), -1)"
_FETCH_EPOCH = (
    "get(try_element_at(from_json(follower_leos, 'map<string, array<bigint>>'), "
    "cast(about as string)), 2)"
)

RULES = (
    Rule(
        id="A5",
        title="Leaders propose only eligible replicas",
        statement="A leader never proposes to add a replica that its own published image calls "
        "fenced, shutting down or of another epoch.",
        source="KAFKA-14140, KIP-841; Partition.isReplicaIsrEligible",
        evidence=Evidence.TRACE,
        tables=("partition_event", "publish"),
        checks=(
            Check(
                group="additions",
                when="true",
                bad="not coalesce(seen.active, false) "
                f"or coalesce({_FETCH_EPOCH} not in (-1, seen.epoch), false)",
                message="the leader proposes broker {broker} for the ISR {new} (event {number}), "
                "which its own image at offset {offset} calls ineligible",
                offset="at",
                broker="about",
                new="maximal_isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="A6",
        title="A refused AlterPartition changes nothing",
        statement="A refusal writes no record for its partition.",
        source="KIP-497; ReplicationControlManager.alterPartition",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="proposals",
                when=_REJECTED,
                bad="written is not null or (error <> 'NONE' and writes > 0)",
                message="request {number} of broker {broker} was refused and wrote a record",
                broker="src",
                number="id",
            ),
            Check(
                group="replicas",
                when="kind = 'isr_revert' and error is not null",
                bad="error not in ('INELIGIBLE_REPLICA', 'OPERATION_NOT_ATTEMPTED')",
                message="leader {broker} went back to ISR {new} on another error (event {number})",
                offset="log_offset",
                broker="broker",
                new="isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="B1",
        title="Leaders replicate to everyone who may be elected",
        statement="The committed ISR is within the maximal ISR of the leader of that epoch; with "
        "no change under way the two ISRs of a leader are one.",
        source="KIP-497; Partition.scala PartitionState.maximalIsr",
        evidence=Evidence.TRACE,
        tables=("partition_event", "raft_event"),
        checks=(
            Check(
                group="quorums",
                when="kind <> 'commit' and controller.le = le and controller.leader = leader",
                bad="size(array_except(controller.isr, maximal_isr)) > 0",
                message="leader {broker} counts on {new} (event {number}) while the controller's "
                "ISR is {old}",
                offset="controller.offset",
                broker="broker",
                old="controller.isr",
                new="maximal_isr",
                number="seq",
            ),
            Check(
                group="quorums",
                when="kind = 'commit' and replica.le = le and replica.broker = leader",
                counts=False,
                bad="size(array_except(isr, replica.maximal)) > 0",
                message="the controller committed ISR {new} while leader {broker} counts on {old}",
                broker="leader",
                old="replica.maximal",
                new="isr",
            ),
            Check(
                group="quorums",
                when="kind in ('become_leader', 'isr_commit', 'isr_revert')",
                counts=False,
                bad="array_sort(isr) <> array_sort(maximal_isr)",
                message="leader {broker} has no change under way, but ISR {old} and maximal ISR "
                "{new} (event {number})",
                broker="broker",
                old="isr",
                new="maximal_isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="B2",
        title="The high watermark waits for the maximal ISR",
        statement="A leader's high watermark moves only over offsets that every member of its "
        "maximal ISR is known, in this leader epoch, to hold.",
        source="KIP-497, KIP-101; Partition.maybeIncrementLeaderHW",
        evidence=Evidence.TRACE,
        tables=("partition_event",),
        checks=(
            Check(
                group="replicas",
                when="kind = 'hw' and maximal_isr is not null and follower_leos is not null",
                bad=f"leo < hw_new or exists(others, m -> {_LEO} < hw_new "
                f"or {_EPOCH_OF_LEO} <> leader_epoch)",
                message="leader {broker} moved its high watermark to {number} before all of {new} "
                "were known to be there",
                offset="log_offset",
                broker="broker",
                new="maximal_isr",
                number="hw_new",
            ),
        ),
    ),
    Rule(
        id="B4",
        title="An accepted AlterPartition names what stands",
        statement="It comes from the current leader, with the leader epoch, partition epoch and "
        "broker epoch that stood just before its record.",
        source="KIP-497; ReplicationControlManager.validateAlterPartitionData",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="proposals",
                when=f"{_ACCEPTED} and written is not null",
                bad="partition_epoch <> p_pe or leader_epoch <> p_le or src <> p_leader "
                "or coalesce(broker_epoch >= 0 and broker_epoch <> registered_epoch, false)",
                message="request {number} of broker {broker} was accepted with another leader, "
                "epoch or partition epoch than stood",
                broker="src",
                number="id",
            ),
        ),
    ),
    Rule(
        id="C6",
        title="Only the leader ends a recovery",
        statement="RECOVERING turns into RECOVERED only by an AlterPartition of the leader.",
        source="KIP-704; ReplicationControlManager.alterPartition",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="recoveries",
                when="true",
                bad="case when api is null then open is null "
                "else not (api = 'AlterPartition' and src = p_leader) end",
                message="the recovery of leader {broker} was ended by something else than its "
                "AlterPartition",
                broker="p_leader",
            ),
        ),
    ),
    Rule(
        id="D3",
        title="A stale broker epoch is refused",
        statement="A request with another broker epoch than the registered one is answered "
        "STALE_BROKER_EPOCH and writes nothing.",
        source="KIP-589, KIP-380; ClusterControlManager.checkBrokerEpoch",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="requests",
                when=f"api in ({_BROKER_SCOPED}) and resp_seq is not null and broker_epoch >= 0 "
                "and broker_epoch <> registered_epoch",
                bad="size(records_written) > 0 "
                "or error not in ('STALE_BROKER_EPOCH', 'NOT_CONTROLLER', 'REQUEST_TIMED_OUT')",
                message="request {number} of broker {broker} carried a stale broker epoch and was "
                "not refused for it",
                broker="src",
                number="id",
            ),
        ),
    ),
    Rule(
        id="E24",
        title="Unfenced only when caught up",
        statement="A broker is unfenced by its own heartbeat, which says that it has applied its "
        "registration.",
        source="KIP-631; BrokerHeartbeatManager.calculateNextBrokerState",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="unfencings",
                when="true",
                bad="api <> 'BrokerHeartbeat' or src <> broker or caught_up_to < registered_at",
                message="broker {broker} was unfenced having applied the log to {number} only, or "
                "not by its own heartbeat",
                broker="broker",
                number="caught_up_to",
            ),
        ),
    ),
    Rule(
        id="E32",
        title="Published images are folds of the log",
        statement="The image that a node publishes at an offset is the fold of the committed log "
        "up to there.",
        source="KIP-631; MetadataLoader",
        evidence=Evidence.IMAGES,
        tables=("publish",),
        checks=(
            Check(
                group="publications",
                when="hash is not null and image_hash is not null",
                bad="image_hash <> hash",
                message="node {broker} published another image than the log makes (event {number})",
                broker="node",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="E33",
        title="Publishing moves forward over committed batches",
        statement="Per incarnation, images are published in order, at batch ends, never past the "
        "high watermark, never inside a transaction, never empty.",
        source="KAFKA-15389, KAFKA-17713; MetadataLoader.maybePublishMetadata",
        evidence=Evidence.IMAGES,
        tables=("publish", "raft_event"),
        checks=(
            Check(
                group="publications",
                when="true",
                bad="offset < p_offset",
                message="node {broker} published an older image than before (event {number})",
                broker="node",
                number="seq",
            ),
            Check(
                group="publications",
                when="offset >= first_image",
                counts=False,
                bad="not aligned",
                message="node {broker} published at an offset that ends no committed batch "
                "(event {number})",
                broker="node",
                number="seq",
            ),
            Check(
                group="publications",
                when="high_watermark is not null",
                counts=False,
                bad="offset >= high_watermark",
                message="node {broker} published past the high watermark {number}",
                broker="node",
                number="high_watermark",
            ),
            Check(
                group="publications",
                when="true",
                counts=False,
                bad="offset < 0 or in_tx",
                message="node {broker} published an empty image or one inside a transaction "
                "(event {number})",
                broker="node",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="E40",
        title="Answers leave after the commit",
        statement="A successful answer is sent only once the records that it wrote are committed.",
        source="KIP-631, KIP-595; QuorumController.ControllerWriteEvent",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="requests",
                when="resp_seq is not null and error = 'NONE' and size(records_written) > 0 "
                "and high_watermark is not null",
                bad="offset >= high_watermark",
                message="request {number} was answered before its last record was committed",
                broker="src",
                number="id",
            ),
        ),
    ),
    Rule(
        id="F5",
        title="What is committed is not truncated",
        statement="No replica truncates below the highest high watermark of its partition, but "
        "after an unclean election.",
        source="KIP-101, KIP-279; AbstractFetcherThread.truncate",
        evidence=Evidence.TRACE,
        tables=("partition_event",),
        checks=(
            Check(
                group="replicas",
                when="kind = 'truncate' "
                "and (unclean_from is null or coalesce(leader_epoch < unclean_from, false))",
                bad="offset < true_hw",
                message="broker {broker} truncated below the high watermark {number}",
                offset="log_offset",
                broker="broker",
                number="true_hw",
            ),
        ),
    ),
    Rule(
        id="F8",
        title="acks=all means everybody",
        statement="When a produce with acks=all is answered, every member of the maximal ISR has "
        "it, and they are at least min.insync.replicas.",
        source="KIP-497; Partition.checkEnoughReplicasReachOffset",
        evidence=Evidence.TRACE,
        tables=("partition_event",),
        checks=(
            Check(
                group="replicas",
                when="kind = 'ack' and maximal_isr is not null and follower_leos is not null",
                bad=f"leo <= offset or exists(others, m -> {_LEO} <= offset) "
                "or size(maximal_isr) < coalesce(min_isr, 1)",
                message="leader {broker} acknowledged offset {number} before all of {new} had it, "
                "or with fewer than min.insync.replicas",
                offset="log_offset",
                broker="broker",
                new="maximal_isr",
                number="offset",
            ),
        ),
    ),
    Rule(
        id="X1",
        title="The same seed gives the same run",
        statement="A run that was repeated from its seed left the same trace hash.",
        source="design of this project",
        evidence=Evidence.META,
        checks=(
            Check(
                group="header",
                when="trace_hash is not null and repeat_trace_hash is not null",
                bad="trace_hash <> repeat_trace_hash",
                message="the run was repeated and left another trace",
            ),
        ),
    ),
)
