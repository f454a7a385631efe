"""The example scenarios: each goes as written, exercises its rules, and catches its faults."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.play.player import play
from minicluster.scenario import Scenario, load_scenario
from minicluster.verify import Report, Verdict, verify
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from tests.played_once import PlayedOnce

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STORIES = tuple(path.stem for path in sorted(EXAMPLES.glob("*.yaml")))
FAULTS = {
    "Z01": ("fenced_follower", {"A1", "A3"}),
    "Z05": ("fenced_follower", {"A3", "E17"}),
    "S09": ("unclean_recovery", {"C1", "C2"}),
    "S11": ("maximal_isr", {"B1", "B2"}),
    "S26": ("controlled_shutdown", {"E40"}),
}
NEVER_HIT = ("maximal_isr", "Z05")  # no broker is fenced in that story


def file_of(story: str) -> Path:
    return EXAMPLES / f"{story}.yaml"


def scenario(story: str) -> Scenario:
    return load_scenario(file_of(story))


def header(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / "run.json").read_text())
    return loaded


def test_the_four_stories_are_here() -> None:
    four = {"controlled_shutdown", "fenced_follower", "maximal_isr", "unclean_recovery"}
    assert four <= set(STORIES)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_it_is_written_and_the_same_way_again(
    story: str, played_once: PlayedOnce, tmp_path: Path
) -> None:
    first = played_once(file_of(story))
    again = play(scenario(story), runs=tmp_path)
    assert first.failure is None
    assert first.trace_hash == again.trace_hash == header(first.path)["trace_hash"]
    assert header(first.path)["exercises"] == list(scenario(story).exercises)


@pytest.mark.parametrize("story", STORIES)
def test_another_seed_is_another_run_of_the_same_story(
    story: str, played_once: PlayedOnce, tmp_path: Path
) -> None:
    other = play(scenario(story), runs=tmp_path, seed=scenario(story).seed + 1)
    assert other.failure is None
    assert other.trace_hash != played_once(file_of(story)).trace_hash


@dataclass(frozen=True)
class Judged:
    """All runs, judged in one job."""

    report: Report
    runs: dict[tuple[str, ...], Path]
    failures: dict[tuple[str, ...], ScenarioFailure | None]

    def rules(self, *key: str) -> dict[str, Verdict]:
        name = self.runs[key].name
        return {
            result.id: verdict
            for result in self.report.rules
            for run, verdict, _ in result.by_run
            if run == name
        }

    def verdict(self, *key: str) -> Verdict:
        """The verdict of a report about this run alone."""
        words = self.rules(*key).values()
        if Verdict.INVALID in words:
            return Verdict.INVALID
        if Verdict.UNKNOWN in words or self.reasons(*key):
            return Verdict.UNKNOWN
        return Verdict.VALID

    def reasons(self, *key: str) -> list[str]:
        name = f"{self.runs[key].name}: "
        return [reason for reason in self.report.reasons if reason.startswith(name)]


@pytest.fixture(scope="module")
def judged(played_once: PlayedOnce) -> Judged:
    keys = [(story,) for story in STORIES]
    keys += [(story, fault) for fault, (story, _) in FAULTS.items()]
    keys.append(NEVER_HIT)
    played = {(story, *faults): played_once(file_of(story), *faults) for story, *faults in keys}
    paths = {key: run.path for key, run in played.items()}
    failures = {key: run.failure for key, run in played.items()}
    return Judged(verify(*paths.values()), paths, failures)


@pytest.mark.spark
@pytest.mark.parametrize("story", STORIES)
def test_a_story_is_valid_and_exercises_what_it_names(judged: Judged, story: str) -> None:
    named = scenario(story).exercises
    rules = judged.rules(story)
    assert named
    assert {rule: rules[rule] for rule in named} == dict.fromkeys(named, Verdict.VALID)
    assert judged.verdict(story) is Verdict.VALID


@pytest.mark.spark
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_hit_and_found_by_its_primary_rule(judged: Judged, fault: str) -> None:
    story, primary = FAULTS[fault]
    assert header(judged.runs[story, fault])["hits"][fault] >= 1
    rules = judged.rules(story, fault)
    found = {rule for rule, verdict in rules.items() if verdict is Verdict.INVALID}
    assert found & primary, f"only {sorted(found)} found it"
    assert judged.verdict(story, fault) is Verdict.INVALID
    # The story's rules found it, and nothing else is wrong with the run.
    assert found <= {*scenario(story).exercises, *primary}
    failure = judged.failures[story, fault]
    assert failure is None or failure.kind == "expect" or failure.rule in found


@pytest.mark.spark
def test_a_fault_that_is_on_and_never_hit_proves_nothing(judged: Judged) -> None:
    assert header(judged.runs[NEVER_HIT])["hits"].get(NEVER_HIT[1], 0) == 0
    assert set(judged.rules(*NEVER_HIT).values()).isdisjoint({Verdict.INVALID, Verdict.UNKNOWN})
    assert judged.verdict(*NEVER_HIT) is Verdict.UNKNOWN
    assert judged.reasons(*NEVER_HIT) == [
        f"{judged.runs[NEVER_HIT].name}: fault Z05 was on but never hit"
    ]
