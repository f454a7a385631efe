"""The command line plays every kind of transcript alike, and names the events it cannot play."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.transcripts.__main__ import PLAYERS, main
from tests.transcripts.controller_player import play
from tests.transcripts.report import AGREE, DIFFER, NOT_BUILT

DATA = Path(__file__).parents[1] / "data"
SHORTEST = {
    kind: min((DATA / f"{kind}-transcripts").glob("*.gz"), key=lambda path: path.stat().st_size)
    for kind in PLAYERS
    if kind != "zookeeper"  # its runs are folders (test_zookeeper.py)
}


@pytest.mark.parametrize("kind", [kind for kind in SHORTEST if kind != "clients"])
def test_a_transcript_is_played_packed_or_not(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unpacked = tmp_path / "unpacked.jsonl"
    unpacked.write_bytes(gzip.decompress(SHORTEST[kind].read_bytes()))
    reports = []
    for path in (SHORTEST[kind], unpacked):
        assert main([kind, str(path), "--format", "json"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]
    assert reports[0]["all"]["agree"] >= 300 and reports[0]["all"]["differ"] == 0


@pytest.mark.parametrize(("kind", "other"), list(permutations(SHORTEST, 2)))
def test_a_transcript_of_another_kind_gets_one_clear_line(
    kind: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([kind, str(SHORTEST[other])]) == 64
    message = capsys.readouterr().err
    assert f"no {kind} transcript" in message and message.count("\n") == 1


@pytest.mark.parametrize("kind", SHORTEST)
def test_a_line_that_is_no_step_is_named(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = gzip.decompress(SHORTEST[kind].read_bytes()).split(b"\n", 1)[0]
    path = tmp_path / "broken.jsonl"
    path.write_bytes(header + b'\n{"odd": 1}\n')
    assert main([kind, str(path)]) == 64
    message = capsys.readouterr().err
    assert f"{path}: line 2 is no " in message and message.count("\n") == 1


@pytest.mark.parametrize("args", [[], ["foo"], ["foo", "some.gz"]])
def test_without_a_kind_it_lists_which_there_are(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 64
    assert "clients|controller|groups|partition|quorum" in capsys.readouterr().err


@pytest.mark.parametrize("args", [[], ["--format", "xml", "some.gz"], ["--odd", "some.gz"]])
def test_misuse_of_a_kind_is_misuse(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["quorum", *args])
    assert ended.value.code == 64
    assert capsys.readouterr().err.count("\n") == 1


def controller_lines() -> list[dict[str, Any]]:
    path = DATA / "controller-transcripts" / "kafka-4.3.0-mv-4.3-IV0-elr-seed-25.jsonl.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()[:40]]


def verdicts(lines: list[dict[str, Any]], path: Path) -> Counter[str]:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "\n")
    return Counter(outcome.verdict for outcome in play(path))


def test_what_an_operation_cannot_read_counts_as_not_built(tmp_path: Path) -> None:
    plain = controller_lines()
    assert verdicts(plain, tmp_path / "plain") == {AGREE: 39}
    unknown_operation, unknown_value = controller_lines(), controller_lines()
    beat = next(i for i, line in enumerate(plain) if line.get("op") == "broker_heartbeat")
    unknown_operation[beat]["op"] = "broker_greeting"
    assert verdicts(unknown_operation, tmp_path / "op") == {AGREE: 38, NOT_BUILT: 1}
    unknown_value[1]["request"]["feature"] = "wide"
    assert verdicts(unknown_value, tmp_path / "value") == {AGREE: 38, NOT_BUILT: 1}


def test_a_field_that_is_unknown_excuses_a_difference_and_hides_no_agreement(
    tmp_path: Path,
) -> None:
    lines = controller_lines()
    beat = next(line for line in lines if line.get("op") == "broker_heartbeat")
    beat["request"]["mood"] = "good"
    assert verdicts(lines, tmp_path / "agrees") == {AGREE: 39}
    beat["error"] = "REQUEST_TIMED_OUT"
    assert verdicts(lines, tmp_path / "differs") == {AGREE: 38, NOT_BUILT: 1}
    del beat["request"]["mood"]
    assert verdicts(lines, tmp_path / "known") == {AGREE: 38, DIFFER: 1}


def test_a_file_that_breaks_off_leaves_the_count_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    lines = controller_lines()
    verdicts(lines, whole)
    lines[3]["records"] = [{"type": "ODD_RECORD", "version": 0, "data": {}}]
    broken.write_text("\n".join(map(json.dumps, lines)))
    assert main(["controller", str(broken), str(whole), "--format", "json"]) == 64
    out, err = capsys.readouterr()
    assert json.loads(out)["all"]["agree"] == 2 + 39
    assert "line 4 cannot be followed" in err and err.count("\n") == 1
