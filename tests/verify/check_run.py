"""The live judge over a whole run or log at once, to compare it with the other drivers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

from minicluster.log.batch import RecordBatch
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.verify import memberships
from minicluster.verify.evidence.run import Run
from minicluster.verify.histories import brokers, committed_log, partitions, topics
from minicluster.verify.live import LiveJudge, LiveZnodeJudge
from minicluster.verify.rules import partitions as rules_of_partitions
from minicluster.verify.rules.every import RULES
from tests.verify.handwritten.run import RunBuilder

OF_EACH_LOG = ("E01", "E02", "E03")
"""Of several controllers each log is judged afterwards, and live the committed one."""
_OF_LOGS = {module.__name__ for module in (brokers, committed_log, partitions, topics)}
_CALLED = {module.__name__ for module in (memberships, rules_of_partitions)}
OF_LOGS = tuple(
    rule.id
    for rule in RULES
    if not rule.at_end
    and (
        rule.id in OF_EACH_LOG
        or any(
            function.__module__ in _CALLED if kind is None else kind.__module__ in _OF_LOGS
            for kind, function in rule.parts
        )
    )
)
"""The rules that are judged of a log alone, live as well."""


def judge_of(run: Run) -> LiveJudge:
    """A judge for a run's committed log, from its snapshot if it begins with one."""
    node = run.nodes[0] if len(run.nodes) == 1 else None
    live = LiveJudge(run.name, rules=run.rules, begins_well=node is None or node.begins_well)
    if run.start is not None:
        live.load(run.start.records, run.start.end_offset)
    return live


def check_run(run: Run) -> LiveJudge:
    """Judge a run's committed log."""
    live = judge_of(run)
    for batch in run.committed:
        live.commit(batch)
    return live


def play_rows(
    run: RunBuilder, live: LiveJudge, batches: Sequence[RecordBatch] | None = None
) -> LiveJudge:
    """Give a judge a hand-written run: its log, or other batches, and its events.

    Where the trace shows when the log was committed, it is given to the judge then; else first.
    """
    events: dict[str, Callable[..., object]] = {
        "partition_event": live.on_partition_event,
        "raft_event": live.on_raft_event,
        "client_record": lambda row: live.on_response([row]),
    }
    rows = [(row["seq"], table, row) for table in events for row in run.rows[table]]
    marks = [row["offset"] for row in run.rows["raft_event"] if row["kind"] == "hw"]
    uncommitted = deque(run.log.batches if batches is None else batches)

    def commit(end: float) -> None:
        while uncommitted and uncommitted[0].base_offset < end:
            live.commit(uncommitted.popleft())

    if not marks:
        commit(inf)
    for _, table, row in sorted(rows, key=lambda one: one[0]):
        if table == "raft_event" and row["kind"] == "hw":
            commit(row["offset"] or 0)
        if table == "partition_event" and row["leo"] is None:  # the run is not about it
            row = row | {"leo": 0}
        events[table](row)
    commit(inf)
    live.end()
    return live


def check_znodes(folder: Path) -> LiveZnodeJudge:
    """Judge ZooKeeper's log of a run line by line, as of a running cluster."""
    header = json.loads((folder / "run.json").read_text())
    live = LiveZnodeJudge(
        InterBrokerProtocol.parse(header["inter_broker_protocol"]),
        run=folder.name,
        members_checked=header.get("ineligible_members_refused", True),
    )
    for line in (folder / "zookeeper" / "log.jsonl").read_text().splitlines():
        live.on_line(json.loads(line))
    live.end(header["ended_at_ms"])
    return live
