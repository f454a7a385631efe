"""The driver of the folds of exchanges: each row of ``rpc`` once, when the run is over."""

from __future__ import annotations

from minicluster.verify.exchange import controller, users
from minicluster.verify.exchange.acls import Acls
from minicluster.verify.exchange.controller import ControllerExchanges
from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.exchange.users import UserExchanges
from minicluster.verify.histories.published import published_images
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition.applied import (
    leader_epochs_are_those_of_the_log,
    partition_epochs_are_those_of_the_log,
)
from minicluster.verify.rules.rule import Rule, Said, rules_in

MODULES = (controller, users)
OF_USERS = rules_in(users)
OF_CONTROLLER = (
    *rules_in(controller),
    partition_epochs_are_those_of_the_log,
    leader_epochs_are_those_of_the_log,
)


def judge_exchanges(run: TracedRun, judge: Judge) -> None:
    """Judge the exchanges of a run that has ended."""
    log = run.timeline
    first = -1 if run.evidence.start is None else run.first_image
    acls = Acls(run.header.config or {}, log, first)
    topics = {topic.topic_id: topic.name for topic in log.topics}
    controllers = ControllerExchanges(log)
    by_users = UserExchanges(acls, run.context(published_images), topics)

    def hear(said: Said, rules: tuple[Rule, ...], request: int = -1) -> None:
        try:
            judge.hear(said, request=request)
        except Exception as error:  # evidence that no run writes: these rules are unknown
            judge.fold_crashed(rules, error)

    for row in run.rows("rpc"):
        exchange = Exchange(row)
        hear(controllers.on_exchange(exchange), OF_CONTROLLER, exchange.id)
        hear(by_users.on_exchange(exchange), OF_USERS, exchange.id)
    hear(controllers.at_end(), OF_CONTROLLER)


HISTORY = History(
    yields=(), reads=("rpc", "publish"), fold=judge_exchanges, rules=(*OF_CONTROLLER, *OF_USERS)
)
