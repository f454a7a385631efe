"""With every switch off nothing is flagged: drawn scenarios, judged online and in Spark.

The quick suite plays a few seeds, the ``slow`` one 200; each slice of them is one job in Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.actors.play.many_seeds import campaign
from minicluster.verify import Verdict, verify

pytestmark = pytest.mark.spark

SLICE = 50
# Short ones: with three and five controllers, compacted logs, voters that change.
FEW = (7, 11, 15, 23)


def flagged(seeds: range | tuple[int, ...], runs: Path) -> list[str]:
    """Findings of the online rules, the promises after healing and Spark for these seeds."""
    paths, reported = [], []
    for outcome in campaign(seeds, runs=runs):
        assert outcome.path is not None
        paths.append(outcome.path)
        if outcome.failure is not None:
            reported.append(f"seed {outcome.seed}: {outcome.failure.kind} {outcome.failure.text}")
    report = verify(*paths)
    reported += [f"{found.run}: {found.rule} {found.message}" for found in report.findings]
    if report.verdict is not Verdict.VALID:
        reported += report.reasons
    return reported


def test_over_a_few_seeds_nothing_is_flagged(tmp_path: Path) -> None:
    assert flagged(FEW, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 201, SLICE))
def test_over_200_seeds_nothing_is_flagged(first: int, tmp_path: Path) -> None:
    assert flagged(range(first, first + SLICE), tmp_path) == []
