"""Each command from end to end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from minicluster.cli import run
from minicluster.verify import Verdict
from minicluster.verify.evidence.run_header import RUN_FORMAT, read_header
from tests.scenario.drawn import short_seed

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "tests/data/kafka-logs"
STORY = """
name: a leader crashes
description: Its follower takes over, and nothing that was acknowledged is lost.
cluster: {controllers: 1, brokers: 2, seed: 3}
exercises: [E40, A1]
steps:
  - {do: create_topic, name: orders, replicas: 2}
  - {do: produce, topic: orders, count: 3}
  - {do: kill, node: leader(orders-0)}
  - {until: leader(orders-0) != none, within: 30s}
  - {do: elect, election_type: PREFERRED, partitions: orders-0}
"""
LATE = STORY.replace("kill", "pause").replace("within: 30s", "within: 1s")
VERIFY = ("verify", "--engine", "process")
WORDS = {str(verdict) for verdict in Verdict}


@pytest.fixture(scope="module", autouse=True)
def narrow_terminal() -> None:
    """Output of rich is 100 columns wide in every terminal."""
    os.environ["COLUMNS"] = "100"


@dataclass(frozen=True)
class Command:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


def minicluster(capfd: pytest.CaptureFixture[str], *args: str | Path) -> Command:
    code = run([str(arg) for arg in args])
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    return Command(code, out, err)


def play(folder: Path, text: str = STORY) -> Path:
    """Play a story without judging it."""
    from minicluster.actors.play.player import play as play_scenario
    from minicluster.scenario import parse_scenario

    return play_scenario(parse_scenario(text), runs=folder).path


def process(*args: str | Path, shell: str | None = None) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "minicluster", *map(str, args)]
    if shell is not None:
        words = ["bash", "-o", "pipefail", "-c", f'"$@" {shell}', "bash", *words]
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=300)


@pytest.mark.spark
class TestRun:
    """``minicluster run``."""

    def test_it_plays_verifies_and_prints_where_everything_is(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        story = tmp_path / "story.yaml"
        story.write_text(STORY)
        printed = minicluster(capfd, "run", story, "--runs", tmp_path / "runs")
        assert printed.code == 0
        assert printed.out.startswith("VALID")
        folder = Path(re.search(r"^run +(\S+)$", printed.out, re.M)[1])  # type: ignore[index]
        assert folder == tmp_path / "runs/a-leader-crashes-3"
        report = re.search(r"^report +file://(\S+)$", printed.out, re.M)[1]  # type: ignore[index]
        assert Path(report).read_text().startswith("<!doctype html>")
        assert json.loads((folder / "report.json").read_text())["verdict"] == "valid"
        assert {"run.json", "scenario.yaml", "controller-101", "trace"} <= set(os.listdir(folder))
        assert re.search(rf"^repeat  \S*minicluster replay {folder}$", printed.out, re.M)
        # One line per step where nothing can move.
        assert "kill node=leader(orders-0)" in printed.err

        printed = minicluster(capfd, "replay", folder, "--runs", tmp_path / "again")
        assert printed.code == 0
        assert printed.out.startswith(
            f"the same trace: {json.loads((folder / 'run.json').read_text())['trace_hash']}"
        )

    def test_the_seed_of_the_command_line_wins(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        story = tmp_path / "story.yaml"
        story.write_text(STORY)
        printed = minicluster(
            capfd, "run", story, "--runs", tmp_path, "--seed", "8", "--format", "json"
        )
        assert printed.code == 0
        assert json.loads(printed.out)["verdict"] == "valid"
        assert json.loads((tmp_path / "a-leader-crashes-8/run.json").read_text())["seed"] == 8

    def test_a_condition_that_does_not_come_is_unknown_and_shows_the_cluster(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        story = tmp_path / "story.yaml"
        story.write_text(LATE.replace("leader(orders-0) != none", "leader(orders-0) == none"))
        printed = minicluster(capfd, "run", story, "--runs", tmp_path)
        assert printed.code == 2
        assert "step 4: timed out after 1s waiting for leader(orders-0) == none" in printed.out
        assert "orders-0: leader" in printed.out and "active controller 101" in printed.out

    def test_an_expectation_that_fails_is_invalid(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        story = tmp_path / "story.yaml"
        story.write_text(STORY + "  - {expect: recovering(orders-0)}\n")
        printed = minicluster(capfd, "run", story, "--runs", tmp_path)
        assert printed.code == 1
        assert "step 6: expected recovering(orders-0), but" in printed.out
        assert "but" not in printed.err, "told once, by the report"


class TestVerify:
    """``minicluster verify``."""

    @pytest.mark.spark
    def test_several_paths_give_one_report_and_the_gravest_word_wins(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        good = play(tmp_path)
        bad = play(tmp_path, STORY.replace("exercises", "faults: [S26]\nexercises"))
        page = tmp_path / "report.html"
        printed = minicluster(
            capfd, "verify", good, bad, LOGS / "smoke", "--format", "json", "--html", page
        )
        assert printed.code == 1
        report = json.loads(printed.out)
        check_form(report)
        assert report["verdict"] == "invalid"
        names = [entry["name"] for entry in report["runs"]]
        assert names == [good.name, bad.name, "smoke"]
        [rule] = [rule for rule in report["rules"] if rule["verdict"] == "invalid"]
        assert rule["id"] == "E40"
        assert {finding["run"] for finding in rule["findings"]} == {bad.name}
        assert "E40" in page.read_text()

    def test_each_form_of_a_path_is_judged(self, capfd: pytest.CaptureFixture[str]) -> None:
        forms = (
            "smoke",
            "smoke/controller-1",
            "smoke/controller-1/__cluster_metadata-0",
            "smoke/controller-1/__cluster_metadata-0/00000000000000000000.log",
            "cluster/controller-101/__cluster_metadata-0/"
            "00000000000000000203-0000000002.checkpoint",
        )
        printed = minicluster(capfd, *VERIFY, *(LOGS / form for form in forms), "--format", "json")
        report = json.loads(printed.out)
        check_form(report)
        assert (printed.code, report["verdict"]) == (0, "valid")
        names = [entry["name"] for entry in report["runs"]]
        assert len({*names}) == len(forms)
        for name in names:
            words = {
                entry["verdict"]
                for rule in report["rules"]
                for entry in rule["by_run"]
                if entry["run"] == name
            }
            assert {"valid", "not_applicable"} <= words
            assert not words & {"invalid", "unknown"}

    def test_where_no_rule_has_a_case_the_verdict_is_unknown(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        printed = minicluster(capfd, *VERIFY, LOGS / "smoke/controller-1/bootstrap.checkpoint")
        assert printed.code == 2
        assert "unknown because no rule had a case" in printed.out

    def test_for_people_it_prints_how_much_was_looked_at(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        printed = minicluster(capfd, *VERIFY, LOGS / "smoke")
        assert printed.code == 0
        [line] = printed.out.splitlines()
        assert re.match(
            r"VALID \d+ rules checked [\d,]+ times, none broken; .* \(--rules shows each\)$", line
        )

        printed = minicluster(capfd, *VERIFY, LOGS / "smoke", "--rules")
        assert printed.out.startswith("VALID")
        assert re.search(r"^ *E11 +valid +\d+ ", printed.out, re.M)

    def test_what_is_not_well_is_shown_alone_with_the_command_that_repeats_the_run(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        good = play(tmp_path)
        bad = play(tmp_path, STORY.replace("exercises", "faults: [S26]\nexercises"))
        printed = minicluster(capfd, *VERIFY, good, bad)
        assert printed.code == 1
        shown = re.findall(r"^ *([A-Z]\d+) +(\w+) +[\d,]+ ", printed.out, re.M)
        assert shown == [("E40", "invalid")]
        assert re.search(rf"^repeat  \S*minicluster replay {bad}$", printed.out, re.M)
        assert f"replay {good}\n" not in printed.out

    def test_a_damaged_log_is_unknown_and_a_truncated_one_is_judged_up_to_its_end(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        segment = LOGS / "smoke/controller-1/__cluster_metadata-0/00000000000000000000.log"
        content = segment.read_bytes()
        torn, damaged = tmp_path / "torn.log", tmp_path / "damaged.log"
        torn.write_bytes(content[:-20])
        middle = len(content) // 2
        damaged.write_bytes(
            content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]
        )
        printed = minicluster(capfd, *VERIFY, torn, damaged, "--format", "json")
        assert printed.code == 2
        report = json.loads(printed.out)
        check_form(report)
        assert report["verdict"] == "unknown"
        by_run = {
            (entry["run"], entry["verdict"]) for rule in report["rules"] for entry in rule["by_run"]
        }
        names = [entry["name"] for entry in report["runs"]]
        assert (names[0], "valid") in by_run and (names[0], "unknown") not in by_run
        assert (names[1], "unknown") in by_run and (names[1], "valid") not in by_run
        assert any("torn" in note for note in report["runs"][0]["notes"])

        printed = minicluster(capfd, *VERIFY, damaged)
        assert printed.code == 2
        reasons = [line for line in printed.out.splitlines() if "unknown because" in line]
        assert len(reasons) == 1 and "damaged at byte" in reasons[0], "one reason, one line"

    @pytest.mark.spark
    def test_a_campaign_leaves_a_report_in_every_run(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        seed = short_seed()
        printed = minicluster(capfd, "chaos", "--seeds", str(seed), "--verify", "--runs", tmp_path)
        assert printed.code == 0
        assert "1 seed, 0 failed" in printed.out and "VALID" in printed.out
        [folder] = tmp_path.iterdir()
        report = json.loads((folder / "report.json").read_text())
        assert [run["name"] for run in report["runs"]] == [folder.name]
        assert (folder / "report.html").read_text().startswith("<!doctype html>")


def check_form(report: dict[str, Any]) -> None:
    """The form that programs rely on."""
    assert report["verdict"] in {"valid", "invalid", "unknown"}
    assert isinstance(report["runs"], list) and report["runs"]
    runs = {entry["name"] for entry in report["runs"]}
    for rule in report["rules"]:
        assert re.fullmatch(r"[A-Z]\d+", rule["id"])
        assert rule["verdict"] in WORDS
        assert type(rule["looked_at"]) is int
        for finding in rule["findings"]:
            assert set(finding) == {
                "run",
                "offset",
                "topic",
                "partition",
                "broker",
                "event",
                "request",
                "message",
            }
            assert finding["run"] in runs
            assert type(finding["offset"]) is int
            assert finding["topic"] is None or isinstance(finding["topic"], str)
            assert finding["partition"] is None or type(finding["partition"]) is int
            assert finding["broker"] is None or type(finding["broker"]) is int
            assert isinstance(finding["message"], str) and finding["message"]
    assert {"valid", "invalid", "unknown", "no_cases", "not_promised", "not_applicable"} == WORDS


class TestLog:
    """``minicluster log``."""

    def test_json_is_what_kafkas_own_tool_printed(self, capfd: pytest.CaptureFixture[str]) -> None:
        printed = minicluster(capfd, "log", LOGS / "smoke", "--format", "json")
        assert printed.code == 0
        ours = [json.loads(line) for line in printed.out.splitlines()]
        theirs = [json.loads(line) for line in (LOGS / "smoke/dump.jsonl").open()]
        batches = [line for line in theirs if "base_offset" in line]
        key = ("base_offset", "last_offset", "epoch", "is_control", "count", "position", "crc")
        assert sorted([one[name] for name in key] for one in ours) == sorted(
            [one[name] for name in key] for one in batches
        )

    def test_text_names_files_offsets_and_records(self, capfd: pytest.CaptureFixture[str]) -> None:
        printed = minicluster(capfd, "log", LOGS / "smoke")
        assert printed.code == 0 and printed.err == ""
        assert "== controller-1/__cluster_metadata-0/00000000000000000000.log" in printed.out
        assert re.search(r"^ +\d+ +REGISTER_BROKER_RECORD v\d+ .*brokerId=", printed.out, re.M)

    def test_a_run_shows_the_logs_of_all_its_controllers(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        folder = play(tmp_path, STORY.replace("controllers: 1", "controllers: 3"))
        printed = minicluster(capfd, "log", folder)
        shown = set(re.findall(r"^== (controller-\d+)/", printed.out, re.M))
        assert shown == {"controller-101", "controller-102", "controller-103"}
        assert len(re.findall(r"TOPIC_RECORD v\d+  name=orders", printed.out)) == 3

    @pytest.mark.parametrize("form", ["text", "json"])
    def test_a_reader_that_has_seen_enough_is_no_error(self, form: str) -> None:
        done = process("log", LOGS / "cluster", "--format", form, shell="| head -n 1")
        assert done.returncode == 0
        assert len(done.stdout.splitlines()) == 1 and done.stderr == ""


def test_a_process_ends_with_the_code_of_its_mistake_and_one_line() -> None:
    done = process("log", "nowhere")
    assert done.returncode == 66
    assert done.stdout == ""
    assert done.stderr == "minicluster: nowhere: there is no such file or folder\n"


def test_replay_reports_when_another_trace_comes_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = play(tmp_path)
    header = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**header, "trace_hash": "0" * 32}))
    printed = minicluster(capfd, "replay", folder, "--runs", tmp_path)
    assert printed.code == 1
    assert printed.err.splitlines()[-1].startswith(
        f"another trace: {'0' * 32} then, {header['trace_hash']} now"
    )


def test_a_run_of_an_earlier_format_is_replayed_without_its_trace_hash(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = play(tmp_path)
    header = json.loads((folder / "run.json").read_text())
    earlier = {**header, "format": 1, "trace_hash": "0" * 32}
    (folder / "run.json").write_text(json.dumps(earlier))
    printed = minicluster(capfd, "replay", folder, "--no-verify", "--runs", tmp_path)
    assert printed.code == 0 and "the same verdict: it went as written" in printed.out
    assert printed.err.splitlines()[-1] == (
        f"the traces are not compared: {folder} is of format 1, whose traces have other hashes"
    )
    failure = {"kind": "unanswered", "verdict": "unknown", "rule": None, "text": "step 2: no"}
    (folder / "run.json").write_text(json.dumps({**earlier, "failure": failure}))
    read = read_header(folder / "run.json").failure
    assert read is not None and read.kind == "no_response" and read.is_unknown


def test_a_run_of_a_newer_format_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = play(tmp_path)
    header = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**header, "format": RUN_FORMAT + 1}))
    for command in (["replay", folder, "--runs", tmp_path], ["trace", folder]):
        printed = minicluster(capfd, *command)
        assert printed.code == 65
        assert printed.err.splitlines()[-1] == (
            f"minicluster: {folder / 'run.json'}: a run folder of format {RUN_FORMAT + 1}, and "
            f"this minicluster reads formats up to {RUN_FORMAT}: update minicluster"
        )


def test_the_list_of_commands_cuts_no_sentence_off(capfd: pytest.CaptureFixture[str]) -> None:
    _, _, shown = minicluster(capfd, "--help").out.partition("Commands:")
    assert "..." not in shown and "…" not in shown
    assert " ".join(shown.split()).endswith("show what it does to the partitions.")


def test_help_and_version_are_no_mistakes(capfd: pytest.CaptureFixture[str]) -> None:
    for args in (["--help"], ["run", "-h"], ["verify", "--help"], ["--version"]):
        printed = minicluster(capfd, *args)
        assert printed.code == 0 and printed.err == "" and "minicluster" in printed.out
