"""The events of each replica in order: its high watermark, its ISR changes, its log."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.replicas.held_logs import HELD_BY_ISR
from minicluster.verify.rules.trace.windows import BEFORE, UP_TO_HERE

_LEO = "coalesce(get(try_element_at(followers, cast(m as string)), 0), -1)"

_EPOCH_OF_LEO = "coalesce(get(try_element_at(followers, cast(m as string)), 1), -1)"

# A member that is a replica to its leader. On ZooKeeper, whose partitions no log has, a move takes
# a replica from its leader before the ISR loses it (KafkaController.onPartitionReassignment).
_FOLLOWED = "(in_log or try_element_at(followers, cast(m as string)) is not null)"

_TABLES = ("partition_event",)

_JOINING = "array_except(maximal_isr, isr)"

_ISR_END = f"array_min(transform(isr, m -> case when m = broker then leo else {_LEO} end))"

# Leaders' events with their followers' fetch states; truncations with the highest high watermark.
_MINE = "partition by e.run, e.topic_id, e.part, e.broker, e.incarnation order by e.seq"

_STATES = f"""
select e.*, cast(null as bigint) as log_offset, u.unclean_from, l.lost_from,
  k.run is not null as in_log,
  max(partition_epoch) over ({_MINE} {BEFORE}) as p_partition_epoch,
  lag(partition_epoch) over ({_MINE}) as last_partition_epoch,
  lag(leader_epoch) over ({_MINE}) as last_leader_epoch,
  lag(isr) over ({_MINE}) as last_isr,
  lag(kind) over ({_MINE}) as last_kind,
  lag(leo) over ({_MINE}) as last_leo,
  lead(kind) over ({_MINE}) as next_kind,
  last(case when kind in ('become_leader', 'become_follower', 'isr_pending', 'isr_commit',
      'isr_revert')
    then named_struct('kind', kind, 'isr', maximal_isr, 'le', leader_epoch, 'pe', partition_epoch,
      'followers', from_json(follower_leos, 'map<string, array<bigint>>'))
    end, true) over ({_MINE} {BEFORE}) as p_change,
  first(case when kind = 'become_leader' then leo end, true) over (
    partition by e.run, e.topic_id, e.part, e.broker, e.incarnation, leader_epoch order by e.seq
    {UP_TO_HERE}) as epoch_start,
  lag(kind) over (partition by e.run, e.topic_id, e.part, e.broker order by e.seq) as before_it,
  min(case when kind = 'append' and maximal_isr is not null then broker end) over (
    partition by e.run, e.topic_id, e.part, leader_epoch) as lowest_writer,
  max(case when kind = 'append' and maximal_isr is not null then broker end) over (
    partition by e.run, e.topic_id, e.part, leader_epoch) as highest_writer,
  from_json(follower_leos, 'map<string, array<bigint>>') as followers,
  filter(maximal_isr, m -> m <> broker) as others,
  max(case when kind = 'hw' and maximal_isr is not null then hw_new end) over (
    partition by e.run, e.topic_id, e.part order by e.seq {BEFORE}) as true_hw,
  max(case when kind = 'hw' and maximal_isr is not null then leader_epoch end) over (
    partition by e.run, e.topic_id, e.part order by e.seq {BEFORE}) as hw_epoch,
  max(case when kind = 'append' then leader_epoch end) over (
    partition by e.run, e.topic_id, e.part, e.broker order by e.seq {BEFORE}) as log_epoch,
  max(hw_new) over (
    partition by e.run, e.topic_id, e.part, e.broker order by e.seq {BEFORE}) as own_hw
from partition_event e
left join (select distinct run, topic_id, part from partition_states) k
  on e.run = k.run and e.topic_id = k.topic_id and e.part = k.part
left join (select run, topic_id, part, min(le) as unclean_from from partition_states
  where unclean group by run, topic_id, part) u
  on e.run = u.run and e.topic_id = u.topic_id and e.part = u.part
left join (select run, topic_id, part, min(leader_epoch) as lost_from from electable_replicas
  where lossy and kind = 'become_leader' group by run, topic_id, part) l
  on e.run = l.run and e.topic_id = l.topic_id and e.part = l.part
"""


VIEWS = (View(name="replica_events", sql=_STATES),)

RULES = (
    Rule(
        id="B2",
        title="The high watermark waits for the maximal ISR",
        statement="A leader advances its high watermark only over offsets that every member of "
        "its maximal ISR has fetched up to, in this leader epoch, and that the member's own log "
        "has.",
        source="KIP-497, KIP-101; Partition.maybeIncrementLeaderHW",
        evidence=Evidence.TRACE,
        tables=("partition_event",),
        checks=(
            Check(
                view="replica_events",
                when="kind = 'hw' and maximal_isr is not null and follower_leos is not null",
                bad=f"leo < hw_new or exists(others, m -> {_FOLLOWED} "
                f"and ({_LEO} < hw_new or {_EPOCH_OF_LEO} <> leader_epoch))",
                message="leader {broker} advanced its high watermark to {number} before all "
                "of {new} had fetched up to it",
                offset="log_offset",
                broker="broker",
                new="maximal_isr",
                number="hw_new",
            ),
            HELD_BY_ISR,
        ),
    ),
    Rule(
        id="B6",
        title="Partition epochs never decrease on a broker",
        statement="A running broker never applies an older partition epoch, and an equal "
        "partition epoch has the same leader epoch.",
        source="KIP-497, KAFKA-13790; Partition.makeLeader, makeFollower",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="replica_events",
                when="p_partition_epoch is not null",
                bad="partition_epoch < p_partition_epoch "
                "or (partition_epoch = last_partition_epoch and leader_epoch <> last_leader_epoch)",
                message="broker {broker} applied an older partition epoch, or the same one "
                "with another leader epoch (event {number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
            ),
        ),
    ),
    Rule(
        id="B7",
        title="One ISR change is in flight at a time",
        statement="A leader's ISR change is completed by its own response or by newer metadata "
        "before the next one begins.",
        source="KIP-497, KAFKA-12686, KAFKA-12751; Partition.submitAlterPartition",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="replica_events",
                when="kind = 'isr_pending'",
                bad="p_change.kind = 'isr_pending' and p_change.le = leader_epoch "
                "and p_change.pe = partition_epoch and p_change.isr <> maximal_isr",
                message="leader {broker} proposed {new} while another ISR change was in "
                "flight (event {number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
                new="maximal_isr",
            ),
            Check(
                view="replica_events",
                when="kind = 'isr_revert'",
                bad="error is null",
                message="leader {broker} reverted an ISR change that was not rejected (event "
                "{number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
            ),
            Check(
                view="replica_events",
                when="kind = 'become_leader' and p_change.kind = 'isr_pending'",
                bad="p_change.le = leader_epoch and p_change.pe >= partition_epoch",
                message="leader {broker} dropped an ISR change for metadata that is not "
                "newer (event {number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
            ),
        ),
    ),
    Rule(
        id="B8",
        title="The high watermark advances when the ISR shrinks",
        statement="When a shrink of the ISR is committed, the leader advances its high "
        "watermark in the same step to the lowest log end of the smaller ISR.",
        source="KAFKA-13091; Partition.handleAlterPartitionUpdate",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="replica_events",
                when="kind = 'isr_commit' and size(array_except(last_isr, isr)) > 0",
                bad=f"size(isr) >= coalesce(min_isr, 1) and {_ISR_END} > hw_new "
                f"and forall(map_keys(followers), k -> array_contains(isr, cast(k as bigint)) "
                "or coalesce(get(try_element_at(followers, k), 0), -1) <= hw_new) "
                # A replica that leaves and has fetched since the request may have caught up: the
                # leader waits for it.
                "and forall(array_except(last_isr, isr), k -> p_change.followers is null "
                "or coalesce(try_element_at(p_change.followers, cast(k as string)) "
                "= try_element_at(followers, cast(k as string)), true)) "
                "and coalesce(next_kind, '') <> 'hw'",
                message="leader {broker} did not advance its high watermark when the ISR "
                "shrank to {new} (event {number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="B10",
        title="The high watermark does not advance below min.insync.replicas",
        statement="A leader's high watermark does not advance while its ISR is smaller than "
        "min.insync.replicas.",
        source="KIP-966, KAFKA-15583; Partition.maybeIncrementLeaderHW",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="replica_events",
                when="kind = 'hw' and maximal_isr is not null and min_isr is not null",
                bad="hw_new > hw_old and size(isr) < min_isr",
                message="leader {broker} advanced its high watermark with the ISR {new}, "
                "below min.insync.replicas (event {number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="E27",
        title="A new replica begins empty",
        statement="A replica that a broker creates for the first time, or again after deleting "
        "it, begins with an empty log.",
        source="KIP-516, KAFKA-14616; LogManager.isStrayKraftReplica",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="replica_events",
                when="kind in ('become_leader', 'become_follower') "
                "and coalesce(before_it, 'delete') = 'delete'",
                bad="leo > 0",
                message="broker {broker} created a new replica whose log ends at {number}",
                broker="broker",
                number="leo",
                offset="cast(null as bigint)",
            ),
        ),
    ),
    Rule(
        id="F5",
        title="Committed records are not truncated",
        statement="No replica truncates below the highest high watermark of its partition, "
        "except after an unclean election or the loss of the last ISR member. A replica whose "
        "records are all older than the epoch of that high watermark may have diverged there, "
        "and does not truncate below its own high watermark.",
        source="KIP-101, KIP-279; AbstractFetcherThread.truncate",
        evidence=Evidence.TRACE,
        tables=("partition_event", "raft_event"),
        checks=(
            Check(
                view="replica_events",
                when="kind = 'truncate' "
                "and (unclean_from is null or coalesce(leader_epoch < unclean_from, false)) "
                "and (lost_from is null or coalesce(leader_epoch < lost_from, false))",
                bad="offset < case when coalesce(log_epoch < hw_epoch, false) "
                "then coalesce(own_hw, 0) else true_hw end",
                message="broker {broker} truncated below the high watermark {number}",
                offset="log_offset",
                broker="broker",
                number="true_hw",
            ),
        ),
    ),
    Rule(
        id="F8",
        title="acks=all waits for the whole maximal ISR",
        statement="When a Produce with acks=all succeeds, every member of the maximal ISR "
        "holds its records, and they are at least min.insync.replicas.",
        source="KIP-497; Partition.checkEnoughReplicasReachOffset",
        evidence=Evidence.TRACE,
        tables=("partition_event",),
        checks=(
            Check(
                view="replica_events",
                when="kind = 'ack' and maximal_isr is not null and follower_leos is not null",
                bad=f"leo <= offset or exists(others, m -> {_FOLLOWED} and {_LEO} <= offset) "
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
        id="F14",
        title="Only a caught-up replica is proposed for the ISR",
        statement="A leader proposes a replica that has fetched in this leader epoch, up to "
        "the high watermark and to the start of the epoch.",
        source="KIP-497; Partition.isFollowerInSync",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="replica_events",
                when=f"kind = 'isr_pending' and size({_JOINING}) > 0 and follower_leos is not null",
                bad=f"exists({_JOINING}, m -> {_LEO} < hw_new or {_LEO} < coalesce(epoch_start, 0) "
                f"or {_EPOCH_OF_LEO} <> leader_epoch)",
                message="leader {broker} proposed {new} before all of them had caught up "
                "(event {number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
                new="maximal_isr",
            ),
        ),
    ),
    Rule(
        id="F16",
        title="One writer per leader epoch",
        statement="In each leader epoch of a partition one broker only appends records of clients.",
        source="KIP-101, KIP-320; Partition.appendRecordsToLeader",
        evidence=Evidence.TRACE,
        tables=_TABLES,
        checks=(
            Check(
                view="replica_events",
                when="kind = 'append' and maximal_isr is not null",
                bad="lowest_writer <> highest_writer",
                message="broker {broker} appended records in a leader epoch in which another "
                "broker did (event {number})",
                broker="broker",
                number="seq",
                offset="cast(null as bigint)",
            ),
        ),
    ),
)
