"""Rules of your own: ``minicluster verify RUN --rules-from examples/rules_of_your_own.py``.

``minicluster explain MY1 --rules-from …`` shows what each promises, what breaks it and what nearly
does.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.verify import CASE, broken, history, rule, sql_rule
from minicluster.verify.histories.partitions import PartitionStep
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import Findings


@rule(
    "MY1",
    "Two of three replicas are in sync",
    source="our own service level",
    breaks="Brokers 2 and 3 leave ISR [1, 2, 3], one after the other.",
    keeps="Broker 3 leaves ISR [1, 2, 3].",
)
def two_of_three_replicas_are_in_sync(step: PartitionStep) -> Findings:
    """A partition with three replicas never has an ISR of one."""
    if len(step.after.replicas or ()) < 3:
        return
    yield CASE
    if len(step.after.isr or ()) < 2:
        yield broken(f"ISR {list(step.after.isr or ())}", broker=step.after.leader)


@dataclass(frozen=True)
class ControllerElected:
    """A controller is elected, for the n-th time in its run."""

    node: int
    number: int


@history(ControllerElected, reads=("raft_event",))
def elections_of_controllers(run: TracedRun, judge: Judge) -> None:
    """A step that no history of minicluster yields: the elections of a run, in order."""
    elections = (row for row in run.rows("raft_event") if row["kind"] == "elected")
    for number, row in enumerate(elections, start=1):
        judge.take(ControllerElected(row["node"], number))


@rule(
    "MY2",
    "Controllers seldom change",
    source="our own service level",
    evidence=Evidence.TRACE,
    tables=("raft_event",),
)
def controllers_seldom_change(elected: ControllerElected) -> Findings:
    """At most three controllers are elected in a run."""
    yield CASE
    if elected.number > 3:
        yield broken(f"controller {elected.node} is number {elected.number}", broker=elected.node)


leaders_seldom_move = sql_rule(
    "MY3",
    "Leaders seldom move",
    promise="The leader of a partition moves at most twice in a run.",
    cases="select run from partition_states where leader >= 0",
    findings="""
        select run, offset, topic, partition, leader as broker,
            concat('leader ', leader, ' is number ', number) as message
        from (select run, from_offset as offset, topic, partition, leader, before,
                1 + count_if(leader <> before) over (
                    partition by run, topic, partition order by from_offset) as number
            from (select *, lag(leader) over (
                    partition by run, topic, partition order by from_offset) as before
                from partition_states where leader >= 0))
        where leader <> before and number > 3""",
)
