"""Everything that a scenario can do to controllers, in one story (KIP-595, KIP-630, KIP-853)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from minicluster.actors.cluster.actions.controllers import voters
from minicluster.actors.play.player import Played, play, play_once
from minicluster.scenario import load_scenario, parse_scenario

STORY = Path(__file__).parent / "quorum.yaml"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(load_scenario(STORY), runs=tmp_path_factory.mktemp("runs"))


def test_the_story_goes_as_it_is_written(played: Played) -> None:
    assert played.failure is None, played.failure


def test_every_step_found_somebody_and_did_something(played: Played) -> None:
    rows = pq.read_table(played.path / "trace" / "fault.parquet").to_pylist()
    notes = {(row["action"], row["detail"].split(":")[0]) for row in rows if row["phase"] == "note"}
    assert notes == {("set_config", "set retention.ms")}  # while three of five are gone
    targets: dict[str, list[object]] = {}
    for row in rows:
        if row["phase"] == "start":
            targets.setdefault(row["action"], []).extend(json.loads(row["targets"]))
    actions = "compact cut isolate kill partition pause resign restart slow_disk snapshot wipe"
    assert " ".join(sorted(targets)) == actions
    assert all(targets.values())
    assert sorted(targets["snapshot"]) == [101, 102, 103, 104, 105]  # type: ignore[type-var]
    assert targets["wipe"] == [105]
    assert len(targets["partition"]) == 4  # one way, to the other controllers
    assert all(src != dst for src, dst in targets["partition"])  # type: ignore[misc,attr-defined]


def test_a_scenario_raises_kraft_version_and_lets_another_controller_vote() -> None:
    text = """
name: a static quorum becomes dynamic
cluster: {controllers: 4, brokers: 1, seed: 8, config: {initial.controllers: 3}}
steps:
  - {after: 1s, do: add_voter, node: controller(104), may_fail: true}
  - {after: 6s, do: upgrade_kraft_version}
  - {do: add_voter, node: controller(104)}
  - {after: 1s, do: liveness, bound: 60s}
"""
    cluster, failure = play_once(parse_scenario(text))
    assert failure is None, failure
    assert [node.id for node in voters(cluster)] == [101, 102, 103, 104]
