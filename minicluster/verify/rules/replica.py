"""Rules over replicas, which need the event trace beside the log (views: ``replica_views``)."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule
from minicluster.verify.rules.trace import EPOCH_OF_LEO, LEO

_EVENTS = ("partition_event",)
_JOINING = "array_except(maximal_isr, isr)"
_ISR_END = f"array_min(transform(isr, m -> case when m = broker then leo else {LEO} end))"


def _check(group: str, when: str, bad: str, message: str, **says: str | bool) -> Check:
    told = {"broker": "broker", "number": "seq", "offset": "cast(null as bigint)", **says}
    return Check(group=group, when=when, bad=bad, message=message, **told)  # type: ignore[arg-type]


def _rule(
    rule_id: str, title: str, statement: str, source: str, tables: tuple[str, ...], *checks: Check
) -> Rule:
    return Rule(
        id=rule_id,
        title=title,
        statement=statement,
        source=source,
        evidence=Evidence.TRACE,
        tables=tables,
        checks=checks,
    )


RULES = (
    _rule(
        "B3",
        "Who may be elected holds what is committed",
        "A replica that runs and is in the committed ISR or ELR holds everything below the "
        "highest high watermark, but after an unclean election or the loss of the last member.",
        "KIP-497, KIP-966; StrongISR",
        ("partition_event", "raft_event"),
        _check(
            "holders",
            "kind <> 'commit' and array_contains(candidates, broker) and size(candidates) > 1 "
            "and true_hw is not null and not lossy",
            "leo < true_hw",
            "broker {broker} is in {new} and holds less than the high watermark {number}",
            new="candidates",
            number="true_hw",
        ),
        _check(
            "replicas",
            "kind in ('become_leader', 'become_follower') and last_kind <> 'delete'",
            "leo < last_leo",
            "broker {broker} lost records without truncating them: its log ends at {number}",
            number="leo",
            counts=False,
        ),
    ),
    _rule(
        "B5",
        "Partition epochs count the changes",
        "What brokers take over and what leaders hear carries the partition epoch of a committed "
        "record, which is one above the one before.",
        "KIP-497; PartitionRegistration.merge",
        ("partition_event", "rpc"),
        _check(
            "applied",
            "true",
            "pe is null",
            "broker {broker} took over a partition epoch that no record made (event {number})",
        ),
        _check(
            "proposals",
            "written is not null and answer = 0",
            "told.pe <> p_pe + 1",
            "request {number} of broker {broker} was answered with another partition epoch than "
            "its record made",
            offset="offset",
            broker="src",
            number="id",
            counts=False,
        ),
    ),
    _rule(
        "B6",
        "Partition epochs never go back on a broker",
        "A running broker never takes over an older partition epoch, and an equal one says the "
        "same leader epoch.",
        "KIP-497, KAFKA-13790; Partition.makeLeader, makeFollower",
        _EVENTS,
        _check(
            "replicas",
            "p_partition_epoch is not null",
            "partition_epoch < p_partition_epoch or (partition_epoch = last_partition_epoch "
            "and leader_epoch <> last_leader_epoch)",
            "broker {broker} went back to an older partition epoch, or gave one two meanings "
            "(event {number})",
        ),
    ),
    _rule(
        "B7",
        "One ISR change at a time",
        "A leader's ISR change ends by its own answer or by newer metadata before the next one "
        "begins.",
        "KIP-497, KAFKA-12686, KAFKA-12751; Partition.submitAlterPartition",
        _EVENTS,
        _check(
            "replicas",
            "kind = 'isr_pending'",
            "p_change.kind = 'isr_pending' and p_change.le = leader_epoch "
            "and p_change.pe = partition_epoch and p_change.isr <> maximal_isr",
            "leader {broker} proposed {new} while another change was under way (event {number})",
            new="maximal_isr",
        ),
        _check(
            "replicas",
            "kind = 'isr_revert'",
            "error is null",
            "leader {broker} gave up a change that nobody had refused (event {number})",
        ),
        _check(
            "replicas",
            "kind = 'become_leader' and p_change.kind = 'isr_pending'",
            "p_change.le = leader_epoch and p_change.pe >= partition_epoch",
            "leader {broker} gave up a change for metadata that is no newer (event {number})",
        ),
    ),
    _rule(
        "B8",
        "The high watermark follows a shrink",
        "In the step in which a shrink is committed the leader moves its high watermark to what "
        "the smaller ISR holds.",
        "KAFKA-13091; Partition.handleAlterPartitionUpdate",
        _EVENTS,
        _check(
            "replicas",
            "kind = 'isr_commit' and size(array_except(last_isr, isr)) > 0",
            f"size(isr) >= coalesce(min_isr, 1) and {_ISR_END} > hw_new "
            f"and forall(map_keys(known), k -> array_contains(isr, cast(k as bigint)) "
            "or coalesce(get(try_element_at(known, k), 0), -1) <= hw_new) "
            # Who leaves and has fetched since that was asked for may be caught up, and waited for.
            "and forall(array_except(last_isr, isr), k -> p_change.known is null or coalesce("
            "try_element_at(p_change.known, cast(k as string)) "
            "= try_element_at(known, cast(k as string)), true)) "
            "and coalesce(next_kind, '') <> 'hw'",
            "leader {broker} left its high watermark where it was when the ISR shrank to {new} "
            "(event {number})",
            new="isr",
        ),
    ),
    _rule(
        "B10",
        "No progress below the minimum",
        "A leader's high watermark does not rise while its ISR is below min.insync.replicas.",
        "KIP-966, KAFKA-15583; Partition.maybeIncrementLeaderHW",
        _EVENTS,
        _check(
            "replicas",
            "kind = 'hw' and maximal_isr is not null and min_isr is not null",
            "hw_new > hw_old and size(isr) < min_isr",
            "leader {broker} moved its high watermark with the ISR {new} (event {number})",
            new="isr",
        ),
    ),
    _rule(
        "E15",
        "The leader epoch counts the elections",
        "Brokers and leaders know each state under the leader epoch that the log makes of it: one "
        "more for each record that names a leader.",
        "KIP-497, KIP-631; PartitionRegistration.merge",
        ("partition_event", "rpc"),
        _check(
            "applied",
            "pe is not null",
            "le <> leader_epoch",
            "broker {broker} took over leader epoch {number}, which is not what the log makes",
            offset="offset",
            number="leader_epoch",
        ),
        _check(
            "proposals",
            "written is not null and answer = 0",
            "told.le <> le",
            "request {number} of broker {broker} was answered with another leader epoch than the "
            "log makes",
            offset="offset",
            broker="src",
            number="id",
            counts=False,
        ),
    ),
    _rule(
        "E27",
        "A new topic begins empty",
        "A broker that takes a replica over for the first time, or again after deleting it, "
        "begins with an empty log.",
        "KIP-516, KAFKA-14616; LogManager.isStrayKraftReplica",
        _EVENTS,
        _check(
            "replicas",
            "kind in ('become_leader', 'become_follower') "
            "and coalesce(before_it, 'delete') = 'delete'",
            "leo > 0",
            "broker {broker} began a new replica with a log that ends at {number}",
            number="leo",
        ),
    ),
    _rule(
        "E36",
        "Brokers do as their images say",
        "A broker leads what the metadata gives it to lead and nothing else, even while it shuts "
        "down.",
        "KAFKA-14296, KAFKA-13858; ReplicaManager.applyDelta",
        ("partition_event", "publish", "replica_log"),
        _check(
            "applied",
            "kind <> 'isr_commit' and pe is not null",
            "(kind = 'become_leader') <> (leader = broker)",
            "broker {broker} took another role than the metadata gives it (event {number})",
            offset="offset",
        ),
        _check(
            "acting",
            "kind in ('append', 'hw', 'ack', 'stop') and seen is not null",
            "seen.live and seen.le > leader_epoch",
            "broker {broker} acts as leader of an epoch that its own image has left behind "
            "(event {number})",
            offset="at",
        ),
    ),
    _rule(
        "E37",
        "Replicas are where they are assigned",
        "A broker deletes only replicas that its image does not give it, and keeps no others.",
        "KAFKA-13127, KAFKA-14616; ReplicaManager.applyDelta, LogManager.isStrayKraftReplica",
        ("partition_event", "publish", "replica_log"),
        _check(
            "acting",
            "kind = 'delete'",
            "coalesce(seen.live and array_contains(seen.replicas, cast(broker as int)), false)",
            "broker {broker} deleted a replica that is assigned to it (event {number})",
            offset="at",
        ),
        _check(
            "acting",
            "kind = 'end'",
            "not coalesce(seen.live and array_contains(seen.replicas, cast(broker as int)), false)",
            "broker {broker} kept a replica that is not assigned to it",
            offset="at",
        ),
    ),
    _rule(
        "F4",
        "Replicas do not part below their high watermarks",
        "Two replicas hold the same record at every offset below both of their high watermarks, "
        "and at the same offset and leader epoch at any time, but after an unclean election or the "
        "loss of the last member.",
        "KIP-101, KIP-279; log matching",
        ("replica_log", "partition_event", "raft_event"),
        _check(
            "replica_values",
            "told is not null",
            "lowest_told <> highest_told",
            "broker {broker} holds another record than others do at offset {number}, which is "
            "committed",
            number="offset",
        ),
        _check(
            "replica_values",
            "value_id is not null",
            "lowest_value <> highest_value",
            "broker {broker} held another record than others did at offset {number}, in the same "
            "leader epoch",
            number="offset",
            counts=False,
        ),
    ),
    _rule(
        "F11",
        "What is sent again comes once",
        "A record of an idempotent producer is at one offset of a log, however often it was sent, "
        "but after an unclean election or the loss of the last member.",
        "KIP-98; ProducerStateManager, ProducerAppendInfo",
        ("replica_log", "partition_event", "raft_event", "history"),
        _check(
            "replica_values",
            "at = 'end' and numbered",
            "copies > 1",
            "broker {broker} holds a record of an idempotent producer more than once (offset "
            "{number})",
            number="offset",
        ),
    ),
    _rule(
        "F14",
        "Only who has caught up may join",
        "A leader proposes a replica that has fetched in this leader epoch, up to the high "
        "watermark and to the start of the epoch.",
        "KIP-497; Partition.isFollowerInSync",
        _EVENTS,
        _check(
            "replicas",
            f"kind = 'isr_pending' and size({_JOINING}) > 0 and follower_leos is not null",
            f"exists({_JOINING}, m -> {LEO} < hw_new or {LEO} < coalesce(epoch_start, 0) "
            f"or {EPOCH_OF_LEO} <> leader_epoch)",
            "leader {broker} proposed {new} before all of them had caught up (event {number})",
            new="maximal_isr",
        ),
    ),
    _rule(
        "F15",
        "Fetches of another leader epoch are refused",
        "A fetch that names another leader epoch than its partition has where it is handled "
        "brings no records.",
        "KIP-320, KAFKA-7395; Partition.localLogWithEpochOrThrow",
        ("rpc", "partition_event"),
        _check(
            "fetches",
            "error is not null",
            "asked <> seen and error = 0",
            "a fetch of broker {broker} in another leader epoch was answered (request {number})",
            broker="src",
            number="id",
            topic="cast(null as string)",
        ),
    ),
    _rule(
        "F16",
        "One writer per leader epoch",
        "In each leader epoch of a partition records are taken from clients by one broker only.",
        "KIP-101, KIP-320; Partition.appendRecordsToLeader",
        _EVENTS,
        _check(
            "replicas",
            "kind = 'append' and maximal_isr is not null",
            "lowest_writer <> highest_writer",
            "broker {broker} was not the only one to write in its leader epoch (event {number})",
        ),
    ),
    _rule(
        "F17",
        "Leader epochs ascend along a log",
        "The records of a replica have leader epochs that never go back: each epoch begins once.",
        "KIP-101; LeaderEpochFileCache",
        ("replica_log",),
        _check(
            "replica_logs",
            "true",
            "leader_epoch < p_leader_epoch",
            "broker {broker} holds leader epoch {number} after a later one",
            number="leader_epoch",
        ),
    ),
    _rule(
        "F18",
        "A leader's high watermark does not go back",
        "While a broker leads an epoch its high watermark only rises, and no consumer is told of "
        "it before it has passed the start of the epoch.",
        "KIP-101, KIP-207; Partition.maybeIncrementLeaderHW, fetchOffsetForTimestamp",
        ("partition_event", "rpc"),
        _check(
            "replicas",
            "kind = 'hw' and maximal_isr is not null",
            "hw_new < hw_old",
            "leader {broker} moved its high watermark back to {number}",
            number="hw_new",
        ),
        _check(
            "listed",
            "true",
            "end_offset < began",
            "leader {broker} told a consumer {number} for the end of the partition, which lies "
            "before the start of its leader epoch",
            number="end_offset",
        ),
    ),
)
