"""Programs as steps of a scenario: played, played again from the run folder, judged."""

from __future__ import annotations

import json
from pathlib import Path

import aiokafka

from minicluster.actors.play.player import play
from minicluster.actors.play.replay import changed_code, replay_run
from minicluster.scenario.reading import load_scenario
from minicluster.verify import verify

KILLED = Path(__file__).with_name("killed_member.yaml")


def test_a_scenario_with_programs_repeats_from_what_it_has_left(tmp_path: Path) -> None:
    played = play(load_scenario(KILLED), runs=tmp_path)
    assert played.failure is None
    header = json.loads((played.path / "run.json").read_text())
    assert header["versions"].keys() >= {"python", "aiokafka"}
    one, two, source = header["apps"]
    assert one["run"] == "tests.programs.service:member" and len(one["sha256"]) == 64
    assert [life["ended"] for life in one["incarnations"]] == ["killed", "stopped"]
    assert [life["ended"] for life in two["incarnations"]] == ["killed", "stopped"]  # by liveness
    assert [life["ended"] for life in source["incarnations"]] == ["ended"]

    before, again = replay_run(played.path, runs=tmp_path)
    assert again.trace_hash == before.trace_hash == played.trace_hash
    assert verify(again.path, engine="process").valid

    assert changed_code(played.path, again.path) == []
    header["apps"][0]["sha256"], header["versions"]["aiokafka"] = "0" * 64, "0.1"
    (played.path / "run.json").write_text(json.dumps(header))
    assert changed_code(played.path, again.path) == [
        "the source of tests.programs.service:member (app one) has changed since",
        f"aiokafka 0.1 then, {aiokafka.__version__} now",
    ]
