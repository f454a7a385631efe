"""The logs of replicas as brokers leave them: which are there, of which processes."""

from __future__ import annotations

from minicluster.values import Value
from minicluster.verify.histories.traced_run import Row, TracedRun

Place = tuple[str, int]  # topic id as the trace has it, partition


class FinalLog(Value, kw_only=True, eq=False):
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
