"""The rules about a trace, on hand-written runs: each breaks where it should and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster.verify import Report, Verdict
from tests.verify import trace_cases, trace_cases_clients
from tests.verify.every_case import TRACES_BAD as BAD
from tests.verify.every_case import TRACES_NEAR as NEAR
from tests.verify.in_process import judged, verified
from tests.verify.trace_kit import plain_run

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


@pytest.mark.parametrize("fetch_first", [True, False])
def test_rows_of_one_response_count_the_same_in_any_order(
    fetch_first: bool, tmp_path: Path
) -> None:
    """F18: the first response of an epoch has none before it, whichever of its rows comes first."""
    run = trace_cases_clients.leads(plain_run(), end=5)
    for rpc in (7, 8):
        seq = run.seq + 1
        of_one = {"rpc": rpc, "resp_seq": seq, "seq": seq, "high_watermark": 5}
        rows: list[dict[str, Any]] = [{"kind": "fetch"}]
        rows += [{"kind": "read", "offset": offset, "value": str(offset)} for offset in (1, 2)]
        for row in rows if fetch_first else reversed(rows):
            trace_cases_clients.client(run, **of_one, **row)
    assert judged(run.write(tmp_path / "run"), "F18")["F18"] == (1, [])
