"""Producers with ids, and their transactions (KIP-98, KIP-360, KIP-447)."""

from __future__ import annotations

from minicluster.verify.histories.clients import ProducerSend
from minicluster.verify.histories.transactions import (
    COMMIT,
    NumberedRead,
    PassedRecord,
    ProducerBatch,
    TransactionalRead,
    TransactionDecision,
    TransformedRecord,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, rule

_TABLES = ("client_record", "partition_event", "raft_event")


@rule("H3", "read_committed sees no aborted record",
      source="KIP-98; FetchIsolation.TXN_COMMITTED; Jepsen: G1a, aborted read",
      at_end=True, evidence=Evidence.TRACE, tables=(*_TABLES, "log_batch"),
      breaks="A read_committed consumer gets a record whose transaction is aborted.",
      keeps="The aborted record is dropped and the committed one seen; another "
      "producer aborts its own.")  # fmt: skip
def read_committed_sees_no_aborted_record(read: TransactionalRead) -> Findings:
    """A consumer with read_committed sees no record of a transaction that was aborted, or that is
    still open."""
    if read.excuse is not None:
        yield exempt(read.excuse)
        return
    if not read.visible:
        return
    yield CASE
    if read.ended_by != COMMIT:
        yield broken(
            f"broker {read.broker} gave a consumer with read_committed the record at offset "
            f"{read.offset}, whose transaction was not committed",
            broker=read.broker,
        )


@rule("H4", "read_committed leaves no committed record out",
      source="KIP-98; TransactionIndex.collectAbortedTxns",
      at_end=True, evidence=Evidence.TRACE, tables=(*_TABLES, "log_batch"),
      breaks="A transaction is committed, and a response lists it as aborted.",
      keeps="The aborted record is dropped and the committed one seen; another "
      "producer aborts its own.")  # fmt: skip
def read_committed_leaves_no_committed_record_out(read: TransactionalRead) -> Findings:
    """No response to a consumer with read_committed lists a committed transaction as aborted."""
    if read.excuse is not None:
        yield exempt(read.excuse)
        return
    if read.ended_by != COMMIT:
        return
    yield CASE
    if read.visible is False:
        yield broken(
            f"broker {read.broker} called the transaction of the record at offset {read.offset} "
            "aborted, which was committed",
            broker=read.broker,
        )


@rule("H6", "Markers are what the coordinator decided",
      source="KIP-98; TransactionMarkerChannelManager",
      at_end=True, evidence=Evidence.TRACE,
      tables=(*_TABLES, "log_batch", "transaction_decision"),
      breaks="The coordinator decides to commit, and the log has an abort marker.",
      keeps="A commit marker is written twice, and the abort that follows is not "
      "completed.")  # fmt: skip
def markers_are_what_the_coordinator_decided(decision: TransactionDecision) -> Findings:
    """The markers of a producer's epoch in a log commit only where its coordinator decided to
    commit, abort only where it decided to abort, and are there once the transaction is complete."""
    yield CASE
    commits_alone = decision.commit_markers > 0 and not decision.decided_commit
    aborts_alone = decision.abort_markers > 0 and not decision.decided_abort
    if commits_alone or aborts_alone:
        yield broken(
            f"the log of the last leader ends a transaction of producer {decision.producer_id} "
            f"otherwise than its coordinator on broker {decision.broker} decided",
            broker=decision.broker,
        )
    if not decision.is_due:
        return
    yield CASE
    is_missing = (decision.state == "PrepareCommit" and not decision.commit_markers) or (
        decision.state == "PrepareAbort" and not decision.abort_markers
    )
    if is_missing:
        yield broken(
            f"the coordinator on broker {decision.broker} completed a transaction of producer "
            f"{decision.producer_id} whose marker is not in the log",
            broker=decision.broker,
        )


@markers_are_what_the_coordinator_decided.also
def _not_where_records_were_lost(batch: ProducerBatch) -> Findings:
    if batch.marker is not None and batch.excuse is not None:
        yield exempt(batch.excuse)


@rule("H7", "A fenced producer writes nothing",
      source="KIP-98, KIP-360; ProducerAppendInfo.checkProducerEpoch",
      at_end=True, evidence=Evidence.TRACE, tables=(*_TABLES, "log_batch"),
      breaks="A batch of epoch 0 follows one of epoch 1 of the same producer.",
      keeps="A record of epoch 0 was sent before epoch 1 was given out; epochs "
      "rise, and another producer has its own.")  # fmt: skip
def a_fenced_producer_writes_nothing(batch: ProducerBatch) -> Findings:
    """Along a log the epochs of a producer id do not fall, and no record is acknowledged that was
    sent with an old epoch after a newer one had been given out."""
    if batch.epoch_before is None:
        return
    if batch.excuse is not None:
        yield exempt(batch.excuse)
        return
    yield CASE
    if batch.epoch is not None and batch.epoch < batch.epoch_before:
        yield broken(
            f"the log of the last leader {batch.leader} has a batch of an older epoch at offset "
            f"{batch.base_offset}, after one of a newer epoch of the same producer",
            broker=batch.leader,
        )


@a_fenced_producer_writes_nothing.also
def _and_is_acknowledged_nothing(send: ProducerSend) -> Findings:
    yield CASE
    if send.epoch < send.fenced_below:
        yield broken(
            f"broker {send.broker} acknowledged the record at offset {send.offset}, of an epoch "
            "that was fenced before it was sent",
            broker=send.broker,
        )


@rule("H8", "No record is seen at two offsets",
      source="KIP-98; Jepsen, Kafka workload: duplicate",
      at_end=True, evidence=Evidence.TRACE, tables=_TABLES,
      breaks="Sequence number 3 of a producer's epoch is read at offsets 0 and 1.",
      keeps="A user sends one value twice, two members see it; other epochs and "
      "producers count from 0, an aborted copy is not seen.")  # fmt: skip
def no_record_is_seen_at_two_offsets(read: NumberedRead) -> Findings:
    """A record of a producer with an id, by its epoch and sequence number, is seen at one
    offset."""
    yield CASE
    if read.lowest_offset != read.highest_offset:
        yield broken(
            f"clients saw the record at offset {read.offset} at another offset as well",
            broker=read.broker,
        )


@rule("H9", "A transform writes each record once",
      source="KIP-98, KIP-447; KafkaProducer.sendOffsetsToTransaction",
      at_end=True, evidence=Evidence.TRACE,
      tables=("client_record", "group_event", "log_batch", "partition_event", "raft_event",
              "replica_log"),
      breaks="A transforming group has written the record of orders-0@0 twice, in two committed "
      "transactions.",
      keeps="The first of two transactions is aborted, and what is read behind the "
      "committed offset is not written yet.")  # fmt: skip
def a_transform_writes_each_record_once(record: TransformedRecord) -> Findings:
    """Each record that a transforming group has passed is in one committed transaction of its
    members, and no record is in two."""
    yield CASE
    if record.copies > record.sources:
        yield broken(
            f"a transforming group wrote the record at offset {record.offset} more than once",
            broker=record.broker,
        )


@a_transform_writes_each_record_once.also
def _and_leaves_none_out(record: PassedRecord) -> Findings:
    yield CASE
    if not record.is_written:
        yield broken(
            f"a transforming group has passed the record at offset {record.offset}, and wrote "
            "nothing for it",
            broker=record.broker,
        )
