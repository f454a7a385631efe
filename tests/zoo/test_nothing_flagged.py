"""With every switch off nothing is flagged: drawn scenarios, judged online and afterwards.

The quick suite plays a few seeds, and judges them in this process; the ``slow`` one plays 200, and
each slice of them is one job in Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest

from minicluster.actors.play.campaign import Draw
from minicluster.actors.play.many_seeds import campaign
from minicluster.scenario import Scenario
from minicluster.scenario.nemesis import generate
from minicluster.scenario.nemesis.draws import YES
from minicluster.verify import Verdict, verify
from minicluster.verify.verifying import Engine
from tests.scenario.drawn import first_seed, methods, short

SLICE = 50
THREE, FIVE = 0.3, 0.9  # controllers, as fractions of the draw


def few() -> dict[int, Scenario]:
    """Short ones: with five controllers, and with three, compacted logs and voters that change."""

    def changes_voters(drawn: Scenario) -> bool:
        return {"compact", "remove_voter"} <= methods(drawn)

    voters = partial(short, controllers=THREE, dynamic=YES)
    seed = first_seed(changes_voters, voters, hint=2)
    return {6: short(6, controllers=FIVE), seed: voters(seed)}


def flagged(
    seeds: Iterable[int], runs: Path, draw: Draw = generate, engine: Engine = "spark"
) -> list[str]:
    """Findings of the online rules, of the promises after healing and afterwards."""
    paths, reported = [], []
    for outcome in campaign(seeds, runs=runs, draw=draw):
        assert outcome.path is not None
        paths.append(outcome.path)
        if outcome.failure is not None:
            reported.append(f"seed {outcome.seed}: {outcome.failure.kind} {outcome.failure.text}")
    report = verify(*paths, engine=engine)
    reported += [f"{found.run}: {found.rule} {found.message}" for found in report.findings]
    if report.verdict is not Verdict.VALID:
        reported += report.reasons
    return reported


def test_over_a_few_seeds_nothing_is_flagged(tmp_path: Path) -> None:
    drawn = few()
    assert {scenario.controllers for scenario in drawn.values()} == {3, 5}
    assert flagged(drawn, tmp_path, lambda seed, _: drawn[seed], "process") == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 201, SLICE))
def test_over_200_seeds_nothing_is_flagged(first: int, tmp_path: Path) -> None:
    assert flagged(range(first, first + SLICE), tmp_path) == []
