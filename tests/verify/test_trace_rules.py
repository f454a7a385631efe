"""The rules about a trace, on hand-written runs: each breaks where it should and only there."""

from __future__ import annotations

import pytest

from minicluster.verify import Report, Verdict
from minicluster.verify.rules import RULES
from tests.verify import trace_cases, trace_cases_quorum, trace_cases_replicas
from tests.verify.in_process import verified

BAD = {
    **trace_cases.BAD,
    **trace_cases_replicas.REQUESTS_BAD,
    **trace_cases_quorum.TRACED_BAD,
}
NEAR = {
    **trace_cases.NEAR,
    **trace_cases_replicas.REQUESTS_NEAR,
    **trace_cases_quorum.TRACED_NEAR,
}
EVERY_CASE = {
    case.__name__: case for several in (*BAD.values(), *NEAR.values()) for case in several
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("runs")
    for name, case in EVERY_CASE.items():
        case().write(folder / name)
    return verified(*(folder / name for name in EVERY_CASE))


def verdict(report: Report, rule: str, run: str) -> tuple[Verdict, int]:
    return {name: (word, looked) for name, word, looked in report.rule(rule).by_run}[run]


@pytest.mark.parametrize(
    ("rule", "case"),
    [(rule, case) for rule, several in BAD.items() for case in several],
)
def test_a_run_that_breaks_a_rule_is_invalid(
    rule: str, case: trace_cases.Case, report: Report
) -> None:
    assert verdict(report, rule, case.__name__)[0] is Verdict.INVALID


@pytest.mark.parametrize(
    ("rule", "case"),
    [(rule, case) for rule, several in NEAR.items() for case in several],
)
def test_a_near_miss_is_valid(rule: str, case: trace_cases.Case, report: Report) -> None:
    word, looked_at = verdict(report, rule, case.__name__)

    assert word is Verdict.VALID
    assert looked_at > 0


def test_every_rule_about_a_trace_has_both_runs() -> None:
    others = [rule.id for rule in RULES if not rule.online]

    assert sorted(trace_cases.BAD) == others
    assert sorted(trace_cases.NEAR) == others
