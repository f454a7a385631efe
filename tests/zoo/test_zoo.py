"""Every planted fault that a story can show: off it is valid, on its primary rule is broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs.generate import zoo_page
from minicluster.actors.cluster.judged_at_end import ABOUT_CLIENTS
from minicluster.actors.play.player import Played, play
from minicluster.rules import Rules
from minicluster.scenario import load_scenario
from minicluster.values import replace
from minicluster.verify import Report, Verdict, verify
from tests.zoo.table import EXAMPLES, LEFT_OUT, MACHINES, NEVER_HIT, PLANTS, ROOT, STORIES, Plant
from tests.zoo.test_cluster_faults import STORIES as PROGRAMS

LINE = "{:4} {:7} {:12} {:12} {}"


def played_and_judged(story: str, runs: Path, *faults: str) -> tuple[Played, Report]:
    played = play(replace(load_scenario(ROOT / f"{story}.yaml"), faults=faults), runs=runs)
    return played, verify(played.path, engine="process")


def header(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / "run.json").read_text())
    return loaded


@pytest.mark.parametrize("story", STORIES)
def test_without_a_fault_a_story_goes_as_written_and_is_valid(story: str, tmp_path: Path) -> None:
    played, report = played_and_judged(story, tmp_path)
    verdicts = {rule.id: rule.verdict for rule in report.rules}
    named = header(played.path)["exercises"]

    assert played.failure is None
    assert {*verdicts.values()}.isdisjoint({Verdict.INVALID, Verdict.UNKNOWN})
    assert named
    assert {rule: verdicts[rule] for rule in named} == dict.fromkeys(named, Verdict.VALID)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.zoo)
def test_a_planted_fault_is_killed_by_its_primary_rule(
    plant: Plant, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    played, report = played_and_judged(plant.story, tmp_path, plant.zoo)
    broken = [rule.id for rule in report.rules if rule.verdict is Verdict.INVALID]
    killers = [rule for rule in broken if rule in plant.primary]
    others = [rule for rule in broken if rule not in plant.primary]
    killed = "killed" if killers else "weak" if broken else "lives"
    line = LINE.format(plant.zoo, killed, " ".join(killers), " ".join(others), plant.story)
    record_property("kill", line)
    head, failure = header(played.path), played.failure

    assert head["hits"].get(plant.zoo, 0) > 0 or plant.zoo in Rules.zoo()
    assert killers
    if plant.story in EXAMPLES:  # what a reader of the example is told is all that is wrong
        assert {*others} <= {*head["exercises"]}
    assert failure is None or failure.kind in ("violated", "until", "expect", "crash")
    if {*plant.primary} & {*ABOUT_CLIENTS}:  # clients see it, and so it ends the run
        assert failure is not None and failure.kind == "violated"
        assert failure.rule in broken


def test_a_switch_that_is_on_and_never_hit_proves_nothing(tmp_path: Path) -> None:
    played, report = played_and_judged(NEVER_HIT.story, tmp_path, NEVER_HIT.zoo)

    assert Verdict.INVALID not in {rule.verdict for rule in report.rules}
    assert report.reasons == (f"{played.path.name}: fault {NEVER_HIT.zoo} was on but never hit",)


def test_every_switch_has_a_story_or_a_test_of_its_machine() -> None:
    switches = zoo_page.switches()
    homes = {*(plant.zoo for plant in PLANTS), *PROGRAMS, *MACHINES}

    assert homes == {*switches}
    assert [zoo for zoo in MACHINES if not zoo_page.shown_elsewhere(zoo, switches[zoo])] == []


def test_what_is_left_out_has_no_switch_and_a_reason() -> None:
    assert {*LEFT_OUT}.isdisjoint(zoo_page.switches())
    assert all(fault and why for fault, why in LEFT_OUT.values())
