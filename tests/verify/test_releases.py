"""Rules under Kafka 3.9: a run is judged by the promises of the release that it plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.actors.play.campaign import outcome_of
from minicluster.rules import Rules
from minicluster.scenario.reading import load_scenario
from minicluster.values import replace
from tests.verify.handwritten.log import change, cluster
from tests.verify.in_process import verified
from tests.verify.test_live_rules import judged, rules_of


@pytest.mark.parametrize(("mv", "allowed"), [(21, True), (23, False)])
def test_under_3_9_a_new_incarnation_may_be_in_its_isrs_until_it_is_fenced_again(
    mv: int, allowed: bool
) -> None:
    log = cluster(mv=mv).register(1, incarnation=2)
    found = {"A1", "A2", "A8"}

    assert rules_of(judged(log, Rules.KAFKA_3_9)) & found == (set() if allowed else found)
    assert rules_of(judged(log.unfence(1).op(change((1, 2))).fence(1), Rules.KAFKA_3_9)) >= {"A1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("incarnation_stays", ()),
        ("member_loses_log", tuple(f"Z{number}" for number in range(52, 61))),
    ],
)
def test_scenarios_that_3_9_failed(name: str, faults: tuple[str, ...], tmp_path: Path) -> None:
    scenario = load_scenario(Path(__file__).with_name("releases") / f"{name}.yaml")
    outcome = outcome_of(replace(scenario, rules="kafka-3.9", faults=faults), runs=tmp_path)

    assert outcome.failure is None
    assert outcome.path is not None
    assert verified(outcome.path).findings == ()
