"""``minicluster what-if``: tables, JSON, a page, exit codes, and errors for people."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from minicluster.cli.main import run

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
LOG = str(LOGS / "divergent")
SHORT = ("--watch", "15s")


def what_if(tmp_path: Path, *words: str) -> int:
    return run(["what-if", *words, "--runs", str(tmp_path / "runs")])


def test_a_broker_dies_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two brokers, five partitions on both of them; one dies with the session of 9 s."""
    assert what_if(tmp_path, LOG, "kill 1", "restart 1", *SHORT) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert "2 brokers, 3 controllers, 3 topics with 5 partitions" in lines[0]
    first = lines.index("1. kill 1")
    [row] = [line for line in lines[first:] if "all topics" in line][:1]
    assert re.search(r"all topics +5 +2 for (8|9|10|11)\.\ds +- +5 to the end", row)
    second = lines.index("2. restart 1")
    [row] = [line for line in lines[second:] if "all topics" in line][:1]
    assert re.search(r"all topics +5 +- +- +5 for \d\.\ds", row)
    page = tmp_path / "runs" / "what-if-kafka-logs-divergent.html"
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "1. kill 1" in text
    assert page.as_uri() in shown


def test_seeds_are_summed_up_as_the_worst(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = what_if(tmp_path, LOG, "kill one(brokers)", "--seeds", "1-3", "--format", "json", *SHORT)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["verdict"] == "valid"
    assert found["seeds"] == [1, 2, 3]
    before, stage = found["stages"]
    assert before["worst"]["no_leader"]["at_end"] == 0
    assert stage["stage"] == "kill one(brokers)"
    assert stage["worst"]["no_leader"]["most"] >= stage["mildest"]["no_leader"]["most"] > 0
    assert {topic["topic"] for topic in stage["topics"]} <= {
        "orders",
        "committed",
        "never-committed",
    }


def test_a_scenario_file_is_one_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "both.yaml"
    file.write_text(
        "name: both\nsteps:\n  - do: kill\n    node: 1\n  - {after: 1s, do: kill, node: 2}\n"
    )
    assert what_if(tmp_path, LOG, str(file), "--fail-on", "no-leader", *SHORT) == 1
    shown = capsys.readouterr().out
    assert "1. both" in shown
    assert "5 to the end" in shown
    assert "down [2, 1]" in shown


def test_a_condition_that_does_not_come_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert what_if(tmp_path, LOG, "until leader(orders-0) == none within=2s", *SHORT) == 2
    assert "timed out after 2s waiting for " in capsys.readouterr().out


REFUSED = {
    ("{log}", "kill 9", 65): r"step 1 \(kill node=9\): .*there is no node 9; nodes are 1, 2, 101",
    ("{log}", "kill rack(1)", 65): r"no rack is registered",
    ("{log}", "explode 1", 65): r"unknown action .explode",
    ("{log}", "nowhere.yaml", 66): r"nowhere.yaml",
    ("{tmp}/nowhere", "kill 1", 66): r"no such file",
    ("{tmp}", "kill 1", 66): r"holds no metadata log|is empty",
    ("{log}", "kill leader(absent-0)", 65): r"there is no partition absent-0",
}


@pytest.mark.parametrize("given", REFUSED)
def test_a_mistake_is_one_line(
    given: tuple[str, str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, step, code = given
    place = tmp_path / "empty"
    place.mkdir()
    found = what_if(tmp_path, log.format(log=LOG, tmp=place), step, *SHORT)
    captured = capsys.readouterr()
    line = captured.err.splitlines()[-1]
    assert line.startswith("minicluster: ")
    assert re.search(REFUSED[given], line)
    assert (found, captured.out) == (code, "")


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--seeds", "x"), "neither a seed nor a range"),
        (("--watch", "soon"), "--watch"),
        (("--config", "fast"), "not name=value"),
        (("--config", "no.such=1"), "no.such"),
    ],
)
def test_a_wrong_option_is_one_line(
    option: tuple[str, str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert what_if(tmp_path, LOG, "kill 1", *option) >= 64
    assert why in capsys.readouterr().err
