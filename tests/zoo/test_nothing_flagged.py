"""With every switch off nothing is flagged: drawn scenarios, judged online and in Spark.

The quick suite plays a few seeds, the ``slow`` one 200; each slice of them is one job in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from minicluster.actors.play.many_seeds import campaign
from minicluster.scenario import Scenario
from minicluster.verify import Verdict, verify
from tests.scenario.drawn import is_short, methods, seeds_of

pytestmark = pytest.mark.spark

SLICE = 50
WANTED: tuple[Callable[[Scenario], bool], ...] = (
    lambda drawn: drawn.controllers == 5,
    lambda drawn: drawn.controllers == 3 and "compact" in methods(drawn),
    lambda drawn: drawn.controllers == 3 and "remove_voter" in methods(drawn),
)


def few() -> list[int]:
    """Short ones: with five controllers, and with three compacted logs and voters that change."""
    found: dict[int, None] = {}
    for wanted in WANTED:
        found |= dict.fromkeys(seeds_of(lambda drawn, w=wanted: is_short(drawn) and w(drawn)))
    return list(found)


def flagged(seeds: range | list[int], runs: Path) -> list[str]:
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
    assert flagged(few(), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 201, SLICE))
def test_over_200_seeds_nothing_is_flagged(first: int, tmp_path: Path) -> None:
    assert flagged(range(first, first + SLICE), tmp_path) == []
