"""A user's mistake at the command line: one clear line, an exit code from 64 up, no traceback."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from minicluster.__main__ import main
from minicluster.cli import run

SMOKE = Path(__file__).resolve().parents[1] / "data/kafka-logs/smoke/controller-1"
SEGMENT = SMOKE / "__cluster_metadata-0/00000000000000000000.log"

Bad = Callable[[Path], list[str]]


def one_line(capfd: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error; standard output is empty."""
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("minicluster: ")
    return lines[0]


def file(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    return make


def loop_of_links(folder: Path) -> Path:
    path = folder / "loop"
    path.symlink_to(path)
    return path


def damaged() -> bytes:
    content = bytearray(SEGMENT.read_bytes())
    content[len(content) // 2] ^= 0xFF
    return bytes(content)


LOGS = {
    "does not exist": (lambda folder: folder / "nowhere", 66, "there is no such file or folder"),
    "a loop of links": (loop_of_links, 66, "there is no such file or folder"),
    "empty file": (file("00000000000000000000.log", b""), 66, "the file is empty"),
    "empty folder": (lambda folder: folder, 66, "the folder is empty; give a run folder, a "),
    "not a log": (file("notes.log", b"no batch at all " * 9), 66, "not a Kafka log: magic"),
    "too short": (file("x.log", SEGMENT.read_bytes()[:16]), 66, "a batch header takes 61 bytes"),
    "torn at once": (file("x.log", SEGMENT.read_bytes()[:100]), 66, "holds no whole batch: the b"),
}


@pytest.mark.parametrize("command", ["log", "verify"])
@pytest.mark.parametrize("what", LOGS)
def test_a_path_that_holds_no_log(
    command: str, what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make, code, expected = LOGS[what]
    path = make(tmp_path)
    assert run([command, str(path)]) == code
    line = one_line(capfd)
    assert str(path) in line and expected in line


def test_a_log_that_is_damaged_in_the_middle_names_file_byte_and_offset(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = file("00000000000000000000.log", damaged())(tmp_path)
    assert run(["log", str(path)]) == 65
    line = one_line(capfd)
    assert f"{path}: damaged at byte " in line and "batch of offset " in line


def test_a_truncated_log_is_shown_up_to_its_torn_tail_which_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = SEGMENT.read_bytes()
    path = file("00000000000000000000.log", whole[: len(whole) // 2])(tmp_path)
    assert run(["log", str(path)]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    [line] = [line for line in out.splitlines() if "torn tail" in line]
    assert "bytes at byte" in line
    assert run(["log", str(SEGMENT)]) == 0
    assert "torn tail" not in capfd.readouterr().out


def step(text: str) -> str:
    return f"steps:\n  - {{do: create_topic, name: orders}}\n  - {text}\n"


SCENARIOS = {
    "unknown selector": (
        step("{do: cut, src: chief(orders-0), dst: brokers}"),
        "step 2: src: unknown selector chief(); known: active_controller, app, broker,",
    ),
    "unknown name": (step("{do: kill, node: everybody}"), "unknown selector 'everybody'; write "),
    "a node that is not there": (step("{do: kill, node: broker(9)}"), "brokers are 1, 2, 3"),
    "not a partition": (step("{until: leader(orders) == 1}"), "'orders' is not a partition"),
    "not a duration": (step("{after: five, do: heal}"), "step 2: after: "),
    "unknown unit": (step("{do: publish_delay, broker: brokers, delay: 5y}"), "step 2: delay: "),
    "unknown API": (
        step("{do: cut, src: brokers, dst: brokers, api: Fetsch}"),
        "step 2: api: unknown API 'Fetsch'; did you mean Fetch?",
    ),
    "a request's class": (
        step("{do: hold, src: brokers, dst: controllers, api: [Fetch, AlterPartitionRequest]}"),
        "unknown API 'AlterPartitionRequest'; did you mean AlterPartition?",
    ),
    "negative duration": (step("{until: unfenced(brokers), within: -5s}"), "step 2: within: "),
    "missing argument": (step("{do: cut, src: brokers}"), "step 2: cut needs 'dst': a selector"),
    "missing steps": ("name: nothing\n", "the list of steps is missing or empty"),
    "a seed beside the cluster": (
        "name: a\nseed: 3\nsteps: [{do: heal}]\n",
        ":2:7: seed belongs below cluster",
    ),
    "missing do": (step("{node: broker(1)}"), "a step has one of do, until and expect"),
    "unknown action": (step("{do: explode}"), "step 2: unknown action 'explode'; known: create_"),
    "unknown argument": (
        step("{do: kill, node: broker(1), hard: 1}"),
        "step 2: kill has no argument 'hard'; it takes node, lose_tail",
    ),
    "misspelt argument": (
        step("{do: create_topic, name: bills, replcas: 3}"),
        "step 2: create_topic has no argument 'replcas'; did you mean replicas?",
    ),
    "misspelt action": (
        step("{do: creat_topic}"),
        "unknown action 'creat_topic'; did you mean create_topic?",
    ),
    "misspelt selector": (
        step("{until: fully_insync(orders-0)}"),
        "step 2: unknown selector fully_insync(); did you mean fully_in_sync?",
    ),
    "misspelt field": ("stepps: [{do: heal}]\n", "'stepps' is not known here; did you mean steps?"),
    "misspelt runtime": (
        "cluster: {runtime: simulatd}\n" + step("{do: heal}"),
        "runtime: 'simulatd' is none; did you mean simulated?",
    ),
    "misspelt config": (
        "cluster: {config: {replica.lag.time.ms: 5s}}\n" + step("{do: heal}"),
        "'replica.lag.time.ms' is not known here; did you mean replica.lag.time.max.ms?",
    ),
    "misspelt topic config": (
        step("{do: create_topic, name: bills, configs: {min.insync.replica: 2}}"),
        "unknown topic config 'min.insync.replica'; did you mean min.insync.replicas?",
    ),
    "unknown topic config": (
        step("{do: set_config, topic: orders, key: colour, value: red}"),
        "unknown topic config 'colour'; write one such as min.insync.replicas",
    ),
    "unknown rule": (
        "exercises: [A1, ZZ9]\n" + step("{do: heal}"),
        "exercises: unknown rule 'ZZ9'; known: A1, A2,",
    ),
    "a field twice": (
        "name: a\nname: b\n" + step("{do: heal}"),
        "story.yaml:2:1: 'name' is given twice",
    ),
    "an argument twice": (
        step("{do: kill, node: broker(1), node: broker(2)}"),
        "story.yaml:3:33: 'node' is given twice",
    ),
    "a comparison with one =": (
        step("{until: leader(orders-0) = 1}"),
        "'=' compares nothing; write '=='",
    ),
    "steps that are no list": ("steps: {do: heal}\n", "steps is a list; each begins with a dash"),
    "faults that are no list": (
        "faults: Z01\n" + step("{do: heal}"),
        "story.yaml:1:9: faults is a list of names such as [A1, A3]",
    ),
    "a bug of Kafka's, planted late": (
        step("{do: mutate, fault: Z52}"),
        "'Z52' is a bug of Kafka's own: it is there from the start; name it in faults",
    ),
    "produce to no topic": (step("{do: produce, topic: order}"), "there is no topic order"),
    "produce to no partition": (
        step("{do: produce, topic: orders, partition: 5}"),
        "there is no partition orders-5; orders has 1",
    ),
    "a version above the release": (
        "cluster: {rules: kafka-3.9, metadata_version: 4.3-IV0}\n" + step("{do: heal}"),
        "metadata.version: 4.3-IV0 is above ",
    ),
    "unknown field": ("cluster: {boilers: 3}\n" + step("{do: heal}"), "'boilers' is not known"),
    "unknown fault": (
        "faults: [Z99]\n" + step("{do: heal}"),
        "'Z99' is not a planted fault; see minicluster list faults",
    ),
    "unknown rules": ("cluster: {rules: kafka-1.0}\n" + step("{do: heal}"), "kafka-1.0"),
    "unknown version": ("cluster: {metadata_version: 9.9-IV9}\n" + step("{do: heal}"), "9.9-IV9"),
    "not YAML": ("steps: [", "story.yaml:1:9: not YAML: "),
    "no mapping": ("just words\n", "a scenario is a mapping with a list of steps"),
    "more replicas than brokers": (
        "steps:\n  - {do: create_topic, name: orders, replicas: 4}\n",
        "step 1 (create_topic name=orders replicas=4): create topic orders: "
        "INVALID_REPLICATION_FACTOR: ",
    ),
    "topic exists": (step("{do: create_topic, name: orders}"), "TOPIC_ALREADY_EXISTS"),
}


@pytest.mark.parametrize("what", SCENARIOS)
def test_a_scenario_that_cannot_be_played(
    what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content, expected = SCENARIOS[what]
    path = tmp_path / "story.yaml"
    path.write_text(content)
    assert run(["run", str(path), "--runs", str(tmp_path)]) >= 64
    out, err = capfd.readouterr()
    line = err.splitlines()[-1]
    assert re.match(rf"minicluster: {path}(:\d+:\d+)?: ", line) and line.count(str(path)) == 1
    assert expected in line
    assert out == "" and "Traceback" not in err and "minicluster: " not in err[: -len(line) - 1]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], "Usage: minicluster"),
        (["frobnicate"], "unknown command 'frobnicate'; known: run, "),
        (["vrify", "x"], "unknown command 'vrify'; did you mean verify?"),
        (["--seed", "3", "run", "x"], "no such option '--seed' here; a command's come behind"),
        (["--vers"], "Did you mean '--version'?"),
        (["run"], "Missing argument 'SCENARIO'"),
        (["verify"], "Missing argument 'PATHS...'"),
        (["log"], "Missing argument 'PATH'"),
        (["replay"], "Missing argument 'RUN'"),
        (["sql"], "Missing argument 'PATH... [QUERY]'"),
        (["sql", "select 1"], "a path is missing: minicluster sql PATH 'select 1'"),
        (["run", "x.yaml", "--seed", "many"], "'many' is not a valid integer"),
        (["run", "x.yaml", "--seed", "-1"], "-1 is not in the range"),
        (["verify", "x", "--format", "xml"], "'xml' is not one of 'text', 'json'"),
        (["log", "x", "--colour"], "No such option"),
        (["verify", "x", "--html", "/no/folder/x.html"], "there is no folder /no/folder"),
        (["chaos", "--seeds", "many"], "'many' is neither a seed nor a range such as 1-200"),
        (["chaos", "--seeds", "5-1"], "'5-1' names no seed: the first is above the last"),
        (["chaos", "--fault", "Z99"], "'Z99' is not a planted fault"),
    ],
)
def test_a_command_that_is_not_understood(
    args: list[str], expected: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == 64
    out, err = capfd.readouterr()
    assert expected in err and out == "" and "Traceback" not in err


def test_a_scenario_file_that_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(tmp_path / "nowhere.yaml")]) == 66
    assert "there is no such file" in one_line(capfd)
    assert run(["run", str(tmp_path)]) == 66
    assert ": is not a file; give a scenario as a YAML file" in one_line(capfd)
    binary = file("story.yaml", b"\xff\xfe\x00")(tmp_path)
    assert run(["run", str(binary)]) == 65
    assert "it is not a text in UTF-8" in one_line(capfd)
    good = file("good.yaml", b"steps: [{do: heal}]")(tmp_path)
    assert run(["check", str(tmp_path / "nowhere.yaml"), str(good), str(binary)]) == 65
    out, err = capfd.readouterr()
    assert "good.yaml: good" in out
    assert [line.split(": ")[-1] for line in err.splitlines()] == [
        "there is no such file",
        "it is not a text in UTF-8",
    ]
    assert run(["check", str(tmp_path / "nowhere.yaml"), str(good)]) == 66


def test_only_a_run_of_a_scenario_can_be_replayed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", str(tmp_path)]) == 66
    assert "not a run folder: it has no run.json" in one_line(capfd)
    header = tmp_path / "run.json"
    header.write_text("{")
    assert run(["replay", str(tmp_path)]) == 66
    assert f"{header}: not JSON: " in one_line(capfd)
    header.write_text('{"scenario": null}')
    assert run(["replay", str(tmp_path)]) == 64
    assert "no scenario made this run" in one_line(capfd)


def test_a_folder_for_runs_that_cannot_be_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "story.yaml").write_text("steps: [{do: heal}]\n")
    (tmp_path / "runs").write_text("a file is in the way")
    code = run(["run", str(tmp_path / "story.yaml"), "--runs", str(tmp_path / "runs")])
    assert code == 74
    line = capfd.readouterr().err.splitlines()[-1]
    assert line == f"minicluster: {tmp_path}/runs: no run folder can be made in it: File exists"


def test_ctrl_c_before_the_commands_are_loaded_is_one_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first half second of a command is imports."""

    def interrupted(_: list[str]) -> int:
        raise KeyboardInterrupt

    loading = ModuleType("minicluster.cli")
    loading.run = interrupted  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "minicluster.cli", loading)
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130
    assert capfd.readouterr() == ("", "minicluster: stopped\n")


@pytest.mark.parametrize(
    "args",
    [
        ["run", "nope.yaml"], ["check", "nope.yaml"], ["serve", "--scenario", "nope.yaml"],
        ["replay", "nope"], ["verify", "nope"], ["log", "nope"], ["trace", "nope"],
        ["compare", "nope", "nope"], ["compare", "nope", "--from", "1"], ["sql", "nope"],
        ["sql", "nope", "select 1"], ["what-if", "nope", "kill 1"],
        ["export", "nope", "--kafka", "x"], ["explain", "E01", "--rules-from", "nope.py"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_path_that_is_missing_is_one_number_and_one_line(
    args: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == 66
    (line,) = capfd.readouterr().err.splitlines()
    assert "nope" in line and "there is no such f" in line


def test_a_full_disk_of_spark_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Java's error comes as text, and the disk may be that of TMPDIR."""

    def full(*args: object, **options: object) -> None:
        raise RuntimeError("o148.collectToPython: java.io.IOException: No space left on device")

    monkeypatch.setattr("minicluster.verify.verifying.verify", full)
    assert run(["verify", "."]) == 74
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("minicluster: No space left on device: ") and "TMPDIR" in line
