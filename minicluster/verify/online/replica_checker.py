"""B2 while a cluster runs, by the replicas' own logs: what a leader counts as held is held.

The rows are those of ``partition_event``, in the order of their events. What a leader believes of
its followers is left to Spark, which has the whole trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.verify.online.findings import Findings
from minicluster.verify.rules.model import Finding
from minicluster.verify.rules.online import online_rule
from minicluster.verify.rules.promises import Promises
from minicluster.verify.rules.replicas.held_logs import HELD_BY_ISR
from minicluster.verify.rules.replicas.logs_by_events import HeldLogs

_RULE = "B2"
_HELD = online_rule(_RULE).checks.index(HELD_BY_ISR)
_TRACE_ONLY = -1  # the offset of a finding that no record of the metadata log shows


class ReplicaChecker:
    """Judges the events of the replicas one by one; each call returns the new findings."""

    def __init__(self, run: str, promises: Promises) -> None:
        self._new = Findings(run, promises, _TRACE_ONLY, {_RULE: 0}, {_RULE: 0})
        self.looked_at = self._new.looked_at
        self._logs = HeldLogs()

    def on_partition_event(self, row: Mapping[str, Any]) -> list[Finding]:
        """An event of a replica."""
        advances = self._logs.on_event(row)
        if not advances:
            return []
        self.looked_at[_RULE] += len(advances)
        for advance in advances:
            if advance.lacks:
                self._new.find(
                    _RULE,
                    _HELD,
                    topic=row["topic"],
                    part=row["part"],
                    broker=row["broker"],
                    new=[advance.member],
                    number=row["hw_new"],
                )
        return self._new.take_new()
