"""What clients are promised, while a cluster runs: what they read, and that leaders have it all."""

from __future__ import annotations

import pytest

from minicluster.protocol.records import PartitionChangeRecord
from minicluster.rules import Rules
from minicluster.verify import LiveJudge
from tests.verify.check_run import play_rows
from tests.verify.examples import replicas, served, truth
from tests.verify.examples.by_rule import Case, each
from tests.verify.handwritten.clients import leads
from tests.verify.handwritten.log import change, cluster
from tests.verify.handwritten.run import EVERYBODY, RunBuilder, plain_run

BAD = {
    "F6": (served.f6_bad, served.f6_beyond_the_response, served.f6_raised),
    "F18": (replicas.f18_client,),
    "F19": (truth.f19_bad, truth.f19_acknowledged),
    "H5": (served.h5_bad, served.h5_beyond),
}
NEAR = (served.f6_near, replicas.f18_client_near, served.h5_near, truth.f19_near)


def judged(run: RunBuilder, *, log_first: bool = True, rules: Rules | None = None) -> LiveJudge:
    """A run as it comes, with the log committed before the events or after them."""
    live = LiveJudge(rules=rules)
    if log_first:
        return play_rows(run, live)
    play_rows(run, live, batches=())
    for batch in run.log.batches:
        live.commit(batch)
    return live


def rules_of(run: RunBuilder, *, log_first: bool = True, rules: Rules | None = None) -> set[str]:
    return {finding.rule for finding in judged(run, log_first=log_first, rules=rules).findings}


@pytest.mark.parametrize(("rule", "case"), each(BAD))
def test_a_run_that_breaks_a_rule_is_found_though_its_log_comes_later(
    rule: str, case: Case
) -> None:
    assert rule in rules_of(case(), log_first=False)


@pytest.mark.parametrize("case", NEAR, ids=lambda case: case.name)
def test_a_near_miss_passes_though_its_log_comes_later(case: Case) -> None:
    assert not rules_of(case(), log_first=False) & {rule.id for rule in case.rules}


def short(
    *changes: PartitionChangeRecord, leader_epoch: int = 1, run: RunBuilder | None = None
) -> RunBuilder:
    """Offset 1 is acknowledged, and then 2 leads with a log that ends before it."""
    run = leads(plain_run() if run is None else run, end=2)
    run.partition("ack", offset=1, leo=2, **EVERYBODY)
    for record in changes:
        run.log.op(record)
    return run.partition("become_leader", broker=2, leader_epoch=leader_epoch, leo=1, **EVERYBODY)


def test_the_last_member_of_an_isr_may_lose_records() -> None:
    assert "F19" in rules_of(short(change((2, 3), leader=2)))
    assert "F19" not in rules_of(short(change((2,), leader=2)))


@pytest.mark.parametrize("log_first", [True, False])
def test_an_unclean_election_may_lose_records(log_first: bool) -> None:
    unclean = change((1,), leader=-1), change((2,), leader=2, recovery=1)
    run = short(*unclean, change((2, 3), recovery=0), leader_epoch=2)
    live = judged(run, log_first=log_first)
    assert "F19" not in {finding.rule for finding in live.findings}
    assert sum(live.judge.tally("F19").exempt.values()) == 1


def test_a_kafka_whose_new_incarnations_stay_in_the_isr_may_lose_records() -> None:
    def before_elr() -> RunBuilder:
        return short(change((2, 3), leader=2), run=RunBuilder(cluster(mv=20)))

    assert "F19" not in rules_of(before_elr())
    assert "F19" in rules_of(before_elr(), rules=Rules())


def test_an_election_that_is_not_in_the_log_yet_is_judged_once_it_is() -> None:
    """On threads the log is followed by an actor of its own, perhaps a moment later."""
    run = short(change((2, 3), leader=2))
    live = play_rows(run, LiveJudge(), batches=run.log.batches[:-1])
    assert "F19" not in {finding.rule for finding in live.findings}
    live.commit(run.log.batches[-1])
    assert "F19" in {finding.rule for finding in live.findings}
