"""The driver of the folds of exchanges: each row of ``rpc`` once, when the run is over."""

from __future__ import annotations

from minicluster.verify.exchange import controller
from minicluster.verify.exchange.controller import ControllerExchanges
from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition.applied import (
    leader_epochs_are_those_of_the_log,
    partition_epochs_are_those_of_the_log,
)
from minicluster.verify.rules.rule import rules_in

MODULES = (controller,)
OF_CONTROLLER = (
    *rules_in(controller),
    partition_epochs_are_those_of_the_log,
    leader_epochs_are_those_of_the_log,
)


def judge_exchanges(run: TracedRun, judge: Judge) -> None:
    """Judge the exchanges of a run that has ended."""
    controllers = ControllerExchanges(run.timeline)
    for row in run.rows("rpc"):
        exchange = Exchange(row)
        judge.hear(controllers.on_exchange(exchange), request=exchange.id)
    judge.hear(controllers.at_end())


HISTORY = History(yields=(), reads=("rpc",), fold=judge_exchanges, rules=OF_CONTROLLER)
