"""What clients were acknowledged and what they read (KIP-101, KIP-279)."""

from __future__ import annotations

from minicluster.verify.histories.clients import AcknowledgedRecord, ValueAtOffset
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, rule

_OF_RECORDS = ("client_record", "history", "partition_event", "replica_log", "raft_event")


@rule("F1", "Acknowledged records are not lost",
      source="KIP-101, KIP-279; StrongISR as outcome", evidence=Evidence.TRACE,
      at_end=True, tables=_OF_RECORDS,
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
            yield broken(
                f"a record that was acknowledged to a client at offset {record.offset} is not in "
                f"the log of the last leader {record.leader}",
                broker=record.leader,
            )


@rule("F9", "Clients see one value at each offset",
      source="Jepsen, Kafka workload: inconsistent offsets, version orders",
      evidence=Evidence.TRACE, at_end=True, tables=_OF_RECORDS,
      breaks="Two consumers read different values at offset 1.",
      keeps="acks=1 promises no offset, and another partition has its own records.")  # fmt: skip
def clients_see_one_value_at_each_offset(value: ValueAtOffset) -> Findings:
    """All records that clients read at one offset of a partition, or that were acknowledged there
    for all in-sync replicas, have one value, except after an unclean election or the loss of the
    last ISR member."""
    if value.excuse is not None:
        yield exempt(value.excuse)
        return
    yield CASE
    # Readers cannot take back what they have read: an offset that shows another value later means
    # that what was shown before was not committed, or that a committed log was cut.
    if value.differs:
        yield broken(
            f"clients received two values at offset {value.offset} (broker {value.broker})",
            broker=value.broker,
        )
