"""Commands that show evidence and rules, and the report as JUnit XML."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copytree
from xml.etree import ElementTree

import pytest

from minicluster.cli import run
from minicluster.verify import Finding, Report, Verdict
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.reporting.report_data import RuleResult, RunSummary
from minicluster.verify.rules.every import BY_ID, RULES
from tests.verify.handwritten.log import cluster
from tests.verify.handwritten.run import RunBuilder

STORY = """
name: story
cluster: {controllers: 1, brokers: 2, seed: 3}
steps:
  - {do: create_topic, name: orders, replicas: 2}
  - {do: produce, topic: orders, count: 1}
  - {after: 1s, do: bounce, node: leader(orders-0), down: 5s}
  - {after: 20s, do: wait}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story")
    (path / "story.yaml").write_text(STORY)
    assert run(["run", str(path / "story.yaml"), "--no-verify", "--runs", str(path)]) == 0
    return path / "story-3"


def trace(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert run(["trace", str(folder), *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_trace_is_shown_in_order_without_what_goes_on_all_the_time(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = trace(folder, capsys)
    numbers = [int(line.split()[1]) for line in lines]
    assert numbers == sorted(numbers) and len(set(numbers)) == len(numbers)
    assert any(re.search(r"request +CreateTopics#\d+ v\d+ client>101 +handled", x) for x in lines)
    assert any("fault" in x and "action=kill" in x for x in lines)
    assert any(re.search(r"node \d +orders-0 become_leader epochs 1/1", x) for x in lines)
    assert not any("BrokerHeartbeat" in x or " Fetch#" in x for x in lines)
    assert any("BrokerHeartbeat" in x for x in trace(folder, capsys, "--all"))


def test_the_trace_is_narrowed_to_a_node_an_api_and_a_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_api = trace(folder, capsys, "--api", "BrokerHeartbeat", "--node", "2")
    assert of_api and all(" BrokerHeartbeat#" in x and " 2>101 " in x for x in of_api)
    [written] = [x for x in trace(folder, capsys) if " CreateTopics#" in x]
    [offset] = re.findall(r"wrote (\d+)", written)
    near = trace(folder, capsys, "--around", offset)
    assert f"---- offset {offset}, at " in "\n".join(near) and len(near) <= 51
    place = next(n for n, line in enumerate(near) if "----" in line)
    assert any(" CreateTopics#" in line for line in near[:place]), "what wrote it comes before"
    assert trace(folder, capsys, "--around", "1s") != near


def test_the_trace_has_the_errors_of_partitions_and_what_a_controller_rejects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = (
        RunBuilder(cluster())
        .committed()
        .alter_partition(1, (1, 2, 3), error_code=107, sent_ms=1, handled_ms=2, completed_ms=3)
    )
    refusal = {"node": 101, "rpc": 1, "api": "AlterPartition", "broker": 1, "topic": "orders"}
    said = {"error": "INELIGIBLE_REPLICA", "reason": "fenced", "message": f"Rejecting {'x' * 300}"}
    folder = built.row("refusal", {**refusal, "part": 0, **said}).write(tmp_path / "run")

    request, rejected = trace(folder, capsys, "--api", "AlterPartition")

    assert "INELIGIBLE_REPLICA" in request and "NONE" not in request
    assert "refusal   node 101 broker 1 orders-0" in rejected
    assert rejected.endswith(f"reason=fenced message={said['message']}"), "whole"
    assert trace(folder, capsys, "--node", "101")[-1] == rejected


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--api", "Nonsense"], "the run has no request 'Nonsense'; it has "),
        (["--around", "soon"], "'soon' is neither an offset, such as 47, nor a moment: 10230ms"),
        (["--around", "999999"], "--around: the log ends at offset "),
        (["--node", "77"], "--node: no event is about node 77; nodes are 1,2,101"),
    ],
)
def test_a_wrong_word_of_trace_is_one_line(
    words: list[str], line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", str(folder), *words]) == 64
    err = capsys.readouterr().err
    assert line in err and len(err.splitlines()) == 1


def damage_rows(table: Path) -> None:
    """Lose all rows of a table; what its file says of itself stays as it was."""
    content = bytearray(table.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(footer - 4)
    table.write_bytes(content)


def test_a_damaged_table_is_left_out_and_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = copytree(folder, tmp_path / "run") / "trace" / "partition_event.parquet"
    damage_rows(table)
    assert run(["trace", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith(f"left out: {table}: not what the run wrote")
    assert "elected" in shown.out and "become_leader" not in shown.out


def test_a_table_that_cannot_be_read_is_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a run that does not know what it wrote: nothing but the rows show the damage."""
    copied = copytree(folder, tmp_path / "run")
    header = json.loads((copied / "run.json").read_text())
    (copied / "run.json").write_text(json.dumps({**header, "written": {}}))
    table = copied / "trace" / "partition_event.parquet"
    damage_rows(table)
    assert run(["trace", str(copied)]) > 0
    err = capsys.readouterr().err
    assert f"{table}: cannot be read: " in err and len(err.splitlines()) == 1


def test_each_rule_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for rule in RULES:
        assert run(["explain", rule.id.lower()]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"{rule.id}  {rule.title}\n")
        assert f"source:    {rule.source}" in text
        assert f"breaks it: {rule.breaks}\n" in text
        assert f"keeps it:  {rule.keeps}\n" in text


def test_a_rule_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "A33"]) == 64
    text = "minicluster: unknown rule or fault 'A33'; did you mean A3?\n"
    assert capsys.readouterr().err == text


def test_a_fault_is_explained_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "z01", "Z07"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Z01  the controller accepts fenced")
    assert "planted by: faults: [Z01] in a scenario, mutate, chaos --fault Z01\n\nZ07  " in text


def summary(name: str, failure: ScenarioFailure | None = None) -> RunSummary:
    return RunSummary(
        name=name, path=f"runs/{name}", records=9, logs=3, first_offset=0, end_offset=9,
        traced=True, notes=(), seed=7, repeat=f"replay runs/{name}", failure=failure,
    )  # fmt: skip


def result(rule_id: str, first: Verdict, second: Verdict, **more: object) -> RuleResult:
    values: dict[str, object] = {"findings": (), "reasons": (), **more}
    return RuleResult(
        rule=BY_ID[rule_id], verdict=first, looked_at=3, not_promised=0,
        by_run=(("one", first, 2), ("two", second, 1)), **values,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_report_is_junit_for_ci() -> None:
    finding = Finding(
        run="one", offset=7, rule="A3", topic="orders", partition=0, message="<&\x1b>"
    )
    failed_step = ScenarioFailure("expect", "step 3: expected x\nstate")
    report = Report(
        verdict=Verdict.INVALID,
        rules=(
            result("A3", Verdict.INVALID, Verdict.VALID, findings=(finding,)),
            result("B2", Verdict.UNKNOWN, Verdict.UNKNOWN, reasons=("two: the trace is damaged",)),
            result("C1", Verdict.NO_CASES, Verdict.NO_CASES),
        ),
        runs=(
            summary("one"),
            summary("two", failed_step),
        ),
        reasons=("one: fault S17 was on but never hit",),
    )
    suites = ElementTree.fromstring(report.to_junit())
    one, two = suites
    assert (one.get("tests"), one.get("failures"), one.get("errors"), one.get("skipped")) == (
        "4", "1", "2", "1",
    )  # fmt: skip
    assert (two.get("tests"), two.get("failures"), two.get("errors"), two.get("skipped")) == (
        "4", "1", "1", "1",
    )  # fmt: skip
    failures = {case.get("name"): case.find("failure") for case in one.iter("testcase")}
    broken = failures["A3 Only active replicas enter an ISR"]
    assert broken is not None and broken.get("message") == r"<&\x1b>"
    assert broken.text is not None and "one, offset 7, orders-0" in broken.text
    [scenario] = [case for case in two.iter("testcase") if case.get("name") == "scenario"]
    failed = scenario.find("failure")
    assert failed is not None and failed.get("message") == "step 3: expected x"
    [error] = [
        case.find("error") for case in one.iter("testcase") if case.get("name") == "scenario"
    ]
    assert error is not None and "never hit" in str(error.get("message"))


def test_a_failed_expectation_shows_the_cluster_in_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "story.yaml"
    path.write_text(STORY + "  - {expect: leader(orders-0) == none}\n")
    assert run(["run", str(path), "--no-verify", "--runs", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "\\n" not in err and "did not go as written: step 5: expected leader" in err
    assert "\n  orders-0: leader " in err


def test_a_missing_argument_with_its_choices_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["list"]) == 64
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("Choose from: actions, selectors, rules, faults, configs")
