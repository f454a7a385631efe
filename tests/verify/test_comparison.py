"""Two runs side by side: differences in kind first, then in replicas, then in epochs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minicluster.actors.play.player import play
from minicluster.cli import run
from minicluster.scenario import parse_scenario
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.reporting.comparison import Comparison, Level, compare

LOGS = Path(__file__).resolve().parents[1] / "data" / "kafka-logs"

SCENARIO = """
cluster: {{controllers: 1, brokers: 3, seed: {seed}}}
steps:
  - {{do: create_topic, name: orders, assignment: [{assignment}], min_isr: 1}}
  - {{do: {action}, node: leader(orders-0)}}
  - {{after: 30s, do: wait}}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A crash and three runs that differ from it ever more."""
    shapes = {
        "crash": (1, "[1, 2, 3]", "kill"),
        "other-seed": (2, "[1, 2, 3]", "kill"),
        "other-leader": (1, "[2, 1, 3]", "kill"),
        "shutdown": (1, "[1, 2, 3]", "controlled_shutdown"),
    }
    place = tmp_path_factory.mktemp("compared")
    found = {}
    for name, (seed, assignment, action) in shapes.items():
        text = SCENARIO.format(seed=seed, assignment=assignment, action=action)
        found[name] = play(parse_scenario(text, name=name), runs=place).path
    return found


def compared(runs: dict[str, Path], left: str, right: str) -> Comparison:
    return compare(read_run(runs[left], left), read_run(runs[right], right))


def test_the_same_story_from_another_seed_is_the_same(runs: dict[str, Path]) -> None:
    found = compared(runs, "crash", "other-seed")
    assert found.is_same and (found.partitions, found.same) == (1, 1)


def test_the_same_change_by_another_broker_differs_in_replicas(runs: dict[str, Path]) -> None:
    found = compared(runs, "crash", "other-leader")
    of_partition = [one for one in found.differences if one.about.startswith("orders-0")]
    [difference] = of_partition
    assert difference.level is Level.REPLICAS and difference.about == "orders-0, change 1"
    assert "leader 1" in difference.left and "leader 2" in difference.right


def test_a_change_that_one_side_alone_has_differs_in_kind(runs: dict[str, Path]) -> None:
    found = compared(runs, "crash", "shutdown")
    [of_broker] = [one for one in found.differences if one.about == "broker 1, in its history"]
    assert "shutting down" in of_broker.right and "shutting down" not in of_broker.left
    assert found.differences[0].level is Level.KIND
    assert found.count(Level.KIND) >= 1


def test_what_one_log_lacks_is_named() -> None:
    left, right = (read_run(LOGS / name, name) for name in ("cluster", "smoke"))
    found = compare(left, right)
    absent = {one.about for one in found.differences if one.right == "is not there"}
    assert {"after-first-failover-0", "broker 2"} <= absent
    again = compare(left, left)
    assert again.is_same and again.same == again.partitions > 20


def test_the_command_prints_the_gravest_first(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(runs["crash"]), str(runs["other-leader"])]
    assert run(["compare", *paths]) == 1
    lines = capsys.readouterr().out.splitlines()
    start = "0 of 1 partition with the same history; differences: "
    assert lines[2].startswith(start)
    assert any(line.startswith("orders-0, change 1: differs in replicas") for line in lines)
    assert run(["compare", *paths, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["same"] is False
    levels = [one["level"] for one in found["differences"]]
    assert levels == sorted(levels, key=["kind", "replicas", "epochs"].index)
    assert run(["compare", paths[0], paths[0]]) == 0
    assert run(["compare", paths[0], "nowhere"]) == 66
