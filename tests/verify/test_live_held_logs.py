"""B2 while a cluster runs: on the hand-written runs, and on a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.actors.play.player import play
from minicluster.scenario import load_scenario
from minicluster.values import replace
from minicluster.verify import LiveJudge
from tests.verify.examples.by_rule import RUNS_BAD, RUNS_NEAR, Case

ZOO = Path(__file__).resolve().parents[1] / "zoo"


def broken(case: Case) -> set[str]:
    judge, run = LiveJudge(), case()
    for batch in run.log.batches:
        judge.commit(batch)
    for row in sorted(run.rows["partition_event"], key=lambda row: row["seq"]):
        judge.on_partition_event(row)
    return {finding.rule for finding in judge.findings}


@pytest.mark.parametrize("case", RUNS_BAD["B2"], ids=lambda case: case.name)
def test_a_run_that_breaks_it_is_found(case: Case) -> None:
    assert "B2" in broken(case)


@pytest.mark.parametrize("case", RUNS_NEAR["B2"], ids=lambda case: case.name)
def test_a_near_miss_passes(case: Case) -> None:
    assert "B2" not in broken(case)


def test_a_leader_that_counts_what_is_not_held_ends_the_run(tmp_path: Path) -> None:
    scenario = load_scenario(ZOO / "stopped_follower.yaml")
    planted = play(replace(scenario, faults=("S56",)), runs=tmp_path)
    assert planted.failure is not None and planted.failure.rule == "B2"
