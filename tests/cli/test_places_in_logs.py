"""``log`` and ``compare`` of one log: between places, near one, of some types, at two moments."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minicluster.cli import run
from minicluster.cli.querying import SparkQueries
from minicluster.errors import UserError
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.moments import Span
from minicluster.own_command import command_line
from minicluster.verify.evidence.reading import named_paths
from minicluster.verify.shown.frames import views_of
from tests.verify.handwritten.log import LogBuilder, change, cluster
from tests.verify.in_process import verified

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
LOG = KAFKA_LOGS / "cluster-3.3"
DAY_MS = 86_400_000


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """The records that ``log`` shows."""
    capsys.readouterr()
    assert run(["log", str(LOG), "--format", "json", *words]) == 0
    batches = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [record for batch in batches for record in batch["records"]]


def mistake(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run([*words]) == 64
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_each_batch_has_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", str(LOG), "--from", "3", "--to", "3"]) == 0
    heading = capsys.readouterr().out.splitlines()[1]
    offsets, _, epoch, day, time, count, _, _, _ = heading.split()
    assert (offsets, epoch, count) == ("3..5", "1", "3")
    assert day.startswith("20") and time.count(":") == 2


def test_a_log_is_narrowed_to_offsets_moments_and_types(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = shown(capsys, "--from", "0")
    assert [r["offset"] for r in whole] == [*range(len(whole))], "without checkpoints"
    middle = whole[100]
    of_day = middle["create_time"] % DAY_MS // 1000
    clock = f"{of_day // 3600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}"

    assert shown(capsys, "--from", "100", "--to", "102") == whole[100:103]
    assert shown(capsys, "--around", "100") == whole[90:111]
    first_ms = middle["create_time"] // 1000 * 1000
    near = [r for r in whole if abs(r["create_time"] - first_ms) <= 10_000]
    assert shown(capsys, "--around", clock) == near
    later = [r for r in whole if r["create_time"] >= first_ms]
    changes = [r for r in later if r.get("type") == "PARTITION_CHANGE_RECORD"]
    for name in ("PartitionChange", "PARTITION_CHANGE_RECORD", "partitionchange"):
        assert shown(capsys, "--from", clock, "--type", name) == changes


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--type", "PartitionChang"), "did you mean PartitionChange?"),
        (("--from", "soon"), "--from: 'soon' is no moment; write 2026-11-29 21:34:05 or 21:34"),
        (("--around", "1999-01-01"), "the log goes from 20"),
        (("--around", "3", "--to", "9"), "--around: has both ends already"),
        (("--from", "99999"), "no record is there; the log goes from 20"),
    ],
)
def test_a_place_that_is_none_is_one_line(
    words: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert line in mistake(capsys, "log", str(LOG), *words)


def test_a_time_alone_is_of_the_day_on_which_it_lies() -> None:
    noon = 20_000 * DAY_MS + DAY_MS // 2
    night = Span(noon, noon + DAY_MS // 2 + 3_600_000)  # from 12:00 until 1:00

    assert night.moment_ms("12:30", what="at") == noon + 1_800_000
    assert night.moment_ms("00:30", what="at") == noon + DAY_MS // 2 + 1_800_000
    assert night.moment_ms("00:30+00:00", what="at") == noon + DAY_MS // 2 + 1_800_000
    with pytest.raises(UserError, match="at: '11:00' is outside the log; the log goes from 2024"):
        night.moment_ms("11:00", what="at")
    with pytest.raises(UserError, match="lies on 2 days of the log; write the date as well"):
        Span(noon, noon + 2 * DAY_MS).moment_ms("13:00", what="at")
    assert Span(0, 60_000).moment_ms("1m", what="at") == 60_000
    assert Span(0, 60_000).moment_ms("1970-01-01 00:00:20", what="at") == 20_000
    with pytest.raises(UserError, match="since the start of the run, such as 90s"):
        Span(0, 60_000).moment_ms("12:00", what="at")


def test_two_moments_of_one_log_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between them a replica leaves the ISR and its broker is fenced."""
    log = cluster()
    before = log.offset - 1
    log.fence(3, change((1, 2)))
    log.write(tmp_path / "log")
    path = str(tmp_path / "log")

    assert run(["compare", path, "--from", str(before), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    about = {each["about"]: (each["left"], each["right"]) for each in found["differences"]}
    assert about["broker 3"] == ("is active", "is fenced")
    left, right = about["orders-0"]
    assert "ISR [1, 2, 3]" in left and "ISR [1, 2]" in right
    assert run(["compare", path, "--from", str(before), "--to", str(before)]) == 0
    assert "is outside the log, which has offsets 0 to" in mistake(
        capsys, "compare", path, "--from", "999"
    )
    assert "give two logs, or one with --from" in mistake(capsys, "compare", path)


def test_a_folder_of_logs_is_each_of_them() -> None:
    names = [name for _, name in named_paths([KAFKA_LOGS])]
    assert names == sorted(path.name for path in KAFKA_LOGS.iterdir() if path.is_dir())
    assert len(names) == 7


def test_views_that_a_log_cannot_have_are_not_listed() -> None:
    names = {view.name for view in views_of([LOG])}
    assert {"records", "elections", "fencing"} <= names
    assert not names & {"requests", "client_operations", "znode_operations", "assignments"}


@pytest.mark.parametrize("query", ["delete from records", " DROP view records", "Insert into x y"])
def test_views_are_read_only(query: str) -> None:
    with pytest.raises(UserError, match="sql: views are read-only; give a SELECT"):
        SparkQueries([str(LOG)], DEFAULT_LIMITS, 10).run(query)


def test_why_a_broker_was_fenced_and_until_when(tmp_path: Path) -> None:
    from minicluster.verify.log_rows import Item
    from minicluster.verify.shown.frames import rows_here

    log = LogBuilder().brokers(1)
    log.op(log.registration(1, shutdown=1)).fence(1)
    log.register(1, incarnation=2).unfence(1).fence(1).unfence(1).register(1, incarnation=3)
    path = log.write(tmp_path / "log")

    batches = rows_here("broker_states", [Item.at(path, "log")], DEFAULT_LIMITS)
    rows = [row for batch in batches for row in batch.to_pylist()]

    out = [row for row in rows if row["fenced"] and not row["was_fenced"]]
    assert [(row["kind"], row["in_controlled_shutdown"]) for row in out] == [
        ("Change", True),
        ("Change", False),
        ("Register", False),
    ]


def test_a_printed_command_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/my env/bin/minicluster", "run"])
    monkeypatch.setattr("shutil.which", lambda name: None)
    line = command_line("verify", Path("my runs/ü"))
    assert shlex.split(line) == ["/my env/bin/minicluster", "verify", "my runs/ü"]
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert command_line("verify", "runs/a") == "minicluster verify runs/a"


@pytest.mark.slow
def test_a_locale_without_utf_8_loses_no_run(tmp_path: Path) -> None:
    """Arrow opens no file whose name the encoding of the locale lacks."""
    (tmp_path / "ü").mkdir()
    scenario = tmp_path / "ü" / "story.yaml"
    scenario.write_text(
        "name: story\ncluster: {controllers: 1, brokers: 1, seed: 3}\n"
        "steps: [{do: wait, after: 1s}]\n"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "minicluster", "run", "ü/story.yaml", "--no-verify"]

    out = subprocess.run(
        [*command, "--runs", "ü"], cwd=tmp_path, env=os.environ | plain, capture_output=True
    )

    assert out.returncode == 0, out.stderr
    (header,) = (tmp_path / "ü").glob("*/run.json")
    assert verified(header.parent).valid
