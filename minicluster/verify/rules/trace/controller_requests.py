"""Requests to the controller beside the records that handling them wrote, by offset."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

_BROKER_SCOPED = (
    "'AlterPartition', 'BrokerHeartbeat', 'AllocateProducerIds', 'AssignReplicasToDirs'"
)

_REQUESTS = """
select run, seq, id, api, version, src, dst, resp_seq, error, records_written, high_watermark,
  broker_epoch, registered_epoch, array_max(records_written) as offset,
  cast(null as string) as topic, cast(null as int) as part
from rpc where handle_seq is not null
"""

# The records that each request wrote.
_WRITTEN = """
select run, id, api, src, request, explode(records_written) as offset from rpc
"""

# Requests that promise to be one operation, and the number of operations of their records.
_ATOMIC = """
select w.run, w.id, any_value(w.src) as src, count(distinct t.op) as operations,
  max(w.offset) as offset, any_value(t.topic) as topic, cast(null as int) as part
from written_records w join (select run, offset, op, topic from topics where judged) t
  on w.run = t.run and w.offset = t.offset
where w.api in ('CreateTopics', 'CreatePartitions', 'DeleteTopics')
group by w.run, w.id
"""

# Records that end a recovery, and the request that caused each.
_RECOVERIES = """
select s.run, s.offset, s.topic, s.part, s.p_leader, w.api, w.src, u.open
from (select * from partition_states where traced and change and p_rec = 1 and d_rec = 0) s
left join written_records w on s.run = w.run and s.offset = w.offset
left join (select run, src, count(*) as open from rpc
  where api = 'AlterPartition' and resp_seq is null group by run, src) u
  on s.run = u.run and s.p_leader = u.src
"""

# Unclean elections by an ElectLeaders request.
_ELECTIONS = """
select s.run, s.offset, s.topic, s.part, s.mv, s.leader, s.p_isr, w.id,
  from_json(w.request, 'electionType int').electionType as election_type
from (select * from partition_states where unclean) s
join (select * from written_records where api = 'ElectLeaders') w
  on w.run = s.run and w.offset = s.offset
"""

# Records that unfence, and the heartbeat that caused each.
_UNFENCINGS = """
select b.run, b.offset, b.broker, b.registered_at, w.api, w.src,
  cast(null as string) as topic, cast(null as int) as part,
  from_json(w.request, 'currentMetadataOffset bigint').currentMetadataOffset as caught_up_to
from (select * from broker_states where judged and kind in ('Change', 'Unfence')
  and p_registered and not d_fenced) b
join written_records w on b.run = w.run and b.offset = w.offset
"""

ATOMIC_REQUESTS = Check(
    view="atomic_requests",
    when="true",
    counts=False,
    bad="operations > 1",
    message="request {number} of node {broker} wrote its records in more than one operation",
    broker="src",
    number="id",
)


PREFERRED_ELECTION = Check(
    view="requested_elections",
    when="true",
    counts=False,
    bad="election_type <> 1",
    message="the preferred election of request {number} elected broker {broker} from outside "
    "the ISR {old}",
    broker="leader",
    old="p_isr",
    number="id",
)

VIEWS = (
    View(name="requests", sql=_REQUESTS),
    View(name="written_records", sql=_WRITTEN),
    View(name="atomic_requests", sql=_ATOMIC),
    View(name="recoveries", sql=_RECOVERIES, empty_unless=("partitions", "rec", 1)),
    View(name="requested_elections", sql=_ELECTIONS),
    View(name="unfencings", sql=_UNFENCINGS),
)

RULES = (
    Rule(
        id="C6",
        title="Only the leader's AlterPartition ends a recovery",
        statement="RECOVERING becomes RECOVERED only by an AlterPartition of the leader.",
        source="KIP-704; ReplicationControlManager.alterPartition",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                view="recoveries",
                when="true",
                bad="case when api is null then open is null "
                "else not (api = 'AlterPartition' and src = p_leader) end",
                message="the recovery of leader {broker} ended without an AlterPartition of "
                "its own",
                broker="p_leader",
            ),
        ),
    ),
    Rule(
        id="D3",
        title="A stale broker epoch is rejected",
        statement="A request whose broker epoch is not the registered one gets "
        "STALE_BROKER_EPOCH and writes nothing.",
        source="KIP-589, KIP-380; ClusterControlManager.checkBrokerEpoch",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                view="requests",
                when=f"api in ({_BROKER_SCOPED}) and resp_seq is not null and broker_epoch >= 0 "
                "and broker_epoch <> registered_epoch",
                bad="size(records_written) > 0 "
                "or error not in ('STALE_BROKER_EPOCH', 'NOT_CONTROLLER', 'REQUEST_TIMED_OUT')",
                message="request {number} of broker {broker} carried a stale broker epoch "
                "and was not rejected for it",
                broker="src",
                number="id",
            ),
        ),
    ),
    Rule(
        id="E24",
        title="A broker is unfenced only when it has caught up",
        statement="A broker is unfenced by its own BrokerHeartbeat, whose metadata offset is "
        "at its registration or later.",
        source="KIP-631; BrokerHeartbeatManager.calculateNextBrokerState",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                view="unfencings",
                when="true",
                bad="api <> 'BrokerHeartbeat' or src <> broker or caught_up_to < registered_at",
                message="broker {broker} was unfenced at metadata offset {number}, before "
                "its registration, or not by its own BrokerHeartbeat",
                broker="broker",
                number="caught_up_to",
            ),
        ),
    ),
    Rule(
        id="E40",
        title="Responses leave after the commit",
        statement="A successful response is sent only after the records that the request wrote "
        "are committed.",
        source="KIP-631, KIP-595; QuorumController.ControllerWriteEvent",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                view="requests",
                when="resp_seq is not null and error = 'NONE' and size(records_written) > 0 "
                "and high_watermark is not null",
                bad="offset >= high_watermark",
                message="the response to request {number} was sent before its last record "
                "was committed",
                broker="src",
                number="id",
            ),
        ),
    ),
)
