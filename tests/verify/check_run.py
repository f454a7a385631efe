"""The online checker over a whole run at once, to compare it with Spark."""

from __future__ import annotations

from minicluster.verify.evidence.run import Run
from minicluster.verify.online.checker import OnlineChecker


def check_run(run: Run) -> OnlineChecker:
    """Judge a run's committed log, from its snapshot if it begins with one."""
    node = run.nodes[0] if len(run.nodes) == 1 else None
    checker = OnlineChecker(
        run.name,
        node=-1 if node is None else node.node,
        begins_well=node is None or node.begins_well,
        rules=run.rules,
    )
    if run.start is not None:
        checker.load(run.start.records, run.start.end_offset)
    for batch in run.committed:
        checker.commit(batch)
    return checker
