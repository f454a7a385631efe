"""The examples on ZooKeeper: each goes as it is written, and its log shows what it is about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.play.player import play
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.scenario import load_scenario
from minicluster.verify.zookeeper.checker import ZnodeChecker

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "zookeeper"
STORIES = tuple(path.stem for path in sorted(EXAMPLES.glob("*.yaml")))


def lines_of(story: str, runs: Path) -> list[dict[str, Any]]:
    """The log of a story, in which no rule is broken."""
    scenario = load_scenario(EXAMPLES / f"{story}.yaml")
    played = play(scenario, runs=runs)
    assert played.failure is None
    log = (played.path / "zookeeper" / "log.jsonl").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    checker = ZnodeChecker(InterBrokerProtocol.parse(scenario.inter_broker_protocol or "3.9"))
    for line in lines:
        checker.on_line(line)
    assert checker.findings == []
    return lines


def test_there_is_one_for_each_kip() -> None:
    assert set(STORIES) == {
        "failed_directory", "isr_by_controller", "isr_by_leader", "unclean_recovery",
    }  # fmt: skip


def states(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in lines if one["op"] == "set" and one["path"].endswith("/state")]


def test_the_controller_is_the_only_writer(tmp_path: Path) -> None:
    lines = lines_of("isr_by_controller", tmp_path)
    assert states(lines) and all("multi" in one for one in states(lines))
    assert not any("isr_change_0" in one.get("path", "") for one in lines)


def test_the_leader_writes_and_notifies_later(tmp_path: Path) -> None:
    lines = lines_of("isr_by_leader", tmp_path)
    own = [one for one in states(lines) if "multi" not in one]
    notified = [one for one in lines if "isr_change_0" in one.get("path", "")]
    assert own and notified
    assert notified[0]["ms"] - own[0]["ms"] >= 5_000


def test_the_recovery_state_is_in_the_znode_until_the_leader_expands(tmp_path: Path) -> None:
    lines = lines_of("unclean_recovery", tmp_path)
    recovering = [one["json"].get("leader_recovery_state", 0) for one in states(lines)]
    assert 1 in recovering and recovering[-1] == 0


@pytest.mark.parametrize("story", ["failed_directory"])
def test_a_lost_directory_is_an_event(story: str, tmp_path: Path) -> None:
    lines = lines_of(story, tmp_path)
    assert any("log_dir_event_0" in one.get("path", "") for one in lines)
