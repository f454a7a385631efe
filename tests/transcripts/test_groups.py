"""The group coordinator does what Kafka's class did, response by response and record by record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.groups.play import operation_of, play
from tests.transcripts.report import DIFFER, read_lines

FOLDER = Path(__file__).parents[1] / "data" / "groups-transcripts"
RECORDINGS = sorted(FOLDER.glob("*.jsonl.gz"))
COMMANDS_MIN = 400


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.split(".jsonl")[0])
def test_a_recording_is_played_to_its_end(path: Path) -> None:
    outcomes = list(play(path))
    assert [each.detail for each in outcomes if each.verdict == DIFFER] == []
    assert len(outcomes) >= COMMANDS_MIN


def test_the_recordings_have_every_request_of_a_group_coordinator() -> None:
    played = {operation_of(line) for path in RECORDINGS for line in read_lines(path)}
    assert {
        "ConsumerGroupDescribe",
        "ConsumerGroupHeartbeat",
        "DeleteGroups",
        "DescribeGroups",
        "Heartbeat",
        "JoinGroup",
        "LeaveGroup",
        "ListGroups",
        "OffsetCommit",
        "OffsetDelete",
        "OffsetFetch",
        "SyncGroup",
        "TxnOffsetCommit",
        "end_txn",
        "group_config",
        "restart",
    } <= played
