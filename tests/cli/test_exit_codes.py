"""One verdict and one exit code from the rules of a run and the failure of its scenario."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.verify import Report, Verdict
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.judged import whole_verdict
from minicluster.verify.reporting.report_data import RuleResult
from minicluster.verify.rules.every import RULES

VALID, INVALID, UNKNOWN = 0, 1, 2


def of_rule(verdict: Verdict) -> RuleResult:
    return RuleResult(
        rule=RULES[0], verdict=verdict, looked_at=1, not_promised=0, findings=(), reasons=()
    )


@pytest.mark.parametrize(
    ("verdict", "kind", "code"),
    [
        (Verdict.VALID, None, VALID),
        (Verdict.INVALID, None, INVALID),
        (Verdict.UNKNOWN, None, UNKNOWN),
        (Verdict.VALID, "until", UNKNOWN),
        (Verdict.VALID, "no_response", UNKNOWN),
        (Verdict.VALID, "unseen", UNKNOWN),
        (Verdict.VALID, "refused", UNKNOWN),
        (Verdict.VALID, "expect", INVALID),
        (Verdict.VALID, "crash", INVALID),
        (Verdict.VALID, "violated", INVALID),
        (Verdict.VALID, "stuck", INVALID),
        (Verdict.INVALID, "until", INVALID),  # what is proved broken stays broken
    ],
)
def test_a_scenario_that_went_another_way_is_not_valid(
    verdict: Verdict, kind: Any, code: int
) -> None:
    failures = [] if kind is None else [ScenarioFailure(kind, "it went another way")]
    whole = whole_verdict([of_rule(verdict)], [], failures)
    assert Report(verdict=whole, rules=(), runs=(), reasons=()).exit_code == code
