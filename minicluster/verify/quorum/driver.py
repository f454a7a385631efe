"""The driver of the fold of the quorum's events, over a run that has ended."""

from __future__ import annotations

from heapq import merge
from operator import itemgetter

from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.quorum import controller_logs, quorum
from minicluster.verify.quorum.controller_logs import (
    each_epoch_begins_with_its_leader_change,
    logs_match,
)
from minicluster.verify.quorum.quorum import (
    Quorum,
    RaftEvent,
    responses_have_the_epoch_of_their_node,
)
from minicluster.verify.rules.rule import rules_in

MODULES = (controller_logs, quorum)
OF_QUORUM = (*rules_in(quorum), each_epoch_begins_with_its_leader_change, logs_match)
_EVENT, _RESPONSE = range(2)


def judge_quorum(run: TracedRun, judge: Judge) -> None:
    """Judge the quorum of a run that has ended."""
    fold = Quorum(run.epoch_starts)
    events = ((row["seq"], _EVENT, row) for row in run.rows("raft_event"))
    of_responses = judge.asks([responses_have_the_epoch_of_their_node])
    responses = (
        (row["resp_seq"], _RESPONSE, row)
        for row in (run.rows("rpc", by="resp_seq") if of_responses else ())
        if row["api"] == "Fetch" and row["resp_seq"] is not None
    )
    for _, rank, row in merge(events, responses, key=itemgetter(0, 1)):
        if rank == _EVENT:
            judge.hear(fold.on_event(RaftEvent(row)))
        else:
            judge.hear(fold.on_fetch(Exchange(row)), request=row["id"])
    judge.hear(fold.at_end())


HISTORY = History(yields=(), reads=("raft_event", "rpc"), fold=judge_quorum, rules=OF_QUORUM)
