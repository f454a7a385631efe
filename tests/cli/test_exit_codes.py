"""One exit code from the verdict of a run and the failures of its scenario."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.actors.play.performer import Failure
from minicluster.cli.playing import _exit_code
from minicluster.verify import Report, Verdict

VALID, INVALID, UNKNOWN = 0, 1, 2


def report(verdict: Verdict) -> Report:
    return Report(verdict=verdict, rules=(), runs=(), reasons=(), sources=())


@pytest.mark.parametrize(
    ("verdict", "kind", "code"),
    [
        (Verdict.VALID, None, VALID),
        (Verdict.INVALID, None, INVALID),
        (Verdict.UNKNOWN, None, UNKNOWN),
        (Verdict.VALID, "until", UNKNOWN),
        (Verdict.VALID, "unanswered", UNKNOWN),
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
    failure = None if kind is None else Failure(kind, "it went another way")
    assert _exit_code(report(verdict), failure) == code
