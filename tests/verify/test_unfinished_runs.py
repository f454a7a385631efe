"""Runs that end in the middle of chaos, with nothing healed, are as valid as those that converge.

A user verifies at any moment; a campaign always converges first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.run_folder import write_run
from minicluster.actors.play.player import place_of, play_once
from minicluster.actors.recording.live_checks import ZnodeChecks
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.scenario.nemesis import generate
from minicluster.scenario.scenario import Scenario
from minicluster.values import replace
from minicluster.verify import Verdict
from minicluster.verify.model import Evidence
from minicluster.verify.partition.driver import HISTORY as PARTITIONS
from minicluster.verify.rules.every import ON_ZOOKEEPER, RULES
from minicluster.zookeeper.nemesis import generate_on_zookeeper
from tests.verify.check_run import OF_EACH_LOG, OF_LOGS
from tests.verify.in_process import verified

Draw = Callable[[int], Scenario]
OF_ZNODES = {rule.id for rule in RULES if rule.evidence is Evidence.ZNODES}
OF_PARTITIONS = {rule.id for rule in PARTITIONS.rules if not rule.at_end} - {"F19"}


def judged(draw: Draw, seed: int, folder: Path) -> Verdict:
    """The verdict on a run that ends after a number of steps, which the seed draws."""
    whole = draw(seed)
    steps = whole.steps[: Random(seed).randrange(2, len(whole.steps))]
    cut = replace(whole, steps=steps)
    cluster, failure = play_once(cut)
    print(f"seed {seed} up to step {len(steps)}: {steps[-1].text}")  # shown where the test fails
    assert failure is None
    report = verified(write_run(cluster, place_of(cut, folder)))
    assert cluster.live_checks is not None
    live = cluster.live_checks.looked_at
    rules = {*OF_LOGS} - {*OF_EACH_LOG} | OF_PARTITIONS
    if isinstance(cluster.live_checks, ZnodeChecks):
        rules = OF_ZNODES | OF_PARTITIONS & {rule.id for rule in ON_ZOOKEEPER}
    elif any(
        cluster.disks[node].log(METADATA_DIRECTORY).start_offset for node in cluster.controller_ids
    ):
        rules = OF_PARTITIONS  # the live judge has seen what is only in a snapshot by the end
    assert {rule: live[rule] for rule in rules} == {
        rule: report.rule(rule).looked_at for rule in rules
    }
    return report.verdict


@pytest.mark.parametrize(
    ("draw", "seed"), [(generate, 2), (generate, 7), (generate_on_zookeeper, 1)]
)
def test_a_run_may_end_at_any_step(draw: Draw, seed: int, tmp_path: Path) -> None:
    assert judged(draw, seed, tmp_path) is Verdict.VALID


@pytest.mark.slow
@pytest.mark.parametrize("draw", [generate, generate_on_zookeeper])
@pytest.mark.parametrize("seed", range(8, 40))
def test_many_runs_may_end_at_any_step(draw: Draw, seed: int, tmp_path: Path) -> None:
    assert judged(draw, seed, tmp_path) is Verdict.VALID


def test_a_topic_made_and_written_just_before_the_end(tmp_path: Path) -> None:
    """Its image is too young to have settled; E37 called its replicas strays."""
    with MiniCluster(seed=1) as cluster:
        cluster.run_for("10s")
        cluster.create_topic("orders", replicas=3)
        cluster.produce("orders", count=1)
        run = write_run(inside(cluster), tmp_path / "run")
    report = verified(run)
    assert report.verdict is Verdict.VALID, report.to_text()
