"""Transactional producers: what coordinators decide, what the logs hold, what consumers see."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

# The batches of producers in the log of each partition's last leader at the end of the run.
_BATCHES = """
select b.run, b.seq, b.topic_id, b.topic, b.part, b.broker, b.base_offset, b.last_offset,
  b.producer_id, b.producer_epoch, b.transactional, b.marker, b.coordinator_epoch,
  cast(null as bigint) as log_offset,
  last(b.marker, true) over (
    partition by b.run, b.topic_id, b.part, b.producer_id order by 0 - b.base_offset
    rows between unbounded preceding and 1 preceding) as ended_by,
  max(b.producer_epoch) over (
    partition by b.run, b.topic_id, b.part, b.producer_id order by b.base_offset
    rows between unbounded preceding and 1 preceding) as epoch_before
from log_batch b
join (
  select run, topic_id, part, max_by(broker, leader_epoch) as broker
  from partition_event where kind = 'become_leader' group by run, topic_id, part
) l on b.run = l.run and b.topic_id = l.topic_id and b.part = l.part and b.broker = l.broker
left join (select run, topic_id, part, bool_or(lossy) as lossy from electable_replicas
  group by run, topic_id, part) h
  on b.run = h.run and b.topic_id = h.topic_id and b.part = h.part
where not coalesce(h.lossy, false)
"""

# Each record that a consumer with read_committed got, beside the end of its transaction.
_READ = """
select r.run, r.seq, r.topic_id, r.topic, r.part, r.broker, r.record_offset, r.visible,
  r.log_offset, b.ended_by
from returned_to_clients r
join batches_of_producers b
  on r.run = b.run and r.topic_id = b.topic_id and r.part = b.part
    and r.batch_offset = b.base_offset
where r.f = 'read' and r.isolation = 1 and b.transactional and b.marker is null
"""

# Each decision for a partition, beside the markers of that producer and epoch in its log. Decisions
# have the names of topics: any marker in a log has one by that name. Where a name had several
# topics, the marker of a decision up to the first epoch in the log may lie in one that is gone, so
# none is due: from KIP-890 on, the epoch of a decision is above that of its records.
_DECIDED = """
select d.run, d.seq, d.topic, d.part, d.broker, d.producer_id, d.producer_epoch, d.state,
  d.completed and (k.first_epoch is null or d.producer_epoch > k.first_epoch) as is_due,
  coalesce(p.commits, 0) as commits, coalesce(p.aborts, 0) as aborts,
  max(case when d.state = 'PrepareCommit' then 1 else 0 end) over (
    partition by d.run, d.topic, d.part, d.producer_id, d.producer_epoch) as any_commit,
  max(case when d.state = 'PrepareAbort' then 1 else 0 end) over (
    partition by d.run, d.topic, d.part, d.producer_id, d.producer_epoch) as any_abort,
  cast(null as bigint) as log_offset
from (
  select run, min(seq) as seq, topic, part, min(broker) as broker, producer_id, producer_epoch,
    state, bool_or(completed) as completed
  from transaction_decision group by run, topic, part, producer_id, producer_epoch, state
) d
join (
  select b.run, b.topic, b.part, b.producer_id,
    case when any_value(n.topics) > 1 then min(b.producer_epoch) end as first_epoch
  from batches_of_producers b
  join (select run, topic, count(distinct topic_id) as topics from partition_event
    group by run, topic) n on b.run = n.run and b.topic = n.topic
  where b.marker is null group by b.run, b.topic, b.part, b.producer_id
) k
  on d.run = k.run and d.topic = k.topic and d.part = k.part and d.producer_id = k.producer_id
left join (
  select run, topic, part, producer_id, producer_epoch,
    count_if(marker = 'commit') as commits, count_if(marker = 'abort') as aborts
  from batches_of_producers where marker is not null
  group by run, topic, part, producer_id, producer_epoch
) p
  on d.run = p.run and d.topic = p.topic and d.part = p.part and d.producer_id = p.producer_id
    and d.producer_epoch = p.producer_epoch
"""

# Each acknowledged record, beside the highest epoch that its producer id had before it was sent.
_FENCED = """
select *, max(given_epoch) over (
    partition by run, producer_id order by at rows between unbounded preceding and 1 preceding)
    as fenced_below
from (
  select run, seq, f, topic, part, broker, producer_id, producer_epoch, offset as record_offset,
    case when f = 'init' then producer_epoch end as given_epoch,
    case when f = 'init' then seq else send_seq end as at, cast(null as bigint) as log_offset
  from client_record where f = 'init' or (f = 'send' and producer_id >= 0 and acks = -1)
)
"""

VIEWS = (
    View(
        name="batches_of_producers",
        sql=_BATCHES,
        empty_unless=("log_batch", None, None),
    ),
    View(name="reads_of_transactions", sql=_READ, empty_unless=("log_batch", None, None)),
    View(
        name="decided_transactions",
        sql=_DECIDED,
        empty_unless=("transaction_decision", None, None),
    ),
    View(name="sends_of_producers", sql=_FENCED, empty_unless=("client_record", None, None)),
)

_TABLES = ("client_record", "partition_event", "raft_event")

RULES = (
    Rule(
        id="H3",
        title="read_committed sees no aborted record",
        statement="A consumer with read_committed sees no record of a transaction that was "
        "aborted, or that is still open.",
        source="KIP-98; FetchIsolation.TXN_COMMITTED; Jepsen: G1a, aborted read",
        evidence=Evidence.TRACE,
        tables=(*_TABLES, "log_batch"),
        checks=(
            Check(
                view="reads_of_transactions",
                when="visible",
                bad="coalesce(ended_by, 'open') <> 'commit'",
                message="broker {broker} gave a consumer with read_committed the record at offset "
                "{number}, whose transaction was not committed",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="H4",
        title="read_committed leaves no committed record out",
        statement="No response to a consumer with read_committed calls a transaction aborted "
        "that was committed.",
        source="KIP-98; TransactionIndex.collectAbortedTxns",
        evidence=Evidence.TRACE,
        tables=(*_TABLES, "log_batch"),
        checks=(
            Check(
                view="reads_of_transactions",
                when="ended_by = 'commit'",
                bad="not visible",
                message="broker {broker} called the transaction of the record at offset {number} "
                "aborted, which was committed",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="H5",
        title="The last stable offset is at most the high watermark",
        statement="A response has no last stable offset above its high watermark, and one with "
        "read_committed no record at or above its last stable offset.",
        source="KIP-98; UnifiedLog.lastStableOffset",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="returned_to_clients",
                when="f = 'fetch' and last_stable_offset >= 0",
                bad="last_stable_offset > high_watermark",
                message="broker {broker} returned the last stable offset {number}, above its high "
                "watermark",
                broker="broker",
                number="last_stable_offset",
                offset="log_offset",
            ),
            Check(
                view="returned_to_clients",
                when="f = 'read' and isolation = 1 and last_stable_offset >= 0",
                bad="record_offset >= last_stable_offset",
                message="broker {broker} gave a consumer with read_committed the record at offset "
                "{number}, at or above the last stable offset",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="H6",
        title="Markers are what the coordinator decided",
        statement="The markers of a producer's epoch in a log commit only where its coordinator "
        "decided to commit, abort only where it decided to abort, and are there once the "
        "transaction is complete.",
        source="KIP-98; TransactionMarkerChannelManager",
        evidence=Evidence.TRACE,
        tables=(*_TABLES, "log_batch", "transaction_decision"),
        checks=(
            Check(
                view="decided_transactions",
                when="true",
                bad="(commits > 0 and any_commit = 0) or (aborts > 0 and any_abort = 0)",
                message="the log of the last leader ends a transaction of producer {number} "
                "otherwise than its coordinator on broker {broker} decided",
                broker="broker",
                number="producer_id",
                offset="log_offset",
            ),
            Check(
                view="decided_transactions",
                when="is_due",
                bad="(state = 'PrepareCommit' and commits = 0) "
                "or (state = 'PrepareAbort' and aborts = 0)",
                message="the coordinator on broker {broker} completed a transaction of producer "
                "{number} whose marker is not in the log",
                broker="broker",
                number="producer_id",
                offset="log_offset",
            ),
        ),
    ),
    Rule(
        id="H7",
        title="A fenced producer writes nothing",
        statement="Along a log the epochs of a producer id do not fall, and no record is "
        "acknowledged that was sent under an epoch below one that was given out before.",
        source="KIP-98, KIP-360; ProducerAppendInfo.checkProducerEpoch",
        evidence=Evidence.TRACE,
        tables=(*_TABLES, "log_batch"),
        checks=(
            Check(
                view="batches_of_producers",
                when="epoch_before is not null",
                bad="producer_epoch < epoch_before",
                message="the log of the last leader {broker} has a batch of an older epoch at "
                "offset {number}, after one of a newer epoch of the same producer",
                broker="broker",
                number="base_offset",
                offset="log_offset",
            ),
            Check(
                view="sends_of_producers",
                when="f = 'send' and fenced_below is not null",
                bad="producer_epoch < fenced_below",
                message="broker {broker} acknowledged the record at offset {number}, of an epoch "
                "that was fenced before it was sent",
                broker="broker",
                number="record_offset",
                offset="log_offset",
            ),
        ),
    ),
)
