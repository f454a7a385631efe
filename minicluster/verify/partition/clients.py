"""Acknowledgements of a partition to clients, and their reads there (KIP-101, KIP-279).

subject   a partition: its leaders, what clients received, and when the run is over the records of
          its logs, offset by offset
keeps     the last leader, with its log as it is in the end; each record that a client knows, since
          later events show what of it was lost
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from operator import attrgetter

from msgspec import Struct, field

from minicluster.verify.histories.traced_run import Row
from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import PartitionEvent
from minicluster.verify.partition.logs import AtEnd, ProducerBatch
from minicluster.verify.partition.truth import Loss
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule

ALL_REPLICAS = -1  # acks
NO_LOG = "no log"  # in the place of a process
_TABLES = ("client_record", "history", "partition_event", "replica_log", "raft_event")


class KnownRecord(Struct):
    """A record that a client knows: acknowledged for all in-sync replicas, or read.

    Shapes:  broker: that responded; -1 where the cluster's own client has not recorded it.
             numbered: of a producer with an id; None: not known. producer_id: that one, if its
             client tells it. leader_epoch: of the batch that was read. led: the highest epoch in
             which a broker led when it was acknowledged. excuse: why nothing is promised of it,
             once the run is over.
    """

    seq: int
    topic: str
    part: int
    offset: int
    value: str | None
    broker: int
    numbered: bool | None
    is_acknowledged: bool
    producer_id: int | None = None
    leader_epoch: int | None = None
    led: int | None = None
    excuse: str | None = None

    @property
    def is_there(self) -> bool:
        """It was read, or acknowledged at the offset that is its own.

        A producer with an id may send another batch under a sequence number again, which is
        acknowledged at the offset of the first.
        """
        return not self.is_acknowledged or self.numbered is False


class LogOfLeader:
    """The records of a log by their offsets: a row for each would be ten times as large."""

    __slots__ = ("_epochs", "_values", "offsets")

    def __init__(self) -> None:
        self.offsets = array("q")
        self._epochs: list[int | None] = []
        self._values: list[str | None] = []

    def append(self, row: Row) -> None:
        """Add the record at a higher offset."""
        self.offsets.append(row["offset"])
        self._epochs.append(row["leader_epoch"])
        self._values.append(row["value_id"])

    def at(self, offset: int) -> tuple[int | None, str | None] | None:
        """Leader epoch and value of the record at an offset; None: there is none."""
        place = bisect_left(self.offsets, offset)
        if place == len(self.offsets) or self.offsets[place] != offset:
            return None
        return self._epochs[place], self._values[place]

    def between(self, first: int, last: int) -> int:
        """The number of records from one offset to another."""
        return bisect_right(self.offsets, last) - bisect_left(self.offsets, first)


class LastLeader(Struct):
    """The broker that led the partition last, with its log at the end of the run.

    Shapes:  deleted: it has deleted the replica since. process: that left the log; NO_LOG: none.
             batches: of producers with an id, in order.
    Units:   log_end: as the broker's last event has it.
    """

    election: PartitionEvent
    deleted: bool = False
    log_end: int | None = None
    process: str | None = NO_LOG
    log: LogOfLeader = field(default_factory=LogOfLeader)
    batches: Sequence[ProducerBatch] = ()

    def take(self, rows: list[Row]) -> None:
        """The records of all logs at the next offset: its own is kept."""
        place = "end", self.election.broker, self.process
        own = [row for row in rows if (row["at"], row["broker"], row["incarnation"]) == place]
        if own:
            self.log.append(own[-1])

    def has_lost(self, record: KnownRecord) -> bool:
        """The log ends before a record that was acknowledged, or has another in its place.

        Compaction and retention leave nothing there.
        """
        if self.log_end is not None and self.log_end <= record.offset:
            return True
        epoch, value = self.log.at(record.offset) or (None, None)
        if None in (record.value, value) or record.value == value:
            return False
        if record.numbered is False:
            return True
        if record.producer_id is not None and self._is_of_another(record.producer_id, record):
            return True
        # A producer with an id that sends another batch under a sequence number again is told the
        # offset of the first batch, whose value is there rightly. Only a later epoch replaces it.
        return record.led is not None and epoch is not None and epoch > record.led

    def _is_of_another(self, producer_id: int, record: KnownRecord) -> bool:
        """At its offset is a batch of another producer, or the marker of a transaction."""
        place = bisect_right(self.batches, record.offset, key=attrgetter("base_offset")) - 1
        batch = self.batches[place] if place >= 0 else None
        return (
            batch is not None
            and record.offset <= batch.last_offset
            and batch.producer_id != producer_id
        )


def is_numbered(row: Row) -> bool:
    """A row of a response is about a producer with an id."""
    producer_id = row.get("producer_id")
    return producer_id is not None and producer_id >= 0


class ClientsOfPartition:
    """The knowledge that clients have of one partition.

    Shapes:  known: in the order of their events. loss: what the partition has lost, once the run is
             over.
    """

    def __init__(self) -> None:
        self.known: list[KnownRecord] = []
        self.leader: LastLeader | None = None
        self.loss: Loss | None = None
        self._log_ends: dict[int, int | None] = {}  # by broker
        self._acknowledged, self._acknowledged_by = array("q"), array("q")  # offsets, events
        self._epochs: dict[tuple[int, str], int] = {}  # of records that logs hold behind the loss

    def on_event(self, event: PartitionEvent) -> Said:
        """An event of a replica."""
        if event.leo is not None:
            self._log_ends[event.broker] = event.leo
        if event.kind == "become_leader" and event.leader_epoch is not None:
            if event.leader_epoch >= (-1 if self._led is None else self._led):
                self.leader = LastLeader(event)
        elif event.kind == "ack":
            self._acknowledged.append(event.offset)
            self._acknowledged_by.append(event.seq)
        elif event.kind == "delete" and self.leader is not None:
            self.leader.deleted |= self.leader.election.broker == event.broker
        return ()

    def on_response(self, row: Row, topic: str) -> Said:
        """A response to a client, a row of ``client_record``."""
        is_read = row["f"] == "read"
        if is_read or (row["f"] == "send" and row["acks"] == ALL_REPLICAS):
            record = KnownRecord(
                row["seq"], topic, row["part"], row["offset"], row["value"], row["broker"],
                numbered=is_numbered(row), is_acknowledged=not is_read,
                producer_id=row.get("producer_id") if is_numbered(row) else None,
                leader_epoch=row["leader_epoch"] if is_read else None, led=self._led,
            )  # fmt: skip
            self.known.append(record)
        return ()

    def on_own_client(self, row: Row) -> Said:
        """The cluster's own client has sent a record, a row of ``history``."""
        offset, is_known = row["offset"], row["type"] == "ok" and row["complete_seq"] is not None
        if is_known and row["acks"] == ALL_REPLICAS and offset is not None and offset >= 0:
            record = KnownRecord(
                row["complete_seq"], row["topic"], row["part"], offset, row["value"], -1,
                numbered=row["idempotent"], is_acknowledged=True, led=self._led,
            )  # fmt: skip
            self.known.append(record)
        return ()

    def on_logs(self, known: AtEnd) -> None:
        """The run is over, and the records of the logs are about to come."""
        self.loss = known.loss
        if self.leader is not None:
            broker = self.leader.election.broker
            self.leader.log_end = self._log_ends.get(broker)
            self.leader.process = known.processes.get(broker, NO_LOG)
            self.leader.batches = known.batches.get(broker, ())

    def on_offset(self, rows: list[Row]) -> Said:
        """The records of all logs at the next offset."""
        if self.leader is not None:
            self.leader.take(rows)
        if self.loss is not None and rows[0]["offset"] >= self.loss.kept:
            for row in rows:
                value, epoch = row["value_id"], row["leader_epoch"]
                if value is not None and epoch is not None:
                    record = row["offset"], value
                    self._epochs[record] = max(epoch, self._epochs.get(record, epoch))
        return ()

    def at_end(self) -> Said:
        """All logs are read."""
        values: dict[int, set[str]] = defaultdict(set)
        for record in self.known:
            record.excuse = self.excuse_of(record.offset, record.value, record.leader_epoch)
            if record.excuse is None and record.value is not None and record.is_there:
                values[record.offset].add(record.value)
        for record in self.known:
            if record.is_acknowledged and self.leader is not None:
                yield from acknowledged_records_are_not_lost(record, self.leader, self)
            if record.is_there and record.value is not None:
                yield from clients_see_one_value_at_each_offset(record, values[record.offset])

    @property
    def _led(self) -> int | None:
        return None if self.leader is None else self.leader.election.leader_epoch

    def excuse_of(
        self, offset: int | None, value: str | None, leader_epoch: int | None
    ) -> str | None:
        """Why nothing is promised of a record, or without an offset of the whole partition."""
        if self.loss is None:
            return None
        if offset is None:
            return self.loss.why
        if leader_epoch is None and value is not None:
            leader_epoch = self._epochs.get((offset, value))
        # One whose epoch nothing shows may be of those that were lost: it is excused, not accused.
        return self.loss.excuse_of(offset, -1 if leader_epoch is None else leader_epoch)

    def acknowledged_by(self, record: KnownRecord) -> int:
        """The event with which a leader acknowledged a record; else the client's own."""
        events = zip(self._acknowledged, self._acknowledged_by, strict=True)
        before = (seq for offset, seq in events if offset == record.offset and seq <= record.seq)
        return max(before, default=record.seq)


@rule("F1", "Acknowledged records are not lost",
      source="KIP-101, KIP-279; StrongISR as outcome", evidence=Evidence.TRACE,
      at_end=True, tables=(*_TABLES, "log_batch"),
      breaks="Offset 1 is acknowledged with acks=all, and the log of the next leader ends at 1.",
      keeps="The next leader lacks a record of acks=1, and one that was compacted; "
      "broker 1 lost its copy, and leads no more.")  # fmt: skip
def acknowledged_records_are_not_lost(
    record: KnownRecord, leader: LastLeader, clients: ClientsOfPartition
) -> Findings:
    """A record that was acknowledged by all in-sync replicas (acks=all), to a client of Kafka's or
    the cluster's own, is at its offset in the log of the last leader, except where an unclean
    election or the last ISR member has lost it, or where it was deleted or compacted away."""
    # The last leader's log decides: truncation by leader epoch (KIP-101) gives every replica that
    # log, so a record that it lacks is gone everywhere, whoever still has it now. Any other log
    # would accuse a follower that is only behind.
    if leader.deleted:
        yield exempt("the last leader has deleted the replica")
    elif record.excuse is not None:
        yield exempt(record.excuse)
    else:
        yield CASE
        if leader.has_lost(record):
            yield broken(
                f"a record that was acknowledged to a client at offset {record.offset} is not in "
                f"the log of the last leader {leader.election.broker}",
                leader.election,
                earlier=clients.acknowledged_by(record),
            )


@rule("F9", "Clients see one value at each offset",
      source="Jepsen, Kafka workload: inconsistent offsets, version orders",
      evidence=Evidence.TRACE, at_end=True, tables=_TABLES,
      breaks="Two consumers read different values at offset 1.",
      keeps="acks=1 promises no offset, and another partition has its own records.")  # fmt: skip
def clients_see_one_value_at_each_offset(record: KnownRecord, values: Collection[str]) -> Findings:
    """All records that clients read at one offset of a partition, or that were acknowledged there
    for all in-sync replicas, have one value, except after an unclean election or the loss of the
    last ISR member."""
    if record.excuse is not None:
        yield exempt(record.excuse)
        return
    yield CASE
    # Readers cannot take back what they have read: an offset that shows another value later means
    # that what was shown before was not committed, or that a committed log was cut.
    if len(values) > 1:
        yield broken(f"clients received two values at offset {record.offset}", record)
