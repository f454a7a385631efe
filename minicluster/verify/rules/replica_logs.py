"""The records that replicas hold where a run, a broker or a log ends (KIP-101, KIP-279, KIP-98)."""

from __future__ import annotations

from minicluster.verify.histories.replica_logs import (
    CommittedRecordOfMember,
    HeldRecord,
    IdempotentRecord,
    RecordInLog,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, rule


@rule("F2", "Every ISR member holds what is committed",
      source="KIP-101, KIP-320; StrongISR", at_end=True, evidence=Evidence.TRACE,
      tables=("replica_log", "partition_event", "raft_event"),
      breaks="Leader 1 has two committed records; broker 2 is in the ISR, and has one.",
      keeps="Broker 2, with one of two committed records, has left the ISR; 3 has "
      "another tail above the high watermark.")  # fmt: skip
def every_isr_member_holds_what_is_committed(record: CommittedRecordOfMember) -> Findings:
    """At the end of a run each running member of the committed ISR holds, at every offset below its
    leader's high watermark, the leader's record, except what an unclean election or the last ISR
    member has lost."""
    if record.excuse is not None:
        yield exempt(record.excuse)
        return
    yield CASE
    # Any member of the ISR may be elected cleanly at any moment: what it lacks is lost then, though
    # no election has shown it yet.
    # A log that ends further on and has nothing there begins later, or was compacted.
    lacks = record.is_held is None and record.log_end <= record.offset
    if lacks or record.is_held is False:
        yield broken(
            f"broker {record.broker} is in the ISR and lacks the committed record at offset "
            f"{record.offset}, or holds another there",
            broker=record.broker,
        )


@rule("F4", "Replicas do not diverge below their high watermarks",
      source="KIP-101, KIP-279; log matching", at_end=True, evidence=Evidence.TRACE,
      tables=("replica_log", "partition_event", "raft_event"),
      breaks="KIP-279: brokers 1 and 2 have different records at offset 1, and both take it for "
      "committed.",
      keeps="Brokers 1 and 2 differ above the high watermark of 2, in epochs of "
      "their own.")  # fmt: skip
def replicas_do_not_diverge(record: HeldRecord) -> Findings:
    """Two replicas hold the same record at every offset below both of their high watermarks, and at
    the same offset and leader epoch at any time, except what an unclean election or the last ISR
    member has lost."""
    if record.excuse is not None:
        if record.is_committed:
            yield exempt(record.excuse)
        return
    if record.is_committed:
        yield CASE
        if not record.agrees_with_committed:
            yield broken(
                f"broker {record.broker} holds a record at the committed offset {record.offset} "
                "that differs from other replicas'",
                broker=record.broker,
            )
    if not record.agrees_in_epoch:
        yield broken(
            f"broker {record.broker} held a record at offset {record.offset} that differs from "
            "other replicas' in the same leader epoch",
            broker=record.broker,
        )


@rule("F11", "A retried record is appended once",
      source="KIP-98; ProducerStateManager, ProducerAppendInfo", evidence=Evidence.TRACE,
      at_end=True, tables=("replica_log", "partition_event", "raft_event", "history"),
      breaks="A record of an idempotent producer is at offsets 0 and 2.",
      keeps="A record of an idempotent producer is at offset 0, and one of another "
      "producer at 1 and 2.")  # fmt: skip
def a_retried_record_is_appended_once(record: IdempotentRecord) -> Findings:
    """A record of an idempotent producer is at one offset of a log, however often it was sent,
    except what an unclean election or the last ISR member has lost."""
    if record.excuse is not None:
        yield exempt(record.excuse)
        return
    yield CASE
    if record.copies > 1:
        yield broken(
            f"broker {record.broker} holds a record of an idempotent producer more than once "
            f"(offset {record.offset})",
            broker=record.broker,
        )


@rule("F17", "Leader epochs do not decrease along a replica's log",
      source="KIP-101; LeaderEpochFileCache", at_end=True, evidence=Evidence.TRACE,
      tables=("replica_log",),
      breaks="A replica holds records of leader epochs 0, 2 and 1, in this order.",
      keeps="A replica holds records of leader epochs 0, 0, 2 and 5, in this order.")  # fmt: skip
def leader_epochs_do_not_decrease_along_a_log(record: RecordInLog) -> Findings:
    """The leader epochs of a replica's records never decrease: each epoch begins once."""
    yield CASE
    before = record.leader_epoch_before
    if before is not None and record.leader_epoch < before:
        yield broken(
            f"broker {record.broker} holds leader epoch {record.leader_epoch} after a later one",
            broker=record.broker,
        )
