"""The example scenarios: each goes as written. The zoo judges them, and plants their faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minicluster.actors.play.player import play
from minicluster.scenario import load_scenario

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STORIES = tuple(path.stem for path in sorted(EXAMPLES.glob("*.yaml")))


def test_the_four_stories_are_here() -> None:
    four = {"controlled_shutdown", "fenced_follower", "maximal_isr", "unclean_recovery"}
    assert four <= set(STORIES)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_it_is_written_from_another_seed_too(story: str, tmp_path: Path) -> None:
    """The zoo plays it from its own seed."""
    written = load_scenario(EXAMPLES / f"{story}.yaml")
    other = play(written, runs=tmp_path, seed=written.seed + 1)
    header = json.loads((other.path / "run.json").read_text())
    assert other.failure is None
    assert other.trace_hash == header["trace_hash"]
    assert header["exercises"] == list(written.exercises)
