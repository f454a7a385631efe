"""What clients were promised, judged over runs in memory: on the hand-written ones."""

from __future__ import annotations

import pytest

from minicluster.actors.cluster.judged_at_end import ABOUT_CLIENTS
from minicluster.rules import Rules
from minicluster.verify.judging import Judge
from minicluster.verify.rules.every import BY_ID
from minicluster.verify.whole import judge_in_memory
from tests.verify.examples.by_rule import RUNS_BAD, RUNS_NEAR, Case, each
from tests.verify.examples.groups import h1_bad, h2_bad
from tests.verify.examples.producers import h3_bad
from tests.verify.handwritten.run import TOPIC_ID, RunBuilder

ABOUT_CLIENTS_BAD, ABOUT_CLIENTS_NEAR = (
    {rule: table[rule] for rule in ABOUT_CLIENTS} for table in (RUNS_BAD, RUNS_NEAR)
)


def judged(run: RunBuilder, *cleaned: tuple[str, int]) -> Judge:
    rules = [BY_ID[rule] for rule in ABOUT_CLIENTS]
    judge = judge_in_memory(
        "r", rules, run.log.batches, run.rows, played_by=Rules(), cleaned=cleaned
    )
    assert judge.crashes == {}
    return judge


def rules_of(run: RunBuilder, *cleaned: tuple[str, int]) -> set[str]:
    return {finding.rule for finding in judged(run, *cleaned).take_new()}


@pytest.mark.parametrize(("rule", "case"), each(ABOUT_CLIENTS_BAD))
def test_a_run_that_breaks_a_rule_is_found(rule: str, case: Case) -> None:
    assert rule in rules_of(case())


@pytest.mark.parametrize(("rule", "case"), each(ABOUT_CLIENTS_NEAR))
def test_a_near_miss_passes(rule: str, case: Case) -> None:
    judge = judged(case())
    assert rule not in {finding.rule for finding in judge.take_new()}


@pytest.mark.parametrize("case", [h1_bad, h2_bad, h3_bad], ids=lambda case: case.name)
def test_a_partition_whose_log_was_cleaned_promises_nothing(case: Case) -> None:
    assert rules_of(case(), (TOPIC_ID, 1)) != set()
    assert rules_of(case(), (TOPIC_ID, 0)) == set()


def test_only_what_clients_did_is_judged() -> None:
    run = h2_bad()
    assert judged(run).tallies["H2"].looked_at
    run.rows["client_record"].clear()
    assert {rule for rule, tally in judged(run).tallies.items() if tally.looked_at} == set()
