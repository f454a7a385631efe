"""The records that replicas hold, as they are on disk where a run, a broker or a log ends.

========================  ========================================================================
takes                     ``replica_log`` rows, ``partition_event`` rows for high watermarks,
                          ``history`` rows for the producers, the last state of each partition
keeps                     all records of these rows, by offset
yields                    ``RecordInLog``, ``HeldRecord``, ``IdempotentRecord``,
                          ``CommittedRecordOfMember``; the context ``logs_at_end``
========================  ========================================================================

It is made of the rows that a run writes where it ends, so it is made afterwards only, and is as
large as the logs are then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from minicluster.verify.histories.electable import Losses, losses
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

Place = tuple[str, int]  # topic id as the trace has it, partition
Record = tuple[int | None, str | None]  # leader epoch, what tells its value from others


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordInLog:
    """A record, beside the one before it in its log."""

    broker: int
    leader_epoch: int
    leader_epoch_before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRecord:
    """A record that a replica holds, or held, beside what others have at its offset.

    Shapes:  is_committed: it is in the log where that ends, and below the replica's own high
             watermark. agrees_with_committed: so do all committed ones at its offset, with each
             other. agrees_in_epoch: all records of its leader epoch that were ever at its offset.
             excuse: why it promises nothing, if so.
    """

    broker: int
    offset: int
    is_committed: bool
    agrees_with_committed: bool
    agrees_in_epoch: bool
    excuse: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentRecord:
    """A record of an idempotent producer, which may retry, and how often it is in the log."""

    broker: int
    offset: int
    copies: int
    excuse: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRecordOfMember:
    """A committed record of a leader at the end, beside another running member of its ISR.

    Shapes:  is_held: None: the member's log has nothing at this offset.
    Units:   log_end: of the member.
    """

    broker: int
    offset: int
    is_held: bool | None
    log_end: int
    excuse: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FinalLog:
    """The log of a broker that runs at the end.

    Shapes:  online: its directory works; None: not recorded.
    """

    topic: str
    topic_id: str
    partition: int
    broker: int
    online: bool | None
    records: list[Row]


def logs_at_end(run: TracedRun) -> list[FinalLog]:
    """Context: the logs of the brokers that run at the end.

    A broker that was shut down before has left its logs of then as well, and may have truncated
    them since; so only those of its last process are taken.
    """
    rows = [row for row in run.rows("replica_log") if row["at"] == "end"]
    last = {row["broker"]: row["incarnation"] for row in rows}
    logs: dict[tuple[Place, int], FinalLog] = {}
    for row in rows:
        if row["incarnation"] != last[row["broker"]]:
            continue
        key = (row["topic_id"], row["part"]), row["broker"]
        log = logs.get(key)
        if log is None:
            log = logs[key] = FinalLog(
                topic=row["topic"],
                topic_id=row["topic_id"],
                partition=row["part"],
                broker=row["broker"],
                online=row["online"],
                records=[],
            )
        log.records.append(row)
    return list(logs.values())


def _record(row: Row) -> Record:
    return row["leader_epoch"], row["value_id"]


class _HighWatermarks:
    """The high watermark of each replica at each event of its broker."""

    def __init__(self, run: TracedRun) -> None:
        self._events: dict[tuple[Place, int], list[int]] = {}
        self._marks: dict[tuple[Place, int], list[int]] = {}
        for row in run.rows("partition_event"):
            if row["hw_new"] is not None:
                key = (row["topic_id"], row["part"]), row["broker"]
                self._events.setdefault(key, []).append(row["seq"])
                self._marks.setdefault(key, []).append(row["hw_new"])

    def before(self, place: Place, broker: int, event: int) -> int | None:
        """The last one before an event."""
        key = place, broker
        index = bisect_left(self._events.get(key, ()), event)
        return self._marks[key][index - 1] if index else None


@history(RecordInLog, reads=("replica_log",))
def records_in_logs(run: TracedRun, judge: Judge) -> None:
    """Each record of each log, in the order of their offsets."""
    logs: dict[tuple[object, ...], list[Row]] = {}
    for row in run.rows("replica_log"):
        key = row["broker"], row["topic_id"], row["part"], row["at"], row["seq"]
        logs.setdefault(key, []).append(row)
    for rows in logs.values():
        before = None
        for row in sorted(rows, key=lambda record_row: record_row["offset"]):
            step = RecordInLog(
                broker=row["broker"],
                leader_epoch=row["leader_epoch"],
                leader_epoch_before=before,
            )
            judge.take(step, -1, row["topic"], row["part"])
            before = row["leader_epoch"]


@history(HeldRecord, reads=("replica_log", "partition_event", "raft_event"))
def held_records(run: TracedRun, judge: Judge) -> None:
    """Each record of each replica beside those of the others."""
    lost, marks = run.context(losses), _HighWatermarks(run)
    committed: dict[tuple[Place, int], set[Record]] = {}
    of_epoch: dict[tuple[Place, int, int | None], set[str]] = {}
    rows: list[tuple[Row, bool, str | None]] = []
    for row in run.rows("replica_log"):
        place, offset = (row["topic_id"], row["part"]), row["offset"]
        is_committed = False
        if row["at"] == "end":
            mark = marks.before(place, row["broker"], row["seq"])
            is_committed = mark is not None and offset < mark
        excuse = _excuse(lost, row)
        if is_committed and excuse is None:
            committed.setdefault((place, offset), set()).add(_record(row))
        if row["value_id"] is not None:
            key = place, offset, row["leader_epoch"]
            of_epoch.setdefault(key, set()).add(row["value_id"])
        rows.append((row, is_committed, excuse))
    for row, is_committed, excuse in rows:
        place, offset = (row["topic_id"], row["part"]), row["offset"]
        key = place, offset, row["leader_epoch"]
        step = HeldRecord(
            broker=row["broker"],
            offset=offset,
            is_committed=is_committed,
            agrees_with_committed=len(committed.get((place, offset), ())) <= 1,
            agrees_in_epoch=row["value_id"] is None or len(of_epoch[key]) == 1,
            excuse=excuse,
        )
        judge.take(step, -1, row["topic"], row["part"])


@history(IdempotentRecord, reads=("replica_log", "partition_event", "raft_event", "history"))
def idempotent_records(run: TracedRun, judge: Judge) -> None:
    """Each record that an idempotent producer has sent, in each log where that ends."""
    numbered = {
        (row["topic"], row["part"], row["value"])
        for row in run.rows("history")
        if row["f"] == "send" and row["idempotent"] and row["value"] is not None
    }
    if not numbered:
        return
    rows = [
        row
        for row in run.rows("replica_log")
        if row["at"] == "end" and (row["topic"], row["part"], row["value_id"]) in numbered
    ]
    lost = run.context(losses)
    copies = Counter(_copy_of(row) for row in rows if _excuse(lost, row) is None)
    for row in rows:
        step = IdempotentRecord(
            broker=row["broker"],
            offset=row["offset"],
            copies=copies[_copy_of(row)],
            excuse=_excuse(lost, row),
        )
        judge.take(step, -1, row["topic"], row["part"])


def _excuse(lost: Losses, row: Row) -> str | None:
    """Why a record promises nothing: it is one that its partition has lost."""
    loss = lost.get((row["topic_id"], row["part"]))
    if loss is None or row["offset"] < loss.kept or row["leader_epoch"] is None:
        return None
    return loss.why if row["leader_epoch"] < loss.lost_below else None


def _copy_of(row: Row) -> tuple[object, ...]:
    """Equal for the copies of a record in one log as it was at one time."""
    return row["topic_id"], row["part"], row["broker"], row["seq"], row["value_id"]


@history(CommittedRecordOfMember, reads=("replica_log", "partition_event", "raft_event"))
def committed_records_of_members(run: TracedRun, judge: Judge) -> None:
    """The committed records of each leader at the end, beside the other members of its ISR."""
    logs = {((log.topic_id, log.partition), log.broker): log for log in run.context(logs_at_end)}
    processes = {key: log.records[-1]["incarnation"] for key, log in logs.items()}
    marks: dict[tuple[Place, int, int], int] = {}  # by place, leader, leader epoch
    log_ends: dict[tuple[Place, int], int] = {}
    for row in run.rows("partition_event"):
        place, broker = (row["topic_id"], row["part"]), row["broker"]
        if row["hw_new"] is not None and row["maximal_isr"] is not None:
            marks[place, broker, row["leader_epoch"]] = row["hw_new"]
        if row["leo"] is not None and processes.get((place, broker)) == row["incarnation"]:
            log_ends[place, broker] = row["leo"]
    lost = run.context(losses)
    for place, states in run.timeline.partitions.items():
        last = states[-1]
        leader = last.after.leader
        mark = marks.get((place, leader, last.leader_epoch))
        own = logs.get((place, leader))
        if not last.after.alive or mark is None or own is None:
            continue
        committed = [
            row for row in own.records if row["value_id"] is not None and row["offset"] < mark
        ]
        for member in last.after.isr:
            log, log_end = logs.get((place, member)), log_ends.get((place, member))
            if member == leader or log is None or log_end is None:
                continue
            by_offset = {row["offset"]: _record(row) for row in log.records}
            for row in committed:
                other = by_offset.get(row["offset"])
                step = CommittedRecordOfMember(
                    broker=member,
                    offset=row["offset"],
                    is_held=None if other is None else other == _record(row),
                    log_end=log_end,
                    excuse=_excuse(lost, row),
                )
                judge.take(step, -1, row["topic"], row["part"])
