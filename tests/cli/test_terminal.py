"""The terminal: odd names, odd encodings, full disks, and faults of the program itself."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.play import campaign, many_seeds
from minicluster.actors.play.campaign import Outcome
from minicluster.cli import campaigns, run
from minicluster.cli.exit_codes import EXIT_INTERNAL
from minicluster.errors import printable
from minicluster.log.batch import metadata_batch
from minicluster.log.format.limits import ReadLimits
from minicluster.log.segment import segment_name
from minicluster.protocol.records import TopicRecord, VersionedRecord
from minicluster.scenario import Scenario
from minicluster.scenario.nemesis import generate
from minicluster.scenario.reading import scenario_of
from minicluster.values import replace
from minicluster.verify import Report, Verdict
from minicluster.verify.evidence.reading import read_runs

SMOKE = Path(__file__).resolve().parents[1] / "data/kafka-logs/smoke/controller-1"
STEERING = "a\x1b]0;title\x07b\n\u202ec"


def segment(folder: Path, topic: str) -> Path:
    """A log with one topic."""
    path = folder / segment_name(0)
    record = VersionedRecord(TopicRecord(name=topic), 0)
    path.write_bytes(metadata_batch(0, 1, 0, [record]).encoded)
    return path


# A fault of the program.


@pytest.mark.parametrize("error", [TypeError("no\nsuch thing"), MemoryError(), RecursionError("x")])
def test_a_fault_of_the_program_is_70_with_one_line_and_a_file(
    error: Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("minicluster.cli.broker_logs.locate", fail)
    monkeypatch.setattr("tempfile.mkstemp", functools.partial(tempfile.mkstemp, dir=tmp_path))
    assert run(["log", str(SMOKE)]) == EXIT_INTERNAL == 70
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    line = err.strip()
    assert line.startswith(f"minicluster: internal error: {type(error).__name__}")
    [path] = re.findall(r"please report it with (.*)$", line)
    content = Path(path).read_text()
    assert "Traceback" in content and "def fail" not in line and str(SMOKE) in content
    assert Path(path).parent == tmp_path


def test_a_fault_without_a_place_for_its_file_shows_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("minicluster.cli.broker_logs.locate", lambda *_, **__: 1 / 0)
    gone = functools.partial(tempfile.mkstemp, dir=tmp_path / "gone")
    monkeypatch.setattr("tempfile.mkstemp", gone)
    assert run(["log", str(SMOKE)]) == 70
    assert "ZeroDivisionError: division by zero" in capfd.readouterr().err


# Messages of the operating system.


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError(5, "Input/output error", "x.log"), "x.log: Input/output error"),
        (OSError("gone"), "gone"),
        (OSError(), "OSError"),
        (PermissionError(13, "Permission denied", b"y"), "y: Permission denied"),
    ],
)
def test_an_error_of_the_system_never_shows_none(
    error: OSError, shown: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("minicluster.cli.broker_logs.locate", fail)
    assert run(["log", str(SMOKE)]) == 74
    assert capfd.readouterr().err == f"minicluster: {shown}\n"


# A report that cannot be written.


def judged(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Judge without Spark; the arguments that are given come back."""
    given: dict[str, Any] = {}

    def verify(*_: Path, **options: Any) -> Report:
        given.update(options)
        return Report(verdict=verdict, rules=(), runs=(), reasons=(), sources=())

    monkeypatch.setattr("minicluster.verify.verifying.verify", verify)
    return given


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
@pytest.mark.parametrize("verdict", [Verdict.VALID, Verdict.INVALID])
def test_an_unwritable_report_is_74_and_the_verdict_is_printed(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    judged(verdict, monkeypatch)
    assert run(["verify", str(SMOKE), "--html", "/dev/full"]) == 74
    out, err = capfd.readouterr()
    assert out.startswith(str(verdict).upper())
    assert "/dev/full: cannot be written: No space left on device" in err


def test_a_report_over_a_folder_is_74(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    judged(Verdict.VALID, monkeypatch)
    assert run(["verify", str(SMOKE), "--html", str(tmp_path)]) == 74
    assert "VALID" in capfd.readouterr().out


# Names that would steer the terminal, and terminals that lack characters.


def test_control_characters_are_shown_as_escapes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", str(segment(tmp_path, STEERING))]) == 0
    out = capfd.readouterr().out
    assert r"name=a\x1b]0;title\x07b\n\u202ec" in out
    assert run(["log", str(tmp_path / STEERING)]) == 66
    err = capfd.readouterr().err
    assert err.count("\n") == 1 and all(c.isprintable() for c in err.strip())


def test_what_is_printable_stays_as_it_is() -> None:
    assert printable("Größe ✓ orders-0") == "Größe ✓ orders-0"
    assert printable("a\udc80") == r"a\udc80"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-16"])
def test_a_terminal_of_another_encoding_is_no_traceback(encoding: str, tmp_path: Path) -> None:
    path = segment(tmp_path, "größe-✓-\U0001f600")
    for command in (["log", str(path)], ["log", str(tmp_path / "ü✓")], ["--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "minicluster", *command],
            env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert b"Traceback" not in done.stderr.replace(b"\0", b"")
        assert done.returncode in (0, 66)


# The limits of reading.


def test_the_limits_of_reading_are_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = segment(tmp_path, "x" * 2_000)
    assert run(["log", str(path), "--max-batch", "1KiB"]) == 65
    assert "at most 1024 are read" in capfd.readouterr().err
    given = judged(Verdict.VALID, monkeypatch)
    assert run(["verify", str(path), "--max-unpacked", "3MiB"]) == 0
    assert given["limits"] == ReadLimits(decompressed_bytes=3 << 20)
    (problem,) = read_runs([path], ReadLimits(batch_bytes=1_024))[0].problems
    assert "at most 1024 are read" in problem.why


@pytest.mark.parametrize("text", ["", "8MB", "-1", "1e9", "٣"])
def test_a_size_is_a_number_of_bytes(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["log", str(SMOKE), "--max-unpacked", text]) == 64
    assert "is not a size; write 8MiB" in capfd.readouterr().err


STOPPED = """
name: a story
cluster: {controllers: 1, brokers: 1}
steps:
  - {do: create_topic, name: orders, replicas: 1}
  - {after: 7s, do: produce, topic: orders}
  - {until: "leader(orders-0) == none", within: 1m}
"""


def test_a_ctrl_c_while_a_scenario_plays_tells_where_it_was_and_how_to_play_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    story = tmp_path / "a story.yaml"
    story.write_text(STOPPED)
    waiting = Cluster.run_until

    def stop(self: Cluster, condition: Callable[[], bool], within_ms: int) -> bool:
        if within_ms == 60_000:
            self.rt.run_for(2_000)
            raise KeyboardInterrupt
        return waiting(self, condition, within_ms)

    monkeypatch.setattr(Cluster, "run_until", stop)
    runs = tmp_path / "runs"
    assert run(["run", str(story), "--no-verify", "--seed", "5", "--runs", str(runs)]) == 130
    line = capfd.readouterr().err.splitlines()[-1]
    assert re.fullmatch(
        rf"minicluster: a story was stopped at 9\.\ds, in step 3 \(until .* \(within 1m\)\); it "
        rf"left no run folder; again: .*minicluster run '{story}' --seed 5",
        line,
    )
    assert not [*runs.glob("*")]


def test_a_ctrl_c_in_a_campaign_tells_what_its_seeds_have_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stop(seed: int, **_: Any) -> Outcome:
        if seed == 3:
            raise KeyboardInterrupt
        return Outcome(
            seed=seed,
            scenario=generate(seed),
            failure=None,
            trace_hash="",
            events=0,
            cluster_ms=0,
            steps_done=0,
            idle_faults=(),
            observations=frozenset({("errors", "Vote INVALID_REQUEST")}),
        )

    monkeypatch.setattr(many_seeds, "play_seed", stop)
    seen = tmp_path / "seen.json"
    assert run(["chaos", "--seeds", "1-50", "--coverage", str(seen)]) == 130
    printed = capfd.readouterr()
    assert "2 seeds, 0 failed" in printed.out
    assert re.search(r"^errors +1 +1$", printed.out, re.MULTILINE)  # seen, last new at seed
    assert printed.err.splitlines()[-1] == "minicluster: the campaign was stopped after 2 seeds"
    assert json.loads(seen.read_text())["kinds"]["errors"]["seen"] == {"Vote INVALID_REQUEST": "1"}


def test_an_internal_error_ends_its_seed_and_the_campaign_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def draw(seed: int, variation: Sequence[int]) -> Scenario:
        scenario = replace(generate(seed, variation), steps=())
        return replace(scenario, config=2) if seed == 2 else scenario  # type: ignore[arg-type]

    monkeypatch.setattr(campaigns, "_draw", lambda *_: draw)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run(["chaos", "--seeds", "1-3", "--fault", "Z01"]) == EXIT_INTERNAL
    printed = capfd.readouterr()
    idle, crash = "unknown, for Z01 was on but never acted", "internal error: TypeError: .*"
    one, two, three, all_seeds = printed.out.splitlines()[1:5]
    assert one.startswith(f"seed 1: {idle}")
    assert re.fullmatch(f"seed 2: {crash}", two)
    assert three.startswith(f"seed 3: {idle}")
    assert all_seeds == "3 seeds, 0 failed, 2 unknown, 1 internal error"
    [file] = tmp_path.glob("minicluster-*.txt")
    assert re.fullmatch(f"minicluster: {crash}; please report it with {file}\n", printed.err)
    text = file.read_text()
    assert "'chaos' '--seeds' '2' '--mode' 'kraft' '--fault' 'Z01'" in text
    assert "Traceback (most recent call last)" in text


def test_an_internal_error_while_a_seed_is_shrunk_leaves_its_whole_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def shrink(*_: object) -> None:
        raise KeyError("a fault of ours")

    story = scenario_of({"steps": [{"expect": "fenced(broker(1))"}]}, where="a story")
    monkeypatch.setattr(campaigns, "_draw", lambda *_: lambda seed, _: replace(story, seed=seed))
    monkeypatch.setattr(campaign, "shortest", shrink)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run(["chaos", "--seeds", "1-2", "--runs", str(tmp_path / "runs")]) == 1
    printed = capfd.readouterr()
    assert "2 seeds, 2 failed" in printed.out
    assert printed.err.count("internal error: KeyError: 'a fault of ours'; please report") == 2
    assert len([*(tmp_path / "runs").iterdir()]) == 2


def test_a_ctrl_c_while_a_class_is_made_is_no_fault_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Python 3.11 raises a RuntimeError in its place where it comes within ``__set_name__``."""

    def stop(*_: object, **__: object) -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr("minicluster.cli.broker_logs.locate", stop)
    assert run(["log", str(SMOKE)]) == 130
    assert capfd.readouterr().err == "minicluster: stopped\n"
