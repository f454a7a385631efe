"""The driver of what is judged of users' programs, when the run is over.

Each finding accuses a program or the cluster. Where the cluster breaks a rule of its own in the
same run, the verdict says so beside each of them: an innocent program looks guilty then.
"""

from __future__ import annotations

from itertools import chain

from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.group.driver import client_events, offsets_of_groups
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import ended_partitions
from minicluster.verify.partition.topic_names import topic_names
from minicluster.verify.producers.driver import producer_batches
from minicluster.verify.programs import failures, groups, holders, lag, transactions
from minicluster.verify.programs.failures import on_processes
from minicluster.verify.programs.groups import GroupsOfPrograms, NotCommitted, SentCommits
from minicluster.verify.programs.holders import Members, on_holders
from minicluster.verify.programs.lag import Lags, Moments, Sessions
from minicluster.verify.programs.readings import AskedEnd, Readings, ends_in
from minicluster.verify.programs.requests import Processes
from minicluster.verify.programs.transactions import Calm, Transactions
from minicluster.verify.rules.rule import Rule, rules_in

MODULES = (groups, lag, transactions, failures, holders)
_RULES: tuple[Rule, ...] = tuple(rule for module in MODULES for rule in rules_in(module))


def judge_programs(run: TracedRun, judge: Judge) -> None:
    """Judge the programs of a run that has ended, if it had any."""
    if not run.header.apps:
        return
    names, batches = run.context(topic_names), [*producer_batches(run)]
    processes, transactions, members = Processes(run.header.apps), Transactions(), Members()
    sessions, sent, ends = Sessions(), SentCommits(names), list[AskedEnd]()
    for row in run.rows("rpc"):
        exchange = Exchange(row)
        sent.on_exchange(exchange)
        process = processes.on_exchange(exchange)
        if process is not None:
            transactions.on_exchange(process, exchange)
            members.on_exchange(exchange)
            sessions.on_exchange(exchange)
            ends += ends_in(process, exchange)
    rows = [
        (event, asked)
        for event in run.context(client_events)
        if (asked := processes.by_id.get(event.request)) is not None
    ]
    known = Readings(rows, ends, names)
    healed_ms, ended_ms = run.header.healed_ms, run.header.ended_at_ms
    of_groups = GroupsOfPrograms(
        known,
        names,
        run.context(ended_partitions).clients,
        NotCommitted(batches),
        Lags(known, processes.every, sessions, _moments(run), healed_ms, ended_ms),
        sent.given_too_much(known),
    )
    for said, topic, part, event in chain(
        of_groups.on_offsets(offsets_of_groups(run)),
        of_groups.on_commits(),
        on_holders(known, members, names),
    ):
        judge.hear(said, -1, topic, part, event)
    judge.hear(transactions.at_end(batches, Calm(healed_ms, ended_ms or 0)))
    judge.hear(on_processes(processes))


def _moments(run: TracedRun) -> Moments:
    """When clients were told something, and when the cluster's own client was done."""
    responses = ((row["seq"], row["vt"]) for row in run.rows("client_record"))
    own = ((row["complete_seq"], row["vt"]) for row in run.rows("history"))
    return Moments(chain(responses, (known for known in own if known[0] is not None)))


HISTORY = History(
    yields=(),
    reads=(
        "client_record", "group_event", "history", "log_batch", "partition_event", "raft_event",
        "replica_log", "rpc",
    ),
    fold=judge_programs,
    rules=_RULES,
)  # fmt: skip
