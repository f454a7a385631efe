"""Rules under Kafka 3.9: a run is judged by the promises of the release that it plays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.play.campaign import outcome_of
from minicluster.rules import Rules
from minicluster.scenario.nemesis import generate
from minicluster.verify import verify
from minicluster.verify.evidence.reading import read_run
from tests.verify.build import change, cluster
from tests.verify.check_run import check_run
from tests.verify.test_online_rules import judged, rules_of


def last_member_loses_its_log(rules: Rules, folder: Path) -> Path:
    """orders-0 has come down to one ISR member, which restarts without its log."""
    config = {"eligible.leader.replicas.enable": False}
    with MiniCluster(brokers=3, controllers=1, seed=5, rules=rules, config=config) as one:
        orders = one.create_topic("orders", assignment=[[1, 2]], min_isr=1)
        one.produce(orders, count=5)
        one.kill(2)
        one.wait_until(lambda: orders[0].isr == (one.node(1),), within="60s")
        one.produce(orders, count=3)
        one.kill(1, lose_tail="all")
        one.restart(1)
        one.wait_until(lambda: orders[0].leader == one.node(1), within="60s")
        one.restart(2)
        one.wait_until(orders[0].fully_in_sync, within="60s")
        return one.save(folder)


@pytest.mark.parametrize(("mv", "allowed"), [(21, True), (23, False)])
def test_under_3_9_a_new_incarnation_may_be_in_its_isrs_until_it_is_fenced_again(
    mv: int, allowed: bool
) -> None:
    log = cluster(mv=mv).register(1, incarnation=2)
    found = {"A1", "A2", "A8"}

    assert rules_of(judged(log, Rules.KAFKA_3_9)) & found == (set() if allowed else found)
    assert rules_of(judged(log.unfence(1).op(change((1, 2))).fence(1), Rules.KAFKA_3_9)) >= {"A1"}


@pytest.mark.spark
def test_the_loss_of_the_last_isr_member_is_nobodys_fault(tmp_path: Path, spark: object) -> None:
    runs = [
        last_member_loses_its_log(rules, tmp_path / str(index))
        for index, rules in enumerate((Rules.KAFKA_3_9, Rules.KAFKA_4_3))
    ]
    report = verify(*runs)

    assert report.findings == ()
    assert report.valid
    for run in runs:
        assert check_run(read_run(run, "r")).findings == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "faults"),
    [(310, ()), (546, tuple(f"Z{number}" for number in range(52, 62)))],
)
def test_seeds_that_3_9_failed(
    seed: int, faults: tuple[str, ...], tmp_path: Path, spark: object
) -> None:
    """310: a new incarnation stays in its ISRs. 546: the last ISR member loses its log."""
    outcome = outcome_of(replace(generate(seed), rules="kafka-3.9", faults=faults), runs=tmp_path)

    assert outcome.failure is None
    assert outcome.path is not None
    assert verify(outcome.path).findings == ()
