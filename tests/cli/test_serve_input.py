"""Mistakes in ``serve`` and ``do``: one line before anything starts, and what to write."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from minicluster.cli import app, run

MISTAKES: dict[str, tuple[list[str], int, str]] = {
    "port": (["--port", "99999"], 64, "port: 99999 is not from 0 to 65535"),
    "no port left": (["--port", "65535"], 64, "port: 65535 leaves no port for broker 2"),
    "every address": (["--listen", "0.0.0.0"], 64, "0.0.0.0 is every address of this machine"),
    "no such host": (["--listen", "no..such", "--port", "0"], 64, "no..such: no address of this"),
    "brokers": (["--brokers", "0"], 64, "0 is not in the range x>=1"),
    "too many brokers": (["--brokers", "101", "--port", "0"], 64, "brokers: 101 is not a whole"),
    "config": (["--config", "retention"], 64, "--config: 'retention' is not K=V, such as min."),
    "config name": (
        ["--config", "min.insync.replica=2"],
        64,
        "'min.insync.replica' is not known here; did you mean min.insync.replicas?",
    ),
    "topic": (["--topic", "a:b:c"], 64, "--topic: 'a:b:c' is not NAME:PARTITIONS:REPLICAS, such"),
    "partitions": (["--topic", "a:0"], 65, "--topic a:0: partitions: 0 is not a whole number"),
    "scenario": (["--scenario", "/nowhere.yaml"], 66, "/nowhere.yaml: there is no such file"),
    "again": (["--again"], 64, "--again: there is no scenario; name one with --scenario"),
    "ready file": (["--ready-file", "/no/x.json"], 64, "/no/x.json: there is no folder /no"),
    "runs": (["--runs", "s3://runs"], 74, "s3://runs: is another file system; only run, replay"),
    "pace": (["--pace", "0"], 64, "pace: 0.0 is not a number from 0.01 to 1000"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_of_serve_is_one_line_and_nothing_starts(
    what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    args, code, expected = MISTAKES[what]
    before = set(threading.enumerate())
    assert run(["serve", "--runs", str(tmp_path / "runs"), *args]) == code
    out, err = capfd.readouterr()
    line = err.splitlines()[-1]
    assert line.startswith("minicluster: ") and expected in line
    assert out == "" and "Traceback" not in err
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        (["heal"], 64, "no cluster of yours serves here; start one: minicluster serve"),
        (["--at", "127.0.0.1:9092", "heal"], 64, "no cluster of yours serves here"),
        (["--ready-file", "/nowhere.json", "heal"], 64, "/nowhere.json: there is no such file"),
        (["--at", "nowhere", "--token", "x", "heal"], 64, "nowhere: is not an address; write one"),
        (["--at", "127.0.0.1:1", "--token", "x", "heal"], 69, "127.0.0.1:1: no cluster responds"),
        ([], 64, "Missing argument 'STEP...'"),
    ],
)
def test_a_mistake_of_do_is_one_line(
    args: list[str],
    code: int,
    expected: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert run(["do", *args]) == code
    out, err = capfd.readouterr()
    assert out == "" and expected in err and len(err.splitlines()) == 1


def test_the_shell_completes_actions() -> None:
    completed = ShellComplete(app, {}, "minicluster", "_MINICLUSTER_COMPLETE")
    words = [item.value for item in completed.get_completions(["do"], "re")]
    assert words == ["reassign", "record", "recreate_topic", "release", "remove_voter", "reorder",
                     "repair_dir", "replay", "resign", "respond", "restart", "resume",
                     "revoke"]  # fmt: skip
