"""Leaders beside the log directories of their brokers that have failed.

========================  ========================================================================
takes                     ``fault`` rows that name a directory, ``partition_event`` rows of leaders;
                          afterwards ``replica_log`` rows of the end, and the last state of each
                          partition
keeps, by broker          its directories that have failed
yields                    ``LeaderAfterFailure``; afterwards only: ``LogAtEnd``
========================  ========================================================================

Bounded by the log directories.
"""

from __future__ import annotations

import json
from heapq import merge

from minicluster.values import dataclass
from minicluster.verify.histories.replica_logs import logs_at_end
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

# What a broker does as a leader; where it stops, or learns of another leader, it leads no more.
_OF_LEADERS = frozenset(("append", "hw", "ack", "isr_pending", "isr_commit", "become_leader"))
# What fails is reported, and another leader elected, within the timeout for failed directories,
# unless no controller commits anything.
_NOTICED_AFTER_MS = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAfterFailure:
    """An event of a leader whose broker has a failed directory."""

    broker: int
    is_in_failed_directory: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAtEnd:
    """A log of a running broker at the end of the run, of which failures have been noticed.

    Shapes:  leads: the broker is the last leader of the partition. is_online: its directory works.
    """

    broker: int
    leads: bool
    is_online: bool


class FailedDirectories:
    """Takes faults and the events of replicas one by one, as they come."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._failed: dict[int, set[str]] = {}

    def on_fault(self, row: Row) -> None:
        """A fault begins or ends; it may fail a directory of the brokers that it is about."""
        directory = row.get("directory")
        if directory is None:
            return
        for broker in json.loads(row["targets"]):
            failed = self._failed.setdefault(broker, set())
            if row["phase"] == "stop":
                failed.discard(directory)
            else:
                failed.add(directory)

    def on_partition_event(self, row: Row) -> None:
        """An event of a replica."""
        failed = self._failed.get(row["broker"])
        if not failed or row["kind"] not in _OF_LEADERS or row.get("maximal_isr") is None:
            return
        step = LeaderAfterFailure(
            broker=row["broker"],
            is_in_failed_directory=row.get("directory") in failed,
        )
        self._judge.take(step, -1, row["topic"], row["part"], row["seq"])


@history(LeaderAfterFailure, reads=("fault", "partition_event"))
def leaders_after_failures(run: TracedRun, judge: Judge) -> None:
    """Events of leaders after a directory of theirs has failed."""
    failures = [row for row in run.rows("fault") if row["directory"] is not None]
    if not failures:
        return
    directories = FailedDirectories(judge)
    failed = ((row["seq"], 0, row) for row in failures)
    events = ((row["seq"], 1, row) for row in run.rows("partition_event"))
    for _, is_event, row in merge(failed, events, key=lambda event: event[:2]):
        if is_event:
            directories.on_partition_event(row)
        else:
            directories.on_fault(row)


@history(LogAtEnd, reads=("replica_log", "raft_event", "fault"))
def directories_at_end(run: TracedRun, judge: Judge) -> None:
    """The logs of running brokers at the end, beside the last leader of each partition."""
    committed_ms = max(
        (row["vt"] for row in run.rows("raft_event") if row["kind"] == "hw"), default=None
    )
    failed_ms: dict[int, int] = {}
    for row in run.rows("fault"):
        if row["action"] == "fail_dir" and row["phase"] == "start":
            for broker in json.loads(row["targets"]):
                failed_ms[broker] = max(row["vt"], failed_ms.get(broker, row["vt"]))
    for log in run.context(logs_at_end):
        states = run.timeline.partitions.get((log.topic_id, log.partition))
        if log.online is None or states is None or not states[-1].after.alive:
            continue
        if log.broker in failed_ms and (
            committed_ms is None or committed_ms - failed_ms[log.broker] <= _NOTICED_AFTER_MS
        ):
            continue
        step = LogAtEnd(
            broker=log.broker,
            leads=states[-1].after.leader == log.broker,
            is_online=log.online,
        )
        judge.take(step, -1, log.topic, log.partition)
