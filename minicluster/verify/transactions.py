"""Producers with ids: what the logs hold of them, what coordinators decide, what consumers see
(KIP-98, KIP-360, KIP-447).

All of it is judged when the run is over: the marker that ends a transaction comes last. Of the logs
those of the last leaders count. The cluster's own members that transform name, in each value that
they write, the place of the record that it is of; other clients may write what they like.

subject   a producer id: its batches in the logs at the end of the run, the decisions of its
          coordinator, the records of it that clients read; of what a group transforms, the group
keeps     by partition its batches in order, each with the marker that ends its transaction; by the
          name of the topic the markers and decisions; by sequence number where records were seen;
          the epochs that were given out
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.values import dataclass
from minicluster.verify.group.coordinator_losses import group_losses
from minicluster.verify.group.driver import groups_of, misled_clients
from minicluster.verify.group.event import ClientEvent, client_events
from minicluster.verify.group.groups import Group
from minicluster.verify.histories.traced_run import History, Row, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence
from minicluster.verify.partition.clients import ALL_REPLICAS
from minicluster.verify.partition.driver import last_leaders, losses
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import TopicNames, topic_names
from minicluster.verify.partition.truth import ALWAYS_LOST
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


@dataclass(slots=True)
class Decision:
    """What the coordinator has decided of a partition of a transaction, in one epoch.

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
    """What a producer has written to the partitions of one name: decisions name no topic id.

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

    def on_client(self, row: Row) -> Said:
        """A response to a client with the id, a row of ``client_record``."""
        epoch = row["producer_epoch"]
        if row["f"] == "init" and (not self.given or epoch > self.given[-1][1]):
            # Every lower epoch is fenced from now on.
            self.given.append((row["seq"] if row["resp_seq"] is None else row["resp_seq"], epoch))
        elif row["f"] == "send" and row["acks"] == ALL_REPLICAS:
            given = [known for event, known in self.given if event < (row["send_seq"] or 0)]
            if given:
                yield from _and_is_acknowledged_nothing(row["broker"], row["offset"], epoch, given)

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


class Transform:
    """What a group that commits its offsets in transactions has written of what it read.

    Shapes:  written: by topic id and value, the batches of committed transactions. read: what it
             has read, once each.
    Units:   passed: by partition, the highest offset that it has committed.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.written: dict[tuple[str, str | None], list[Batch]] = defaultdict(list)
        self.read: set[tuple[Place, int, int, int | None, str | None]] = set()
        self.passed = {
            place: max(known.offset or 0 for known in sets if known.shown is not None)
            for place, sets in group.sets.items()
            if any(known.shown is not None for known in sets)
        }

    def on_read(self, event: ClientEvent) -> Said:
        """A member reads a record; what is below a committed offset it has passed."""
        # The value counts: a record may be in the response twice only by an error of its own.
        record = event.place, event.seq, event.broker, event.offset, event.value
        if record not in self.read and (event.offset or 0) < self.passed.get(event.place, -1):
            self.read.add(record)
            yield from a_transform_leaves_no_record_out(event, self.values)

    def at_end(self, sources: Mapping[str | None, set[str]]) -> Said:
        """The run has ended; ``sources``: by value the topics that had such a record."""
        for (_, value), copies in self.written.items():
            for batch in copies:
                several = len(sources.get(value, ())) or 1
                yield from a_transform_writes_each_record_once(batch, len(copies), several)

    @cached_property
    def values(self) -> set[str | None]:
        """All that it wrote."""
        return {value for _, value in self.written}


def _transformed(event: ClientEvent) -> str:
    """The value that a member writes for a record."""
    return f"{event.topic}-{event.part}@{event.offset} {event.value}"


def producers(run: TracedRun) -> Mapping[int, Producer]:
    """Context: the producers of a run, and what they wrote to the logs of the last leaders."""
    leaders, lost = run.context(last_leaders), run.context(losses)
    folded: dict[int, Producer] = defaultdict(Producer)
    for row in run.rows("log_batch", by="base_offset"):
        place = row["topic_id"], row["part"]
        if place in leaders and leaders[place].election.broker == row["broker"]:
            loss = lost.get(place)
            batch = Batch(row, None if loss is None else loss.why)
            folded[batch.producer_id].on_batch(batch)
    return folded


def producer_batches(run: TracedRun) -> Iterator[Batch]:
    """The batches of producers in the logs of the last leaders."""
    for producer in run.context(producers).values():
        for batches in producer.batches.values():
            yield from batches


def judge_producers(run: TracedRun, judge: Judge) -> None:
    """Judge the producers of a run that has ended, and what groups transform."""
    folded, names = run.context(producers), run.context(topic_names)
    for row in run.rows("transaction_decision"):
        if row["producer_id"] in folded:
            folded[row["producer_id"]].on_decision(row)
    for row in run.rows("client_record"):
        producer_id = row["producer_id"]
        if producer_id is not None and producer_id >= 0 and row["producer_epoch"] is not None:
            said = folded[producer_id].on_client(row)
            judge.hear(said, -1, row["topic"] or "", row["part"], row["seq"])
    reads = [event for event in run.context(client_events) if event.f == "read"]
    for read in reads:
        producer_id, epoch = read.producer
        if producer_id is not None and producer_id >= 0 and _is_seen(read):
            folded[producer_id].on_read(read, epoch)
    for producer in folded.values():
        judge.hear(producer.at_end(names))
    _judge_read_committed(run, judge, reads)
    _judge_transforms(run, judge, reads)


def _judge_read_committed(run: TracedRun, judge: Judge, reads: Iterable[ClientEvent]) -> None:
    data: dict[tuple[Place, int | None], Batch] = {
        (batch.place, batch.base_offset): batch
        for batch in producer_batches(run)
        if batch.transactional and batch.marker is None
    }
    for read in reads:
        if read.read_committed:
            batch = data.get((read.place, read.batch_offset))
            judge.hear(read_committed_sees_no_aborted_record(read, batch))
            judge.hear(read_committed_leaves_no_committed_record_out(read, batch))


def _judge_transforms(run: TracedRun, judge: Judge, reads: Iterable[ClientEvent]) -> None:
    sources: dict[str | None, set[str]] = defaultdict(set)
    for read in reads:
        if read.value is not None:
            sources[_transformed(read)].add(read.place[0])
    for transform in _transforms(run):
        judge.hear(transform.at_end(sources))
        # What a partition has lost may have been written.
        for read in () if run.context(losses) else reads:
            if read.is_own and read.client in transform.group.clients and _is_seen(read):
                judge.hear(transform.on_read(read))


def _is_seen(read: ClientEvent) -> bool:
    """A client takes the record for one that is there, and something is promised of it."""
    return bool(read.visible) and read.excuse is None


def _transforms(run: TracedRun) -> list[Transform]:
    """The groups that transform, with what they wrote to the logs of the last leaders.

    One of which a client was told what no node said may write a record twice, and one that its
    coordinator has lost reads again what it has written.
    """
    leaders, lost = run.context(last_leaders), run.context(group_losses)
    misled = misled_clients(run)
    transforms = [
        Transform(group)
        for name, group in run.context(groups_of).by_name.items()
        if group.producers
        and misled.isdisjoint(group.clients | group.committers)
        and not lost.has_lost(name, 0, ALWAYS_LOST)
    ]
    for batch in producer_batches(run) if transforms else ():
        record = leaders[batch.place].log.at(batch.base_offset)
        is_written = batch.ended_by == COMMIT and batch.marker is None and batch.excuse is None
        if is_written and record is not None and batch.topic != GROUP_METADATA_TOPIC:
            for transform in transforms:
                if batch.producer_id in transform.group.producers:
                    transform.written[batch.place[0], record[1]].append(batch)
    return transforms


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
def _and_is_acknowledged_nothing(
    broker: int, offset: int, epoch: int, given: list[int]
) -> Findings:
    yield CASE
    if epoch < given[-1]:
        yield broken(
            f"broker {broker} acknowledged the record at offset {offset}, of an epoch that was "
            "fenced before it was sent",
            broker=broker,
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


@rule("H9", "A transform writes each record once",
      source="KIP-98, KIP-447; KafkaProducer.sendOffsetsToTransaction",
      at_end=True, evidence=Evidence.TRACE,
      tables=("client_record", "group_event", "log_batch", "partition_event", "raft_event",
              "replica_log"),
      breaks="A transforming group has written the record of orders-0@0 twice, in two committed "
      "transactions.",
      keeps="The first of two transactions is aborted, and what is read behind the "
      "committed offset is not written yet.")  # fmt: skip
def a_transform_writes_each_record_once(batch: Batch, copies: int, sources: int) -> Findings:
    """Each record that a transforming group has passed is in one committed transaction of its
    members, and no record is in two."""
    yield CASE
    # A name may have had several topics, one after the other, each with a record at the place.
    if copies > sources:
        yield broken(
            f"a transforming group wrote the record at offset {batch.base_offset} more than once",
            batch,
        )


@a_transform_writes_each_record_once.also
def a_transform_leaves_no_record_out(read: ClientEvent, written: set[str | None]) -> Findings:
    """A member has read it, and the group has committed an offset behind it."""
    yield CASE
    if _transformed(read) not in written:
        yield broken(
            f"a transforming group has passed the record at offset {read.offset}, and wrote "
            "nothing for it",
            read,
        )


_RULES = (
    read_committed_sees_no_aborted_record,
    read_committed_leaves_no_committed_record_out,
    markers_are_what_the_coordinator_decided,
    a_fenced_producer_writes_nothing,
    no_record_is_seen_at_two_offsets,
    a_transform_writes_each_record_once,
)
HISTORY = History(
    yields=(),
    reads=(
        "client_record",
        "group_event",
        "log_batch",
        "partition_event",
        "replica_log",
        "transaction_decision",
    ),
    fold=judge_producers,
    rules=_RULES,
)
