"""What clients were acknowledged and read, beside the logs as they are when the run has ended.

========================  ========================================================================
takes                     ``client_record`` rows, ``history`` rows of the cluster's own client;
                          ``partition_event`` and ``replica_log`` rows
keeps, by partition       its last leader, with the log of that
keeps, by producer id     the epochs that were given out
keeps, by offset          a digest of the value that clients know there
yields                    ``AcknowledgedRecord``, ``ValueAtOffset``, ``ProducerSend``
========================  ========================================================================
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import field
from heapq import merge
from operator import attrgetter, itemgetter

from minicluster.values import dataclass
from minicluster.verify.histories.replica_logs import last_processes
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import losses
from minicluster.verify.partition.topic_names import topic_names

Place = tuple[str, int]  # topic id as the trace has it, partition
ALL_REPLICAS = -1  # acks


# --- what clients received ------------------------------------------------------------------------


@dataclass(slots=True)
class Received:
    """A row of a response to a client, of a topic that is known.

    Shapes:  excuse: why nothing is promised of it; None: it is judged.
    """

    row: Row
    topic_id: str
    topic: str | None
    excuse: str | None = None

    @property
    def place(self) -> Place:
        """The partition."""
        return self.topic_id, self.row["part"]


class Excuses:
    """Which of what clients received a partition has lost since."""

    def __init__(self, run: TracedRun) -> None:
        self._losses = run.context(losses)
        self._epochs: dict[tuple[str, int, int, str], int] = {}  # of records that replicas held
        for row in run.rows("replica_log") if self._losses else ():
            value, epoch = row["value_id"], row["leader_epoch"]
            if value is None or epoch is None:
                continue
            loss = self._losses.get((row["topic_id"], row["part"]))
            if loss is None or row["offset"] < loss.kept:
                continue
            record = row["topic_id"], row["part"], row["offset"], value
            self._epochs[record] = max(epoch, self._epochs.get(record, epoch))

    def of(
        self, place: Place, offset: int | None, value: str | None, epoch: int | None
    ) -> str | None:
        """Why nothing is promised of a record, or without an offset of the whole partition."""
        loss = self._losses.get(place)
        if loss is None:
            return None
        if offset is None:
            return loss.why
        if epoch is None and value is not None:
            epoch = self._epochs.get((*place, offset, value))
        # One whose epoch nothing shows may be of those that were lost: it is excused, not accused.
        return loss.excuse_of(offset, -1 if epoch is None else epoch)


def excuses(run: TracedRun) -> Excuses:
    """Context: what is excused because it was lost."""
    return Excuses(run)


def received(run: TracedRun) -> list[Received]:
    """Context: what clients were returned about topics that are known, in order.

    The rows of one response share their event: a partition's fetch comes before its records.
    """
    names, excused = run.context(topic_names), run.context(excuses)
    rows: list[Received] = []
    for row in run.rows("client_record"):
        topic_id = names.id_in(row)
        if topic_id is not None:
            epoch = row["leader_epoch"] if row["f"] == "read" else None
            why = excused.of((topic_id, row["part"]), row["offset"], row["value"], epoch)
            rows.append(Received(row, topic_id, names.name_of(topic_id), why))
    rows.sort(key=in_response)
    return rows


def returned(run: TracedRun) -> list[Received]:
    """Context: what clients were returned and is not excused."""
    return [response for response in run.context(received) if response.excuse is None]


def in_response(received: Received) -> tuple[int, bool, int]:
    """The order of rows, also of those of one response."""
    row = received.row
    return row["seq"], row["f"] == "read", -1 if row["offset"] is None else row["offset"]


# --- acknowledged records at the end of the run ---------------------------------------------------


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


@dataclass(slots=True)
class LastLeader:
    """The broker that led a partition last, with its log at the end of the run.

    Shapes:  deleted: it has deleted the replica since.
    Units:   log_end: as its last event has it.
    """

    broker: int
    leader_epoch: int
    began: int
    log_end: int | None = None
    deleted: bool = False
    log: LogOfLeader = field(default_factory=LogOfLeader)


def last_leaders(run: TracedRun) -> dict[Place, LastLeader]:
    """Context: the last leader of each partition."""
    leaders: dict[Place, LastLeader] = {}
    for row in run.rows("partition_event"):
        if row["kind"] == "become_leader" and row["leader_epoch"] is not None:
            place, epoch = (row["topic_id"], row["part"]), row["leader_epoch"]
            known = leaders.get(place)
            if known is None or epoch >= known.leader_epoch:
                leaders[place] = LastLeader(row["broker"], epoch, row["seq"])
    for row in run.rows("partition_event"):
        leader = leaders.get((row["topic_id"], row["part"]))
        if leader is None or leader.broker != row["broker"]:
            continue
        if row["leo"] is not None or row["kind"] == "delete":
            leader.log_end = row["leo"]
        if row["kind"] == "delete" and row["seq"] > leader.began:
            leader.deleted = True
    # A broker that was shut down before has left its logs of then as well.
    process = run.context(last_processes)
    for rows in run.by_record("replica_log"):
        leader = leaders.get((rows[0]["topic_id"], rows[0]["part"]))
        own = [
            row
            for row in rows
            if leader is not None
            and (row["at"], row["broker"]) == ("end", leader.broker)
            and row["incarnation"] == process[leader.broker]
        ]
        if leader is not None and own:
            leader.log.append(own[-1])
    return leaders


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedRecord:
    """A record that was acknowledged for all in-sync replicas, beside the last leader's log.

    Shapes:  idempotent: of a producer with an id; None: not known. replica_deleted: the last leader
             has deleted its replica. value_in_log: at the offset in its log; None: nothing is.
             elected: the event of its last election. excuse: why nothing is promised of the
             record.
    Units:   epoch: the highest in which a broker led when it was acknowledged; epoch_in_log: of the
             record in the log. log_end: of the last leader.
    """

    offset: int
    value: str | None
    idempotent: bool | None
    epoch: int | None
    leader: int
    elected: int
    log_end: int | None
    replica_deleted: bool
    value_in_log: str | None
    epoch_in_log: int | None
    excuse: str | None

    @property
    def is_beyond_log(self) -> bool:
        """The log ends before the record."""
        return self.log_end is not None and self.log_end <= self.offset

    @property
    def has_another_in_its_place(self) -> bool:
        """The log has another value at the offset; compaction and retention leave none there."""
        if None in (self.value, self.value_in_log) or self.value == self.value_in_log:
            return False
        if self.idempotent is False:
            return True
        # A producer with an id that sends another batch under a sequence number again is told the
        # offset of the first batch, whose value is there rightly. Only a later epoch replaces it.
        if self.epoch is None or self.epoch_in_log is None:
            return False
        return self.epoch_in_log > self.epoch


@dataclass(slots=True)
class Placed:
    """A value that clients know at an offset: read there, or acknowledged for all replicas.

    Shapes:  broker: that responded; None where the cluster's own client has not recorded it.
    """

    seq: int
    topic_id: str
    topic: str | None
    partition: int
    offset: int
    value: str | None
    broker: int | None
    numbered: bool | None
    excuse: str | None


def acknowledged(run: TracedRun) -> Iterator[Placed]:
    """The records that were acknowledged for all in-sync replicas, to any client, in order."""
    to_clients = (
        Placed(
            response.row["seq"], response.topic_id, response.topic, response.row["part"],
            response.row["offset"], response.row["value"], response.row["broker"],
            is_numbered(response.row), response.excuse,
        )
        for response in run.context(received)
        if response.row["f"] == "send" and response.row["acks"] == ALL_REPLICAS
    )  # fmt: skip
    own = _acknowledged_to_own_client(run)
    return merge(to_clients, own, key=attrgetter("seq"))


def topics_of_acks(run: TracedRun) -> dict[tuple[str, int], list[tuple[int, str]]]:
    """Context: the topics of which a partition acknowledged, by its name, each from which event."""
    topics: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for row in run.rows("partition_event"):
        if row["kind"] == "ack":
            since = topics.setdefault((row["topic"], row["part"]), [])
            if not since or since[-1][1] != row["topic_id"]:
                since.append((row["seq"], row["topic_id"]))
    return topics


def is_numbered(row: Row) -> bool:
    """The record is of a producer with an id."""
    producer_id = row.get("producer_id")
    return producer_id is not None and producer_id >= 0


def _acknowledged_to_own_client(run: TracedRun) -> Iterator[Placed]:
    """What the cluster's own client was acknowledged, as its history has it.

    It names the topic: the partition's last acknowledgement before has the id of the topic that had
    the name.
    """
    excused = run.context(excuses)
    acks = run.context(topics_of_acks)
    for row in run.rows("history", by="complete_seq"):
        if row["f"] != "send" or row["type"] != "ok" or row["acks"] != ALL_REPLICAS:
            continue
        offset, seq = row["offset"], row["complete_seq"]
        before = acks.get((row["topic"], row["part"]), [])
        place = 0 if seq is None else bisect_right(before, seq, key=itemgetter(0))
        if offset is None or offset < 0 or not place:
            continue
        topic_id, part, value = before[place - 1][1], row["part"], row["value"]
        why = excused.of((topic_id, part), offset, value, None)
        yield Placed(seq, topic_id, row["topic"], part, offset, value, None, row["idempotent"], why)


@history(
    AcknowledgedRecord, reads=("client_record", "history", "partition_event", "replica_log")
)  # fmt: skip
def acknowledged_records(run: TracedRun, judge: Judge) -> None:
    """Each acknowledged record beside the log of the last leader."""
    for record, step in beside_last_leaders(run):
        earlier = record.seq
        if step.is_beyond_log or step.has_another_in_its_place:  # few are, and only they need it
            place = record.topic_id, record.partition, record.offset
            before = [seq for seq in run.context(leaders_acks).get(place, ()) if seq <= record.seq]
            earlier = before[-1] if before else earlier
        judge.take(step, -1, record.topic or "", record.partition, step.elected, earlier=earlier)


def leaders_acks(run: TracedRun) -> dict[tuple[str, int, int], list[int]]:
    """Context: the events with which leaders acknowledged an offset, in order."""
    events: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for row in run.rows("partition_event"):
        if row["kind"] == "ack":
            events[row["topic_id"], row["part"], row["offset"]].append(row["seq"])
    return events


def beside_last_leaders(run: TracedRun) -> Iterator[tuple[Placed, AcknowledgedRecord]]:
    """The acknowledged records of partitions that had a leader, beside the log of the last one."""
    leaders = run.context(last_leaders)
    events = iter(run.rows("partition_event"))
    event = next(events, None)
    epochs: dict[Place, int] = {}
    for record in acknowledged(run):
        while event is not None and event["seq"] < record.seq:
            if event["kind"] == "become_leader" and event["leader_epoch"] is not None:
                begun = event["topic_id"], event["part"]
                epochs[begun] = max(event["leader_epoch"], epochs.get(begun, -1))
            event = next(events, None)
        place = record.topic_id, record.partition
        leader = leaders.get(place)
        if leader is None:
            continue
        epoch_in_log, value_in_log = leader.log.at(record.offset) or (None, None)
        step = AcknowledgedRecord(
            offset=record.offset,
            value=record.value,
            idempotent=record.numbered,
            epoch=epochs.get(place),
            leader=leader.broker,
            elected=leader.began,
            log_end=leader.log_end,
            replica_deleted=leader.deleted,
            value_in_log=value_in_log,
            epoch_in_log=epoch_in_log,
            excuse=record.excuse,
        )
        yield record, step


# --- one value at each offset ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueAtOffset:
    """A value that clients know at an offset; differs: they know another one there."""

    broker: int | None
    offset: int
    differs: bool
    excuse: str | None


@history(ValueAtOffset, reads=("client_record", "history", "partition_event", "replica_log"))
def values_at_offsets(run: TracedRun, judge: Judge) -> None:
    """Each value that clients know at an offset, beside all others there."""
    digests: dict[tuple[str, int, int], int] = {}
    differing: set[tuple[str, int, int]] = set()
    for record in _placed_for_good(run):
        if record.excuse is None and record.value is not None:
            place, digest = (record.topic_id, record.partition, record.offset), hash(record.value)
            if digests.setdefault(place, digest) != digest:
                differing.add(place)
    for record in _placed_for_good(run):
        if record.value is not None:
            step = ValueAtOffset(
                broker=record.broker,
                offset=record.offset,
                differs=(record.topic_id, record.partition, record.offset) in differing,
                excuse=record.excuse,
            )
            judge.take(step, -1, record.topic or "", record.partition, record.seq)


def _placed_for_good(run: TracedRun) -> Iterator[Placed]:
    """Records that clients read, and acknowledged ones at the offset that is their own.

    A producer with an id may send another batch under a sequence number again, which is
    acknowledged at the offset of the first.
    """
    for response in run.context(received):
        row = response.row
        if row["f"] == "read":
            yield Placed(
                row["seq"], response.topic_id, response.topic, row["part"], row["offset"],
                row["value"], row["broker"], is_numbered(row), response.excuse,
            )  # fmt: skip
    for record in acknowledged(run):
        if record.numbered is False:
            yield record


# --- epochs of producers --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSend:
    """An acknowledged record of a producer whose id has had epochs by the time it was sent.

    Units:  fenced_below: the highest of these epochs.
    """

    broker: int
    offset: int
    epoch: int
    fenced_below: int


@history(ProducerSend, reads=("client_record",))
def producer_sends(run: TracedRun, judge: Judge) -> None:
    """Each acknowledged record of a producer, beside the epochs that were given out before."""
    given: dict[int, list[tuple[int, int]]] = {}  # producer id -> event, epoch; rising
    for row in run.rows("client_record"):
        producer_id, epoch = row["producer_id"], row["producer_epoch"]
        if producer_id is None or epoch is None:
            continue
        if row["f"] == "init":  # every lower epoch is fenced from now on
            epochs = given.setdefault(producer_id, [])
            if not epochs or epoch > epochs[-1][1]:
                seq = row["seq"] if row["resp_seq"] is None else row["resp_seq"]
                epochs.append((seq, epoch))
        elif row["f"] == "send" and row["acks"] == ALL_REPLICAS and is_numbered(row):
            sent = row["send_seq"]
            before = [known for event, known in given.get(producer_id, ()) if event < (sent or 0)]
            if before:
                step = ProducerSend(
                    broker=row["broker"], offset=row["offset"], epoch=epoch, fenced_below=before[-1]
                )
                judge.take(step, -1, row["topic"] or "", row["part"], row["seq"])
