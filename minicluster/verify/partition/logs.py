"""The logs of a partition as they lie on disk, where a run, a broker or a log has ended.

subject   a partition: the events of its replicas, and when the run is over the records of their
          logs, offset by offset
keeps     by broker, its high watermarks; of one offset at a time what all logs have there; where
          the records of idempotent producers are
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import PartitionEvent
from minicluster.verify.partition.truth import Loss
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule

NOBODY = -1  # in the place of a producer's id
_TABLES = ("replica_log", "partition_event", "raft_event")


class HeldRecord:
    """A record of a log; columns of ``replica_log``.

    Shapes:  at: when its log was written down; end: where it, its broker or the run has ended.
             is_committed: at the end, and below the replica's own high watermark. excuse: why
             nothing is promised of it, if so.
    """

    __slots__ = (
        "at", "broker", "excuse", "incarnation", "is_committed", "leader_epoch", "offset",
        "part", "seq", "topic", "value",
    )  # fmt: skip

    def __init__(self, row: Row, loss: Loss | None) -> None:
        self.seq: int = row["seq"]
        self.topic: str = row["topic"]
        self.part: int = row["part"]
        self.broker: int = row["broker"]
        self.incarnation: str | None = row["incarnation"]
        self.offset: int = row["offset"]
        self.leader_epoch: int = row["leader_epoch"]
        self.value: str | None = row["value_id"]
        self.at: str = row["at"]
        self.is_committed = False
        self.excuse = None if loss is None else loss.excuse_of(self.offset, row["leader_epoch"])

    @property
    def at_end(self) -> bool:
        """It is as it is in the end."""
        return self.at == "end"

    @property
    def content(self) -> tuple[int, str | None]:
        """It tells the record from others at its offset."""
        return self.leader_epoch, self.value


class AtOffset(Struct):
    """The records of all logs at one offset.

    Shapes:  committed: what is taken for committed, and not excused. values: by leader epoch, how
             many records with a value.
    """

    committed: set[tuple[int, str | None]]
    values: Mapping[int, int]


class Compared(Struct):
    """The leader of the end, and the running members of its ISR.

    Units:   mark: its high watermark. ends: of the members' logs.
    """

    leader: int
    mark: int
    ends: Mapping[int, int]


class ProducerBatch(NamedTuple):
    """A batch of a producer with an id, a row of ``log_batch``; NOBODY: the marker of one."""

    base_offset: int
    last_offset: int
    producer_id: int


class AtEnd(Struct):
    """The logs of a partition when the run is over.

    Shapes:  processes: by broker that runs, the process that left its log. batches: by broker those
             of producers with an id, in order. numbered: values that an idempotent producer of the
             cluster's own has sent.
    """

    loss: Loss | None
    state: CommittedPartition | None
    processes: Mapping[int, str | None]
    batches: Mapping[int, list[ProducerBatch]] = field(default_factory=dict)
    numbered: set[str | None] = field(default_factory=set)


class LogsOfPartition:
    """The logs of one partition."""

    def __init__(self) -> None:
        self._events: dict[int, array[int]] = defaultdict(lambda: array("q"))  # by broker
        self._marks: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._led: dict[tuple[int, int], int] = {}  # leader and epoch -> its high watermark
        self._ends: dict[tuple[int, str | None], int] = {}  # broker and process -> its log end
        self._known = AtEnd(None, None, {})
        self._compared: Compared | None = None
        self._epochs: dict[tuple[int, str, int], int] = {}  # by log, of the record before
        self._copies: dict[tuple[int, int, str | None], list[HeldRecord]] = defaultdict(list)

    def on_event(self, event: PartitionEvent) -> Said:
        """An event of a replica."""
        if event.hw_new is not None:
            self._events[event.broker].append(event.seq)
            self._marks[event.broker].append(event.hw_new)
            if event.maximal_isr is not None:
                self._led[event.broker, event.leader_epoch] = event.hw_new
        if event.leo is not None:
            self._ends[event.broker, event.incarnation] = event.leo
        return ()

    def on_logs(self, known: AtEnd) -> None:
        """The run is over, and the records of all logs are about to come."""
        self._known, self._compared = known, self._compared_at(known)

    def on_offset(self, rows: list[Row]) -> Said:
        """The records of all logs at the next offset."""
        records = [HeldRecord(row, self._known.loss) for row in rows]
        for record in records:
            record.is_committed = record.at_end and self._is_below_its_mark(record)
            log = record.broker, record.at, record.seq
            yield from leader_epochs_do_not_decrease_along_a_log(record, self._epochs.get(log))
            self._epochs[log] = record.leader_epoch
            if record.at_end and record.value in self._known.numbered:
                self._copies[record.broker, record.seq, record.value].append(record)
        at_offset = _at_offset(records)
        for record in records:
            yield from replicas_do_not_diverge(record, at_offset)
        compared = self._compared
        if compared is not None and records[0].offset < compared.mark:
            yield from self._compare(compared, records)

    def at_end(self) -> Said:
        """All logs are read."""
        for several in self._copies.values():
            yield from a_retried_record_is_appended_once(several)

    def _is_below_its_mark(self, record: HeldRecord) -> bool:
        """The record is below the last high watermark of its replica before it was written down."""
        place = bisect_left(self._events.get(record.broker, ()), record.seq)
        return place > 0 and record.offset < self._marks[record.broker][place - 1]

    def _compared_at(self, known: AtEnd) -> Compared | None:
        state, processes = known.state, known.processes
        if state is None or not state.after.alive or state.after.leader not in processes:
            return None
        leader = state.after.leader
        mark = self._led.get((leader, state.leader_epoch))
        members = [member for member in state.after.isr if member != leader and member in processes]
        ends = {member: self._ends.get((member, processes[member])) for member in members}
        known_ends = {member: end for member, end in ends.items() if end is not None}
        return None if mark is None else Compared(leader, mark, known_ends)

    def _compare(self, compared: Compared, records: list[HeldRecord]) -> Said:
        """The leader's record at an offset beside those of the members of its ISR."""
        processes = self._known.processes
        last = {
            record.broker: record
            for record in records
            if record.at_end and processes.get(record.broker, ...) == record.incarnation
        }
        of_leader = last.get(compared.leader)
        if of_leader is not None and of_leader.value is not None:
            for member, end in compared.ends.items():
                yield from every_isr_member_holds_what_is_committed(
                    of_leader, member, last.get(member), end
                )


def _at_offset(records: Iterable[HeldRecord]) -> AtOffset:
    committed = {
        record.content for record in records if record.is_committed and record.excuse is None
    }
    held = {record.content for record in records if record.value is not None}
    return AtOffset(committed, Counter(epoch for epoch, _ in held))


@rule("F2", "Every ISR member holds what is committed",
      source="KIP-101, KIP-320; StrongISR", evidence=Evidence.TRACE,
      at_end=True, tables=_TABLES,
      breaks="Leader 1 has two committed records; broker 2 is in the ISR, and has one.",
      keeps="Broker 2, with one of two committed records, has left the ISR; 3 has "
      "another tail above the high watermark.")  # fmt: skip
def every_isr_member_holds_what_is_committed(
    record: HeldRecord, member: int, own: HeldRecord | None, log_end: int
) -> Findings:
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
    is_held = log_end > record.offset if own is None else own.content == record.content
    if not is_held:
        yield broken(
            f"broker {member} is in the ISR and lacks the committed record at offset "
            f"{record.offset}, or holds another there",
            record,
            broker=member,
        )


@rule("F4", "Replicas do not diverge below their high watermarks",
      source="KIP-101, KIP-279; log matching", evidence=Evidence.TRACE,
      at_end=True, tables=_TABLES,
      breaks="KIP-279: brokers 1 and 2 have different records at offset 1, and both take it for "
      "committed.",
      keeps="Brokers 1 and 2 differ above the high watermark of 2, in epochs of "
      "their own.")  # fmt: skip
def replicas_do_not_diverge(record: HeldRecord, at_offset: AtOffset) -> Findings:
    """Two replicas hold the same record at every offset below both of their high watermarks, and at
    the same offset and leader epoch at any time, except what an unclean election or the last ISR
    member has lost."""
    if record.excuse is not None:
        if record.is_committed:
            yield exempt(record.excuse)
        return
    if record.is_committed:
        yield CASE
        if len(at_offset.committed) > 1:
            yield broken(
                f"broker {record.broker} holds a record at the committed offset {record.offset} "
                "that differs from other replicas'",
                record,
            )
    if record.value is not None and at_offset.values[record.leader_epoch] > 1:
        yield broken(
            f"broker {record.broker} held a record at offset {record.offset} that differs from "
            "other replicas' in the same leader epoch",
            record,
        )


@rule("F11", "A retried record is appended once",
      source="KIP-98; ProducerStateManager, ProducerAppendInfo", evidence=Evidence.TRACE,
      at_end=True, tables=(*_TABLES, "history"),
      breaks="A record of an idempotent producer is at offsets 0 and 2.",
      keeps="A record of an idempotent producer is at offset 0, and one of another "
      "producer at 1 and 2.")  # fmt: skip
def a_retried_record_is_appended_once(copies: list[HeldRecord]) -> Findings:
    """A record of an idempotent producer is at one offset of a log, however often it was sent,
    except what an unclean election or the last ISR member has lost."""
    promised = [record for record in copies if record.excuse is None]
    for record in copies:
        if record.excuse is not None:
            yield exempt(record.excuse)
            continue
        yield CASE
        if len(promised) > 1:
            yield broken(
                f"broker {record.broker} holds a record of an idempotent producer more than once "
                f"(offset {record.offset})",
                record,
            )


@rule("F17", "Leader epochs do not decrease along a replica's log",
      source="KIP-101; LeaderEpochFileCache", evidence=Evidence.TRACE,
      at_end=True, tables=("replica_log",),
      breaks="A replica holds records of leader epochs 0, 2 and 1, in this order.",
      keeps="A replica holds records of leader epochs 0, 0, 2 and 5, in this order.")  # fmt: skip
def leader_epochs_do_not_decrease_along_a_log(record: HeldRecord, before: int | None) -> Findings:
    """The leader epochs of a replica's records never decrease: each epoch begins once."""
    yield CASE
    if before is not None and record.leader_epoch < before:
        yield broken(
            f"broker {record.broker} holds leader epoch {record.leader_epoch} after a later one",
            record,
        )
