"""The example scenarios: each goes as written. The zoo judges them, and plants their faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.play.player import play
from minicluster.scenario import Scenario, load_scenario

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STORIES = tuple(path.stem for path in sorted(EXAMPLES.glob("*.yaml")))


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
def test_a_story_goes_as_it_is_written_and_the_same_way_again_but_for_another_seed(
    story: str, tmp_path: Path
) -> None:
    written = scenario(story)
    first = play(written, runs=tmp_path / "first")
    again = play(written, runs=tmp_path / "again")
    other = play(written, runs=tmp_path / "other", seed=written.seed + 1)
    assert first.failure is None
    assert first.trace_hash == again.trace_hash == header(first.path)["trace_hash"]
    assert header(first.path)["exercises"] == list(written.exercises)
    assert other.failure is None
    assert other.trace_hash != first.trace_hash
