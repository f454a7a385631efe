"""The command line plays every kind of transcript in the same way, and says what it cannot play."""

from __future__ import annotations

import gzip
import json
from itertools import permutations
from pathlib import Path

import pytest

from tests.transcripts.__main__ import PLAYERS, main

DATA = Path(__file__).parents[1] / "data"
SHORTEST = {
    kind: min((DATA / f"{kind}-transcripts").glob("*.gz"), key=lambda path: path.stat().st_size)
    for kind in PLAYERS
}


@pytest.mark.parametrize("kind", PLAYERS)
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


@pytest.mark.parametrize(("kind", "other"), permutations(PLAYERS, 2))
def test_a_transcript_of_another_kind_gets_one_clear_line(
    kind: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([kind, str(SHORTEST[other])]) == 64
    message = capsys.readouterr().err
    assert f"no {kind} transcript" in message and message.count("\n") == 1


@pytest.mark.parametrize("kind", PLAYERS)
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
def test_without_a_kind_it_says_which_there_are(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 64
    assert "controller|partition|quorum" in capsys.readouterr().err


@pytest.mark.parametrize("args", [[], ["--format", "xml", "some.gz"], ["--odd", "some.gz"]])
def test_misuse_of_a_kind_is_misuse(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["quorum", *args])
    assert ended.value.code == 64
    assert capsys.readouterr().err.count("\n") == 1
