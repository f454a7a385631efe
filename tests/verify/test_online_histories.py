"""The rules over histories at the end of a run, on the hand-written runs that Spark judges."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minicluster.verify.online.histories import (
    OF_CONSUMERS,
    OF_GROUPS,
    OF_PRODUCERS,
    OF_TRANSACTIONS,
    OF_TRANSFORMS,
    OF_WHOLE_GROUPS,
    judge_histories,
    rules_of_histories,
)
from tests.verify import trace_cases_groups as cases
from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.trace_cases_clients import client

Case = Callable[[], RunBuilder]

ALL = (
    *(*OF_CONSUMERS, *OF_WHOLE_GROUPS, *OF_GROUPS),
    *(*OF_PRODUCERS, *OF_TRANSACTIONS, *OF_TRANSFORMS),
)
BAD = [(rule, case) for rule in ALL for case in cases.BAD[rule]]
NEAR = [(rule, case) for rule in ALL for case in cases.NEAR[rule]]


def rules_of(run: RunBuilder, *lost: tuple[str, int]) -> set[str]:
    found = judge_histories("r", ALL, run.rows.__getitem__, lost)
    return {finding.rule for finding in found}


@pytest.mark.parametrize(("rule", "case"), BAD)
def test_a_run_that_breaks_a_rule_is_found(rule: str, case: Case) -> None:
    assert rule in rules_of(case())


@pytest.mark.parametrize(("rule", "case"), NEAR)
def test_a_near_miss_passes(rule: str, case: Case) -> None:
    assert rule not in rules_of(case())


@pytest.mark.parametrize("case", [cases.h1_bad, cases.h2_bad, cases.h3_bad, cases.h5_bad])
def test_a_partition_that_has_lost_records_promises_nothing(case: Case) -> None:
    assert rules_of(case(), (TOPIC_ID, 1)) != set()
    assert rules_of(case(), (TOPIC_ID, 0)) == set()


def test_every_rule_over_histories_has_a_run_that_breaks_it() -> None:
    assert {*ALL} == cases.BAD.keys()


def test_only_what_clients_did_is_judged() -> None:
    assert rules_of_histories(cases.history().rows["client_record"]) == ()
    assert rules_of_histories(cases.h7_acknowledged().rows["client_record"]) == OF_TRANSACTIONS
    of_a_group = rules_of_histories(cases.h2_bad().rows["client_record"])
    assert of_a_group == (*OF_GROUPS, *OF_CONSUMERS, *OF_WHOLE_GROUPS)


@pytest.mark.parametrize("kind", ["commit", "pending"])
def test_a_user_who_sets_offsets_may_skip_records(kind: str) -> None:
    run = client(cases.f10_bad(), kind, group_id="g", offset=3, connection=5)
    assert OF_WHOLE_GROUPS[0] not in rules_of_histories(run.rows["client_record"])
