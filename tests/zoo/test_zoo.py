"""Every planted fault that a story can show: off it is valid, on its primary rule is broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from docs.generate import zoo_page
from minicluster.actors.cluster.judged_at_end import ABOUT_CLIENTS
from minicluster.actors.play.player import Played
from minicluster.rules import Rules
from minicluster.verify import Report, Verdict, verify
from tests.played_once import PlayedOnce
from tests.zoo.table import EXAMPLES, LEFT_OUT, MACHINES, NEVER_HIT, PLANTS, ROOT, STORIES, Plant
from tests.zoo.test_cluster_faults import STORIES as PROGRAMS

OF_CLIENTS = [plant for plant in PLANTS if {*plant.primary} & {*ABOUT_CLIENTS}]
LINE = "{:4} {:7} {:12} {:12} {}"


def header(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / "run.json").read_text())
    return loaded


@dataclass(frozen=True)
class Judged:
    """All runs, judged together."""

    report: Report
    played: dict[tuple[str, str], Played]

    def rules(self, story: str, zoo: str = "") -> dict[str, Verdict]:
        name = self.played[story, zoo].path.name
        return {
            result.id: verdict
            for result in self.report.rules
            for run, verdict, _ in result.by_run
            if run == name
        }

    def broken(self, story: str, zoo: str = "") -> list[str]:
        return [rule for rule, word in self.rules(story, zoo).items() if word is Verdict.INVALID]

    def reasons(self, story: str, zoo: str) -> list[str]:
        name = f"{self.played[story, zoo].path.name}: "
        return [reason for reason in self.report.reasons if reason.startswith(name)]


@pytest.fixture(scope="module")
def judged(played_once: PlayedOnce) -> Judged:
    played = {(story, ""): played_once(ROOT / f"{story}.yaml") for story in STORIES}
    for plant in (*PLANTS, NEVER_HIT):
        played[plant.story, plant.zoo] = played_once(plant.path, plant.zoo)
    return Judged(verify(*(run.path for run in played.values()), engine="process"), played)


@pytest.mark.parametrize("story", STORIES)
def test_without_a_fault_a_story_goes_as_written_and_is_valid(judged: Judged, story: str) -> None:
    rules = judged.rules(story)
    named = header(judged.played[story, ""].path)["exercises"]

    assert judged.played[story, ""].failure is None
    assert set(rules.values()).isdisjoint({Verdict.INVALID, Verdict.UNKNOWN})
    assert named
    assert {rule: rules[rule] for rule in named} == dict.fromkeys(named, Verdict.VALID)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.zoo)
def test_a_planted_fault_is_killed_by_its_primary_rule(judged: Judged, plant: Plant) -> None:
    run = judged.played[plant.story, plant.zoo]
    head = header(run.path)
    hits = head["hits"].get(plant.zoo, 0)
    broken = set(judged.broken(plant.story, plant.zoo))

    assert hits > 0 or plant.zoo in Rules.zoo()
    assert broken & {*plant.primary}
    if plant.story in EXAMPLES:  # what a reader of the example is told is all that is wrong
        assert broken <= {*head["exercises"], *plant.primary}
    assert run.failure is None or run.failure.kind in ("violated", "until", "expect", "crash")


@pytest.mark.parametrize("plant", OF_CLIENTS, ids=lambda plant: plant.zoo)
def test_a_fault_that_clients_see_ends_the_run_by_a_rule_that_it_breaks(
    judged: Judged, plant: Plant
) -> None:
    failure = judged.played[plant.story, plant.zoo].failure

    assert failure is not None
    assert failure.kind == "violated"
    assert failure.rule in judged.broken(plant.story, plant.zoo)


def test_a_switch_that_is_on_and_never_hit_proves_nothing(judged: Judged) -> None:
    words = judged.rules(NEVER_HIT.story, NEVER_HIT.zoo).values()
    name = judged.played[NEVER_HIT.story, NEVER_HIT.zoo].path.name

    assert Verdict.INVALID not in words
    assert judged.reasons(NEVER_HIT.story, NEVER_HIT.zoo) == [
        f"{name}: fault {NEVER_HIT.zoo} was on but never hit"
    ]


def test_the_kill_table(judged: Judged, record_property: Callable[[str, object], None]) -> None:
    lines = [LINE.format("zoo", "killed", "primary", "also broken", "story")]
    for plant in PLANTS:
        broken = judged.broken(plant.story, plant.zoo)
        killers = [rule for rule in broken if rule in plant.primary]
        others = " ".join(rule for rule in broken if rule not in plant.primary)
        killed = "killed" if killers else "weak" if broken else "lives"
        lines.append(LINE.format(plant.zoo, killed, " ".join(killers), others, plant.story))
    record_property("kill_table", json.dumps(lines))

    assert [line for line in lines[1:] if line.split()[1] != "killed"] == []


def test_every_switch_has_a_story_or_a_test_of_its_machine() -> None:
    switches = zoo_page.switches()
    homes = {*(plant.zoo for plant in PLANTS), *PROGRAMS, *MACHINES}

    assert homes == {*switches}
    assert [zoo for zoo in MACHINES if not zoo_page.shown_elsewhere(zoo, switches[zoo])] == []


def test_what_is_left_out_has_no_switch_and_a_reason() -> None:
    assert {*LEFT_OUT}.isdisjoint(zoo_page.switches())
    assert all(fault and why for fault, why in LEFT_OUT.values())
