"""Producers with ids: what the logs hold of them, what coordinators decide, what consumers see
(KIP-98, KIP-360, KIP-447).

All of it is judged when the run is over: the marker that ends a transaction comes last. Of the logs
those of the last leaders count.

subject   a producer id: its batches in the logs at the end of the run, the decisions of its
          coordinator, the records of it that clients read
keeps     by partition its batches in order, each with the marker that ends its transaction; by the
          name of the topic the markers and decisions; by sequence number where records were seen;
          the epochs that were given out
"""

from __future__ import annotations

from collections import Counter, defaultdict

from msgspec import Struct

from minicluster.verify.group.event import ClientEvent
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.model import Evidence
from minicluster.verify.partition.clients import ALL_REPLICAS
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import TopicNames
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule

COMMIT, ABORT = "commit", "abort"
_DECIDED = {"PrepareCommit": COMMIT, "PrepareAbort": ABORT}
_TABLES = ("client_record", "partition_event", "raft_event")


class Batch:
    """A batch of a producer in the log of the last leader, a row of ``log_batch``.

    Shapes:  marker: commit abort; None: data. ended_by: the marker that ends the transaction which
             is open there; None: it is still open. excuse: why nothing is promised of the
             partition.
    """

    __slots__ = (
        "base_offset", "broker", "ended_by", "epoch", "excuse", "last_offset", "marker", "part",
        "place", "producer_id", "seq", "topic", "transactional",
    )  # fmt: skip

    def __init__(self, row: Row, excuse: str | None) -> None:
        self.seq: int = row["seq"]
        self.broker: int = row["broker"]
        self.topic: str = row["topic"]
        self.part: int = row["part"]
        self.place: Place = (row["topic_id"], row["part"])
        self.base_offset: int = row["base_offset"]
        self.last_offset: int | None = row["last_offset"]
        self.producer_id: int = row["producer_id"]
        self.epoch: int | None = row["producer_epoch"]
        self.transactional: bool | None = row["transactional"]
        self.marker: str | None = row["marker"]
        self.ended_by: str | None = None
        self.excuse = excuse


class Decision(Struct):
    """A decision of the coordinator about a partition of a transaction, in one epoch.

    Shapes:  marker: the one that has to come of it. completed: it knows that it is there.
    """

    broker: int
    producer_id: int
    topic: str
    part: int
    epoch: int
    marker: str
    completed: bool = False


class Written:
    """The writes of a producer to the partitions of one name: decisions name no topic id.

    Shapes:  first_epoch: of its records. markers: by epoch and kind, how many.
    """

    def __init__(self) -> None:
        self.first_epoch: int | None = None
        self.markers: Counter[tuple[int, str]] = Counter()
        self.decisions: dict[tuple[int, str], Decision] = {}


class Producer:
    """One producer id."""

    def __init__(self) -> None:
        self.batches: dict[Place, list[Batch]] = defaultdict(list)
        self.written: dict[tuple[str, int], Written] = defaultdict(Written)
        self.seen: dict[tuple[Place, int, int], list[ClientEvent]] = defaultdict(list)
        self.given: list[tuple[int, int]] = []  # event, epoch; rising

    def on_batch(self, batch: Batch) -> None:
        """The next batch of a log."""
        if batch.marker is not None:
            # It ends all that is open; what lies before another marker was ended by that.
            for earlier in reversed(self.batches[batch.place]):
                if earlier.ended_by is not None:
                    break
                earlier.ended_by = batch.marker
        self.batches[batch.place].append(batch)
        if batch.excuse is not None:
            return
        written = self.written[batch.topic, batch.part]
        if batch.marker is not None:
            written.markers[batch.epoch or 0, batch.marker] += 1
        elif batch.epoch is not None:
            first = written.first_epoch
            written.first_epoch = batch.epoch if first is None else min(first, batch.epoch)

    def on_decision(self, row: Row) -> None:
        """The coordinator decides, a row of ``transaction_decision``; other brokers' logs have it
        too."""
        broker, epoch, marker = row["broker"], row["producer_epoch"], _DECIDED[row["state"]]
        place = row["topic"], row["part"]
        decision = self.written[place].decisions.setdefault(
            (epoch, marker), Decision(broker, row["producer_id"], *place, epoch, marker)
        )
        decision.broker = min(decision.broker, broker)
        decision.completed |= bool(row["completed"])

    def on_client(self, event: ClientEvent, epoch: int) -> Said:
        """A response to a client with the id."""
        if event.f == "init" and (not self.given or epoch > self.given[-1][1]):
            # Every lower epoch is fenced from now on.
            at = event.seq if event.responded is None else event.responded
            self.given.append((at, epoch))
        elif event.f == "send" and event.acks == ALL_REPLICAS:
            given = [known for at, known in self.given if at < (event.sent or 0)]
            if given:
                yield from _and_is_acknowledged_nothing(event, epoch, given)

    def on_read(self, event: ClientEvent, epoch: int) -> None:
        """A client sees a record of the producer."""
        if event.sequence is not None and event.sequence >= 0:
            self.seen[event.place, epoch, event.sequence].append(event)

    def at_end(self, names: TopicNames) -> Said:
        """The run has ended."""
        for batches in self.batches.values():
            before: int | None = None
            for batch in batches:
                yield from a_fenced_producer_writes_nothing(batch, before)
                yield from _not_where_records_were_lost(batch)
                if batch.epoch is not None:
                    before = batch.epoch if before is None else max(before, batch.epoch)
        for (topic, _), written in self.written.items():
            if (first_epoch := written.first_epoch) is None:
                continue
            is_shared = len(names.ids_of(topic)) > 1
            for decision in written.decisions.values():
                yield from markers_are_what_the_coordinator_decided(decision, written)
                # Where a name had several topics, the marker of a decision up to the first epoch
                # in the log may lie in one that is gone: from KIP-890 on, the epoch of a decision
                # is above that of its records.
                if decision.completed and not (is_shared and decision.epoch <= first_epoch):
                    yield from a_complete_transaction_has_its_marker(decision, written)
        for copies in self.seen.values():
            for read in copies:
                yield from no_record_is_seen_at_two_offsets(read, copies)


@rule("H3", "read_committed sees no aborted record",
      source="KIP-98; FetchIsolation.TXN_COMMITTED; Jepsen: G1a, aborted read",
      at_end=True, evidence=Evidence.TRACE, tables=(*_TABLES, "log_batch"),
      breaks="A read_committed consumer gets a record whose transaction is aborted.",
      keeps="The aborted record is dropped and the committed one seen; another "
      "producer aborts its own.")  # fmt: skip
def read_committed_sees_no_aborted_record(read: ClientEvent, batch: Batch | None) -> Findings:
    """A consumer with read_committed sees no record of a transaction that was aborted, or that is
    still open."""
    if read.excuse is not None:
        yield exempt(read.excuse)
        return
    if batch is None or batch.excuse is not None or not read.visible:
        return
    yield CASE
    if batch.ended_by != COMMIT:
        yield broken(
            f"broker {read.broker} gave a consumer with read_committed the record at offset "
            f"{read.offset}, whose transaction was not committed",
            read,
        )


@rule("H4", "read_committed leaves no committed record out",
      source="KIP-98; TransactionIndex.collectAbortedTxns",
      at_end=True, evidence=Evidence.TRACE, tables=(*_TABLES, "log_batch"),
      breaks="A transaction is committed, and a response lists it as aborted.",
      keeps="The aborted record is dropped and the committed one seen; another "
      "producer aborts its own.")  # fmt: skip
def read_committed_leaves_no_committed_record_out(
    read: ClientEvent, batch: Batch | None
) -> Findings:
    """No response to a consumer with read_committed lists a committed transaction as aborted."""
    if read.excuse is not None:
        yield exempt(read.excuse)
        return
    if batch is None or batch.excuse is not None or batch.ended_by != COMMIT:
        return
    yield CASE
    if read.visible is False:
        yield broken(
            f"broker {read.broker} called the transaction of the record at offset {read.offset} "
            "aborted, which was committed",
            read,
        )


@rule("H6", "Markers are what the coordinator decided",
      source="KIP-98; TransactionMarkerChannelManager",
      at_end=True, evidence=Evidence.TRACE,
      tables=(*_TABLES, "log_batch", "transaction_decision"),
      breaks="The coordinator decides to commit, and the log has an abort marker.",
      keeps="A commit marker is written twice, and the abort that follows is not "
      "completed.")  # fmt: skip
def markers_are_what_the_coordinator_decided(decision: Decision, written: Written) -> Findings:
    """The markers of a producer's epoch in a log commit only where its coordinator decided to
    commit, abort only where it decided to abort, and are there once the transaction is complete."""
    yield CASE
    of_epoch = ((decision.epoch, marker) for marker in (COMMIT, ABORT))
    if any(written.markers[key] and key not in written.decisions for key in of_epoch):
        yield broken(
            f"the log of the last leader ends a transaction of producer {decision.producer_id} "
            f"otherwise than its coordinator on broker {decision.broker} decided",
            broker=decision.broker,
            topic=decision.topic,
            partition=decision.part,
        )


@markers_are_what_the_coordinator_decided.also
def a_complete_transaction_has_its_marker(decision: Decision, written: Written) -> Findings:
    """The coordinator knows that the marker is written."""
    yield CASE
    if not written.markers[decision.epoch, decision.marker]:
        yield broken(
            f"the coordinator on broker {decision.broker} completed a transaction of producer "
            f"{decision.producer_id} whose marker is not in the log",
            broker=decision.broker,
            topic=decision.topic,
            partition=decision.part,
        )


@markers_are_what_the_coordinator_decided.also
def _not_where_records_were_lost(batch: Batch) -> Findings:
    if batch.marker is not None and batch.excuse is not None:
        yield exempt(batch.excuse)


@rule("H7", "A fenced producer writes nothing",
      source="KIP-98, KIP-360; ProducerAppendInfo.checkProducerEpoch",
      at_end=True, evidence=Evidence.TRACE, tables=(*_TABLES, "log_batch"),
      breaks="A batch of epoch 0 follows one of epoch 1 of the same producer.",
      keeps="A record of epoch 0 was sent before epoch 1 was given out; epochs "
      "rise, and another producer has its own.")  # fmt: skip
def a_fenced_producer_writes_nothing(batch: Batch, before: int | None) -> Findings:
    """Along a log the epochs of a producer id do not fall, and no record is acknowledged that was
    sent with an old epoch after a newer one had been given out."""
    if before is None:
        return
    if batch.excuse is not None:
        yield exempt(batch.excuse)
        return
    yield CASE
    if batch.epoch is not None and batch.epoch < before:
        yield broken(
            f"the log of the last leader {batch.broker} has a batch of an older epoch at offset "
            f"{batch.base_offset}, after one of a newer epoch of the same producer",
            batch,
        )


@a_fenced_producer_writes_nothing.also
def _and_is_acknowledged_nothing(event: ClientEvent, epoch: int, given: list[int]) -> Findings:
    yield CASE
    if epoch < given[-1]:
        yield broken(
            f"broker {event.broker} acknowledged the record at offset {event.offset}, of an epoch "
            "that was fenced before it was sent",
            event,
        )


@rule("H8", "No record is seen at two offsets",
      source="KIP-98; Jepsen, Kafka workload: duplicate",
      at_end=True, evidence=Evidence.TRACE, tables=_TABLES,
      breaks="Sequence number 3 of a producer's epoch is read at offsets 0 and 1.",
      keeps="A user sends one value twice, two members see it; other epochs and "
      "producers count from 0, an aborted copy is not seen.")  # fmt: skip
def no_record_is_seen_at_two_offsets(read: ClientEvent, copies: list[ClientEvent]) -> Findings:
    """A record of a producer with an id, by its epoch and sequence number, is seen at one
    offset."""
    yield CASE
    if any(copy.offset != read.offset for copy in copies):
        yield broken(
            f"clients saw the record at offset {read.offset} at another offset as well",
            read,
        )
