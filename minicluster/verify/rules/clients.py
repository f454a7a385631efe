"""What clients were acknowledged and what they read (KIP-101, KIP-207, KIP-392)."""

from __future__ import annotations

from minicluster.verify.histories.clients import (
    AcknowledgedRecord,
    ServedEnd,
    ServedRecord,
    ValueAtOffset,
)
from minicluster.verify.histories.live_clients import LeaderBeside, LeaderLacks
from minicluster.verify.model import Evidence
from minicluster.verify.rules.replicas import a_leaders_high_watermark_does_not_decrease
from minicluster.verify.rules.rule import CASE, Broken, Findings, broken, exempt, rule

_OF_RECORDS = ("client_record", "history", "partition_event", "replica_log", "raft_event")


@rule("F1", "Acknowledged records are not lost",
      source="KIP-101, KIP-279; StrongISR as outcome", evidence=Evidence.TRACE,
      tables=_OF_RECORDS,
      breaks="Offset 1 is acknowledged with acks=all, and the log of the next leader ends at 1.",
      keeps="The next leader lacks a record of acks=1, and one that was compacted; "
      "broker 1 lost its copy, and leads no more.")  # fmt: skip
def acknowledged_records_are_not_lost(record: AcknowledgedRecord) -> Findings:
    """A record that was acknowledged by all in-sync replicas (acks=all), to a client of Kafka's or
    the cluster's own, is at its offset in the log of the last leader, except where an unclean
    election or the last ISR member has lost it, or where it was deleted or compacted away."""
    # The last leader's log decides: truncation by leader epoch (KIP-101) gives every replica that
    # log, so a record that it lacks is gone everywhere, whoever still has it now. Any other log
    # would accuse a follower that is only behind.
    if record.replica_deleted:
        yield exempt("the last leader has deleted the replica")
    elif record.excuse is not None:
        yield exempt(record.excuse)
    else:
        yield CASE
        if record.is_beyond_log or record.has_another_in_its_place:
            yield _lost(record.offset, record.leader)


@acknowledged_records_are_not_lost.also
def _while_the_cluster_runs_no_new_leader_lacks_them(leader: LeaderBeside) -> Findings:
    """Nobody knows the last leader yet, so each new one is looked at."""
    yield CASE


@acknowledged_records_are_not_lost.also
def _lacks_them(leader: LeaderLacks) -> Findings:
    """One that was elected cleanly, from several candidates: no loss is excused."""
    yield _lost(leader.acknowledged, leader.broker)


def _lost(offset: int, leader: int) -> Broken:
    return broken(
        f"a record that was acknowledged to a client at offset {offset} is not in the log of the "
        f"last leader {leader}",
        broker=leader,
    )


@rule("F6", "Clients read committed records only",
      source="KIP-392, KIP-207; ReplicaManager.readFromLog, FetchIsolation",
      evidence=Evidence.TRACE,
      tables=("client_record", "partition_event", "raft_event"),
      breaks="The high watermark is 2, and a consumer gets the record at 2.",
      keeps="A consumer gets the last committed record; follower 2, whose high "
      "watermark is 1, gives the one below it.")  # fmt: skip
def clients_read_committed_records_only(record: ServedRecord) -> Findings:
    """A consumer receives records below the high watermark of the replica that responds, and no
    higher high watermark than the replica has."""
    if record.excuse is not None:
        yield exempt(record.excuse)
        return
    own, returned = record.own_high_watermark, record.high_watermark
    if own is None:
        return
    yield CASE
    if record.offset >= own or (returned is not None and record.offset >= returned):
        yield broken(
            f"broker {record.broker} gave a client the record at offset {record.offset}, which was "
            "not below its high watermark",
            broker=record.broker,
        )


@clients_read_committed_records_only.also
def _and_see_no_higher_high_watermark(end: ServedEnd) -> Findings:
    if end.excuse is not None:
        yield exempt(end.excuse)
        return
    own, returned = end.own_high_watermark, end.high_watermark
    if own is None:
        return
    yield CASE
    if returned is not None and returned > own:
        yield broken(
            f"broker {end.broker} returned the high watermark {returned} to a client, above its "
            "own",
            broker=end.broker,
        )


@rule("F9", "Clients see one value at each offset",
      source="Jepsen, Kafka workload: inconsistent offsets, version orders",
      evidence=Evidence.TRACE,
      tables=_OF_RECORDS,
      breaks="Two consumers read different values at offset 1.",
      keeps="acks=1 promises no offset, and another partition has its own records.")  # fmt: skip
def clients_see_one_value_at_each_offset(value: ValueAtOffset) -> Findings:
    """All records that clients read at one offset of a partition, or that were acknowledged there
    for all in-sync replicas, have one value, except after an unclean election or the loss of the
    last ISR member."""
    if value.excuse is not None:
        yield exempt(value.excuse)
        return
    if value.is_beyond:
        yield exempt("the offset lies further back than the values that a live check remembers")
        return
    yield CASE
    # Readers cannot take back what they have read: an offset that shows another value later means
    # that what was shown before was not committed, or that a committed log was cut.
    if value.differs:
        yield broken(
            f"clients received two values at offset {value.offset} (broker {value.broker})",
            broker=value.broker,
        )


@a_leaders_high_watermark_does_not_decrease.also
def _also_as_clients_receive_it(end: ServedEnd) -> Findings:
    """The high watermarks of a leader in responses, within one leader epoch (F18)."""
    before, returned = end.returned_before, end.high_watermark
    if end.excuse is not None or not end.leads or before is None or returned is None:
        return
    if returned < before:
        yield broken(
            f"leader {end.broker} returned the high watermark {returned} to a client after a "
            "higher one in the same leader epoch",
            broker=end.broker,
        )
