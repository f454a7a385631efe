"""Log directories that have failed, beside what their brokers lead (KIP-858, KIP-589).

subject   a broker: the faults of its log directories, the events of its replicas; when the run is
          over also its logs, beside the last leader of each partition
keeps     its directories that have failed, and since when
"""

from __future__ import annotations

import json
from collections import defaultdict
from heapq import merge
from operator import itemgetter

from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.replica_logs import FinalLog, logs_at_end
from minicluster.verify.histories.traced_run import History, Row, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import PartitionEvent
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, rule

# What a broker does as a leader; where it stops, or learns of another leader, it leads no more.
_OF_LEADERS = frozenset(("append", "hw", "ack", "isr_pending", "isr_commit", "become_leader"))
# What fails is reported, and another leader elected, within the timeout for failed directories,
# unless no controller commits anything.
_NOTICED_AFTER_MS = 40_000


class FailedDirectories:
    """The directories of all brokers; failed_ms: when the last one of each has failed."""

    def __init__(self) -> None:
        self.failed: dict[int, set[str]] = defaultdict(set)
        self.failed_ms: dict[int, int] = {}

    def on_fault(self, row: Row) -> Said:
        """A fault begins or ends; it may fail a directory of the brokers that it is about."""
        for broker in json.loads(row["targets"] or "[]") if row["directory"] is not None else ():
            if row["phase"] == "stop":
                self.failed[broker].discard(row["directory"])
            else:
                self.failed[broker].add(row["directory"])
        for broker in json.loads(row["targets"] or "[]") if row["action"] == "fail_dir" else ():
            if row["phase"] == "start":
                self.failed_ms[broker] = row["vt"]
        yield from ()

    def on_event(self, row: Row) -> Said:
        """An event of a replica."""
        failed = self.failed.get(row["broker"])
        if failed and row["kind"] in _OF_LEADERS and row["maximal_isr"] is not None:
            is_failed = row["directory"] in failed
            yield from no_broker_leads_from_a_failed_directory(PartitionEvent(row), is_failed)

    def on_log(self, log: FinalLog, leader: int, committed_ms: int | None) -> Said:
        """A log of a broker that runs at the end; what was committed last shows what is noticed."""
        failed_ms = self.failed_ms.get(log.broker)
        is_noticed = failed_ms is None or (
            committed_ms is not None and committed_ms - failed_ms > _NOTICED_AFTER_MS
        )
        yield from _nor_when_the_run_is_over(log, leader, is_noticed)


@rule("D6", "No broker leads from a failed log directory",
      source="KIP-858, KIP-589; ReplicaManager.handleLogDirFailure", evidence=Evidence.TRACE,
      at_end=True, tables=("partition_event", "fault"),
      breaks="Leader 1 appends to its log in directory A, which it has found to be offline.",
      keeps="The directory of leader 1 is online again, and that of follower 2 is "
      "not.")  # fmt: skip
def no_broker_leads_from_a_failed_directory(event: PartitionEvent, is_failed: bool) -> Findings:
    """No running broker leads a partition in a log directory of its own that has failed, nor, at
    the end of a run, one whose log lies in a directory that failed longer ago than the timeout for
    it, or that it has found to be offline."""
    yield CASE
    if is_failed:
        yield broken(
            f"broker {event.broker} leads a partition in a directory of its own that has failed",
            event,
        )


@no_broker_leads_from_a_failed_directory.also
def _nor_when_the_run_is_over(log: FinalLog, leader: int, is_noticed: bool) -> Findings:
    """The disks show it."""
    yield CASE
    if log.broker == leader and is_noticed and not log.online:
        yield broken(
            f"broker {log.broker} leads a partition whose log lies in a directory that has failed",
            broker=log.broker,
            topic=log.topic,
            partition=log.partition,
        )


def judge_directories(run: TracedRun, judge: Judge) -> None:
    """Judge the log directories of a run that has ended."""
    fold = FailedDirectories()
    faults = [(row["seq"], fold.on_fault, dict(row)) for row in run.rows("fault")]
    has_failures = any(row["directory"] is not None for _, _, row in faults)
    rows = run.rows("partition_event") if has_failures else ()
    events = ((row["seq"], fold.on_event, row) for row in rows)
    for _, take, row in merge(faults, events, key=itemgetter(0)):
        judge.hear(take(row))
    committed_ms = run.context(commits).last_ms
    for log in run.context(logs_at_end):
        states = run.timeline.partitions.get((log.topic_id, log.partition))
        if log.online is not None and states is not None and states[-1].after.alive:
            judge.hear(fold.on_log(log, states[-1].after.leader, committed_ms))


HISTORY = History(
    yields=(),
    reads=("fault", "partition_event", "raft_event", "replica_log"),
    fold=judge_directories,
    rules=(no_broker_leads_from_a_failed_directory,),
)
