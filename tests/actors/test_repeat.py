"""Rule X1's evidence: the same scenario and seed, played a second time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minicluster.actors.play import second_play
from minicluster.actors.play.player import play
from minicluster.actors.play.replay import replay_run
from minicluster.errors import MiniclusterError
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
    assert first.trace_hash == again.trace_hash == header(again.path)["repeat_trace_hash"]
    assert again.path != run


def test_the_second_play_is_another_process_under_another_hash_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order that hangs on hashes is the same in each play of one process."""
    monkeypatch.setattr(second_play, "PROGRAM", "tests.actors.hash_order")
    played = play(SHORT, runs=tmp_path, twice=True)
    assert header(played.path)["repeat_trace_hash"] == "4711"


def test_a_second_play_that_ends_early_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_play, "PROGRAM", "tests.actors.no_such_program")
    with pytest.raises(MiniclusterError, match=r"^the second play, in another process, [^\n]+$"):
        play(SHORT, runs=tmp_path, twice=True)


def test_a_replay_has_the_failure_of_the_run_before(tmp_path: Path) -> None:
    wrong = parse_scenario(
        "cluster: {controllers: 1, brokers: 1, seed: 5}\nsteps: [{expect: fenced(broker(1))}]",
        name="wrong",
    )
    run = play(wrong, runs=tmp_path)
    assert run.failure is not None and header(run.path)["failure"] == run.failure.to_dict()
    before, again = replay_run(run.path, runs=tmp_path)
    assert before.failure == ("expect", None)
    assert again.failure is not None and again.failure.kind == "expect"
