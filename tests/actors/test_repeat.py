"""Rule X1's evidence: the same scenario and seed, played a second time."""

from __future__ import annotations

import json
from pathlib import Path

from minicluster.actors.play.player import play, replay_run
from minicluster.scenario import parse_scenario

SHORT = parse_scenario(
    """
cluster: {controllers: 1, brokers: 2, seed: 5}
steps:
  - {do: create_topic, name: t, replicas: 2}
  - {do: produce, topic: t, count: 3}
  - {after: 3s, do: cut, src: broker(1), dst: controllers}
  - {until: fenced(broker(1)), within: 30s}
""",
    name="short",
)


def header(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / "run.json").read_text())
    return found


def test_a_scenario_played_twice_notes_both_hashes(tmp_path: Path) -> None:
    played = play(SHORT, runs=tmp_path, twice=True)
    assert header(played.path)["repeat_trace_hash"] == played.trace_hash


def test_a_scenario_played_once_leaves_nothing_to_compare(tmp_path: Path) -> None:
    played = play(SHORT, runs=tmp_path)
    assert header(played.path).get("repeat_trace_hash") is None


def test_a_replay_compares_with_the_run_that_it_repeats(tmp_path: Path) -> None:
    run = play(SHORT, runs=tmp_path).path
    first, again = replay_run(run, runs=tmp_path)
    assert first == again.trace_hash == header(again.path)["repeat_trace_hash"]
    assert again.path != run
