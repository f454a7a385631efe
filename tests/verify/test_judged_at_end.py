"""What clients were promised, judged over runs in memory: on the hand-written ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minicluster.actors.cluster.judged_at_end import ABOUT_CLIENTS
from minicluster.rules import Rules
from minicluster.verify.judging import Judge
from minicluster.verify.rules.every import BY_ID
from minicluster.verify.whole import judge_in_memory
from tests.verify import trace_cases_groups as cases
from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.every_case import TRACES_BAD, TRACES_NEAR

Case = Callable[[], RunBuilder]


def judged(run: RunBuilder, *cleaned: tuple[str, int]) -> Judge:
    rules = [BY_ID[rule] for rule in ABOUT_CLIENTS]
    judge = judge_in_memory(
        "r", rules, run.log.batches, run.rows, played_by=Rules(), cleaned=cleaned
    )
    assert judge.crashes == {}
    return judge


def rules_of(run: RunBuilder, *cleaned: tuple[str, int]) -> set[str]:
    return {finding.rule for finding in judged(run, *cleaned).take_new()}


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule in ABOUT_CLIENTS for case in TRACES_BAD[rule]]
)
def test_a_run_that_breaks_a_rule_is_found(rule: str, case: Case) -> None:
    assert rule in rules_of(case())


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule in ABOUT_CLIENTS for case in TRACES_NEAR[rule]]
)
def test_a_near_miss_passes(rule: str, case: Case) -> None:
    judge = judged(case())
    assert rule not in {finding.rule for finding in judge.take_new()}


@pytest.mark.parametrize("case", [cases.h1_bad, cases.h2_bad, cases.h3_bad, cases.h5_bad])
def test_a_partition_whose_log_was_cleaned_promises_nothing(case: Case) -> None:
    assert rules_of(case(), (TOPIC_ID, 1)) != set()
    assert rules_of(case(), (TOPIC_ID, 0)) == set()


def test_only_what_clients_did_is_judged() -> None:
    run = cases.h2_bad()
    assert judged(run).tallies["H2"].looked_at
    run.rows["client_record"].clear()
    assert {rule for rule, tally in judged(run).tallies.items() if tally.looked_at} == set()
