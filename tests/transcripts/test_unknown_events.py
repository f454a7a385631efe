"""Players of transcripts count events that they do not have as not built."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.transcripts.__main__ import main

DATA = Path(__file__).parents[1] / "data"
SHORTEST = min((DATA / "quorum-transcripts").glob("*.gz"), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "from_a_later_kafka"},
        {"kind": "request", "from": 2, "correlation": 9, "api": "ODD", "version": 0, "body": {}},
        {
            "kind": "request",
            "from": 2,
            "correlation": 9,
            "api": "DESCRIBE_QUORUM",
            "version": 2,
            "body": {"topics": [], "odd": 1},
        },
    ],
    ids=["event", "api", "field"],
)
def test_what_the_quorum_player_does_not_have_is_counted_as_not_built(
    change: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, start, second = gzip.decompress(SHORTEST.read_bytes()).splitlines()[:3]
    odd = json.dumps({**json.loads(second), "event": change}).encode()
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b"\n".join((header, start, odd)))
    assert main(["quorum", str(path), "--format", "json"]) == 0
    counts = json.loads(capsys.readouterr().out)["all"]
    assert (counts["agree"], counts["differ"], counts["not built"]) == (1, 0, 1)


@pytest.mark.parametrize("kind", ["partition", "manager"])
def test_what_the_partition_players_do_not_have_is_counted_as_not_built(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = next((DATA / "partition-transcripts").glob(f"*-{kind}-seed-1.jsonl.gz"))
    header, first = gzip.decompress(whole.read_bytes()).splitlines()[:2]
    odd = json.dumps({**json.loads(first), "event": {"kind": "odd"}}).encode()
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b"\n".join((header, first, odd)))
    assert main(["partition", str(path), "--format", "json"]) == 0
    counts = json.loads(capsys.readouterr().out)["all"]
    assert (counts["agree"], counts["differ"], counts["not built"]) == (1, 0, 1)
