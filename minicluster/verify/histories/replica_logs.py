"""The records that replicas hold, as they are on disk where a run, a broker or a log ends.

========================  ========================================================================
takes                     ``replica_log`` rows, ``partition_event`` rows for high watermarks,
                          ``history`` rows for the producers, the last state of each partition
keeps                     the rows of one offset at a time; by replica its high watermarks, its end
                          and the epoch before that offset; what the cluster's own client has sent
yields                    ``RecordInLog``, ``HeldRecord``, ``IdempotentRecord``,
                          ``CommittedRecordOfMember``; the contexts ``ended_logs``,
                          ``logs_at_end``
========================  ========================================================================

It is made of the rows that a run writes where it ends, so it is made afterwards only. They are as
many as the records in the logs, so nothing is kept for each of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator

from minicluster.trace import own_value
from minicluster.values import dataclass
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import Losses, losses

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
    incarnation: str | None
    online: bool | None


def ended_logs(run: TracedRun) -> list[Row]:
    """Context: the first row of each log that a broker had as it ended, or at the end."""
    first: dict[tuple[object, ...], Row] = {}
    for row in run.rows("replica_log"):
        if row["at"] == "end":
            log = row["seq"], row["broker"], row["incarnation"], row["topic_id"], row["part"]
            if log not in first:
                first[log] = dict(row)
    return list(first.values())


def last_processes(run: TracedRun) -> dict[int, str | None]:
    """Context: the last process of each broker that has left its logs."""
    return {row["broker"]: row["incarnation"] for row in run.context(ended_logs)}


def logs_at_end(run: TracedRun) -> list[FinalLog]:
    """Context: the logs of the brokers that run at the end.

    A broker that was shut down before has left its logs of then as well, and may have truncated
    them since; so only those of its last process are taken.
    """
    last = run.context(last_processes)
    logs: dict[tuple[Place, int], FinalLog] = {}
    for row in run.context(ended_logs):
        key = (row["topic_id"], row["part"]), row["broker"]
        if row["incarnation"] != last[row["broker"]] or key in logs:
            continue
        logs[key] = FinalLog(
            topic=row["topic"],
            topic_id=row["topic_id"],
            partition=row["part"],
            broker=row["broker"],
            incarnation=row["incarnation"],
            online=row["online"],
        )
    return list(logs.values())


def _record(row: Row) -> Record:
    return row["leader_epoch"], row["value_id"]


class _HighWatermarks:
    """The high watermark of each replica at each event of its broker."""

    def __init__(self, run: TracedRun) -> None:
        self._events: dict[tuple[Place, int], array[int]] = defaultdict(lambda: array("q"))
        self._marks: dict[tuple[Place, int], array[int]] = defaultdict(lambda: array("q"))
        for row in run.rows("partition_event"):
            if row["hw_new"] is not None:
                key = (row["topic_id"], row["part"]), row["broker"]
                self._events[key].append(row["seq"])
                self._marks[key].append(row["hw_new"])

    def are_above(self, row: Row) -> bool:
        """A record is below the last one before the event of its row."""
        key = (row["topic_id"], row["part"]), row["broker"]
        index = bisect_left(self._events.get(key, ()), row["seq"])
        return index > 0 and row["offset"] < self._marks[key][index - 1]


@history(RecordInLog, reads=("replica_log",))
def records_in_logs(run: TracedRun, judge: Judge) -> None:
    """Each record of each log, whose rows are in the order of their offsets."""
    before: dict[tuple[object, ...], int | None] = {}  # by log, the leader epoch
    for row in run.rows("replica_log"):
        log = row["broker"], row["topic_id"], row["part"], row["at"], row["seq"]
        step = RecordInLog(
            broker=row["broker"],
            leader_epoch=row["leader_epoch"],
            leader_epoch_before=before.get(log),
        )
        judge.take(step, -1, row["topic"], row["part"], row["seq"])
        before[log] = row["leader_epoch"]


@history(HeldRecord, reads=("replica_log", "partition_event", "raft_event"))
def held_records(run: TracedRun, judge: Judge) -> None:
    """Each record of each replica beside those of the others."""
    lost, marks = run.context(losses), _HighWatermarks(run)
    for rows in run.by_record("replica_log"):
        excuses = [_excuse(lost, row) for row in rows]
        are_committed = [row["at"] == "end" and marks.are_above(row) for row in rows]
        judged = list(zip(rows, are_committed, excuses, strict=True))
        committed = {
            _record(row) for row, is_committed, excuse in judged if is_committed and excuse is None
        }
        held = {_record(row) for row in rows if row["value_id"] is not None}
        values_of_epoch = Counter(epoch for epoch, _ in held)
        for row, is_committed, excuse in judged:
            step = HeldRecord(
                broker=row["broker"],
                offset=row["offset"],
                is_committed=is_committed,
                agrees_with_committed=len(committed) <= 1,
                agrees_in_epoch=row["value_id"] is None
                or values_of_epoch[row["leader_epoch"]] == 1,
                excuse=excuse,
            )
            judge.take(step, -1, row["topic"], row["part"], row["seq"])


@history(IdempotentRecord, reads=("replica_log", "partition_event", "raft_event", "history"))
def idempotent_records(run: TracedRun, judge: Judge) -> None:
    """Each record that an idempotent producer has sent, in each log where that ends.

    A value that a test has chosen may be that of several records.
    """
    numbered = {
        (row["topic"], row["part"], row["value"])
        for row in run.rows("history")
        if row["f"] == "send" and row["idempotent"] and row["value"] == _own_value(row)
    }
    if not numbered:
        return
    lost = run.context(losses)

    def rows() -> Iterator[Row]:
        for row in run.rows("replica_log"):
            if row["at"] == "end" and (row["topic"], row["part"], row["value_id"]) in numbered:
                yield row

    copies = Counter(_copy_of(row) for row in rows() if _excuse(lost, row) is None)
    for row in rows():
        step = IdempotentRecord(
            broker=row["broker"],
            offset=row["offset"],
            copies=copies[_copy_of(row)],
            excuse=_excuse(lost, row),
        )
        judge.take(step, -1, row["topic"], row["part"], row["seq"])


def _own_value(row: Row) -> str:
    return own_value(row["topic"], row["part"], row["op_id"])


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
    processes = {key: log.incarnation for key, log in logs.items()}
    marks: dict[tuple[Place, int, int], int] = {}  # by place, leader, leader epoch
    log_ends: dict[tuple[Place, int], int] = {}
    for row in run.rows("partition_event"):
        place, broker = (row["topic_id"], row["part"]), row["broker"]
        if row["hw_new"] is not None and row["maximal_isr"] is not None:
            marks[place, broker, row["leader_epoch"]] = row["hw_new"]
        if row["leo"] is not None and processes.get((place, broker)) == row["incarnation"]:
            log_ends[place, broker] = row["leo"]
    compared: dict[Place, tuple[int, int, dict[int, int]]] = {}  # leader, mark, ends of members
    for place, states in run.timeline.partitions.items():
        last = states[-1]
        leader = last.after.leader
        mark = marks.get((place, leader, last.leader_epoch))
        if not last.after.alive or mark is None or (place, leader) not in logs:
            continue
        ends = {
            member: log_ends[place, member]
            for member in last.after.isr
            if member != leader and (place, member) in logs and (place, member) in log_ends
        }
        compared[place] = leader, mark, ends
    lost = run.context(losses)
    for rows in run.by_record("replica_log"):
        place, offset = (rows[0]["topic_id"], rows[0]["part"]), rows[0]["offset"]
        leader, mark, ends = compared.get(place, (-1, -1, {}))
        if offset >= mark:
            continue
        final = [
            row
            for row in rows
            if row["at"] == "end" and processes.get((place, row["broker"])) == row["incarnation"]
        ]
        held = {row["broker"]: _record(row) for row in final}
        for row in final:
            if row["broker"] != leader or row["value_id"] is None:
                continue
            for member, log_end in ends.items():
                step = CommittedRecordOfMember(
                    broker=member,
                    offset=offset,
                    is_held=held[member] == _record(row) if member in held else None,
                    log_end=log_end,
                    excuse=_excuse(lost, row),
                )
                judge.take(step, -1, row["topic"], row["part"], row["seq"])
