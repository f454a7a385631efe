"""The driver of the fold of the quorum's events, over a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import merge
from operator import itemgetter
from typing import Any

from minicluster.configs.views import broker_default
from minicluster.durations import parse_duration_ms
from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.quorum import check_quorum, controller_logs, quorum
from minicluster.verify.quorum.check_quorum import a_leader_without_a_majority_resigns
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

MODULES = (controller_logs, quorum, check_quorum)
OF_QUORUM = (
    *rules_in(quorum),
    *rules_in(check_quorum),
    each_epoch_begins_with_its_leader_change,
    logs_match,
)
_OF_RESPONSES = (responses_have_the_epoch_of_their_node, a_leader_without_a_majority_resigns)
_FETCH_TIMEOUT = "controller.quorum.fetch.timeout.ms"
_FETCHES = ("Fetch", "FetchSnapshot")
_EVENT, _RESPONSE = range(2)


def judge_quorum(run: TracedRun, judge: Judge) -> None:
    """Judge the quorum of a run that has ended."""
    # Twice the time of a leader, which is one and a half fetch timeouts (``check_quorum``).
    fold = Quorum(run.epoch_starts, patience_ms=3 * _fetch_timeout_ms(run.header.config))
    events = ((row["seq"], _EVENT, row) for row in run.rows("raft_event"))
    of_responses = judge.asks(_OF_RESPONSES)
    responses = (
        (row["resp_seq"], _RESPONSE, row)
        for row in (run.rows("rpc", by="resp_seq") if of_responses else ())
        if row["api"] in _FETCHES and row["resp_seq"] is not None
    )
    for _, rank, row in merge(events, responses, key=itemgetter(0, 1)):
        if rank == _EVENT:
            judge.hear(fold.on_event(RaftEvent(row)))
        else:
            judge.hear(fold.on_fetch(Exchange(row)), request=row["id"])
    judge.hear(fold.at_end())


def _fetch_timeout_ms(config: Mapping[str, Any]) -> int:
    """As the cluster takes it: a number is milliseconds, and a text may have a unit."""
    given = str(config.get(_FETCH_TIMEOUT, broker_default(_FETCH_TIMEOUT)))
    return int(given) if given.isdecimal() else parse_duration_ms(given, what=_FETCH_TIMEOUT)


HISTORY = History(yields=(), reads=("raft_event", "rpc"), fold=judge_quorum, rules=OF_QUORUM)
