"""The driver of what is judged of users' programs, when the run is over.

Each finding accuses a program or the cluster. Where the cluster breaks a rule of its own in the
same run, the verdict says so beside each of them: an innocent program looks guilty then.
"""

from __future__ import annotations

from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.programs import groups, holders, lag, processes, transactions
from minicluster.verify.rules.rule import Rule, rules_in

MODULES = (groups, lag, transactions, processes, holders)
_RULES: tuple[Rule, ...] = tuple(rule for module in MODULES for rule in rules_in(module))


def judge_programs(run: TracedRun, judge: Judge) -> None:
    """Judge the programs of a run, if it had any."""
    if run.header.apps:
        for fold in (
            groups.judge_groups,
            groups.judge_commits,
            transactions.judge_transactions,
            processes.judge_processes,
            holders.judge_holders,
        ):
            fold(run, judge)


HISTORY = History(
    yields=(),
    reads=(
        "client_record", "group_event", "history", "log_batch", "partition_event", "raft_event",
        "replica_log", "rpc",
    ),
    fold=judge_programs,
    rules=_RULES,
)  # fmt: skip
