"""Kafka's own partition and AlterPartition manager, event by event."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from minicluster.rules import Rules
from minicluster.values import replace
from tests.transcripts.__main__ import main
from tests.transcripts.partition import play
from tests.transcripts.report import AGREE

FOLDER = Path(__file__).parent.parent / "data" / "partition-transcripts"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))


def test_the_recorded_files_are_there() -> None:
    assert len([f for f in FILES if "-partition-" in f.name]) == 14
    assert len([f for f in FILES if "-manager-" in f.name]) == 4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".jsonl")[0])
def test_every_event_agrees(path: Path) -> None:
    outcomes = list(play(path))
    assert [o for o in outcomes if o.verdict != AGREE][:3] == []
    assert len(outcomes) >= 200


def test_the_mended_high_watermark_agrees_too() -> None:
    """The transcripts of 4.3 hold no case of Z60."""
    files = [path for path in FILES if "4.3.0" in path.name]
    rules = replace(Rules.KAFKA_4_3.as_shipped(), high_watermark_is_what_a_read_finds=False)
    outcomes = [outcome for path in files for outcome in play(path, rules)]
    assert all(outcome.verdict == AGREE for outcome in outcomes)


def test_the_runner_shows_a_difference_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = gzip.decompress(FILES[-1].read_bytes()).decode().splitlines()
    changed = json.loads(lines[2])
    changed["state"]["high_watermark"] = 99
    path = tmp_path / "changed.jsonl"
    path.write_text("\n".join([*lines[:2], json.dumps(changed), *lines[3:]]))
    assert main(["partition", str(path), "--show", "3", "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["all"]["differ"] == 1
    (difference,) = report["differences"]
    assert difference["where"] == "changed.jsonl i=1"
    assert difference["detail"].endswith("state.high_watermark: Kafka 99, here 0")
