"""Runs of real brokers on a real ZooKeeper: every znode, write, request and response agrees."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.transcripts.__main__ import main
from tests.transcripts.report import AGREE, DIFFER, NOT_BUILT, NOT_LOGGED
from tests.transcripts.zookeeper.administration import compare_administration
from tests.transcripts.zookeeper.play import play
from tests.transcripts.zookeeper.player import Player
from tests.transcripts.zookeeper.recording import load
from tests.transcripts.zookeeper.sent_requests import compare_sent

RUNS = Path(__file__).parents[1] / "data" / "zookeeper-runs"

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
SHOWN = {
    run: tuple(int(number.replace(",", "")) for number in numbers)
    for run, *numbers in re.findall(
        r"^\| `([\w.-]+)` \|.*\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE.read_text(), re.M
    )
}
"""The table of the page: how many comparisons agree, differ, and are not in the log of a broker."""


def verdicts(run: str) -> Counter[str]:
    return Counter(outcome.verdict for outcome in play(RUNS / run))


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(path.name, marks=() if path.name == "ibp-2.6" else pytest.mark.slow)
        for path in sorted(RUNS.iterdir())
        if path.is_dir()
    ],
)
def test_a_run_agrees_as_the_page_says(run: str) -> None:
    counted = verdicts(run)
    assert (counted[AGREE], counted[DIFFER], counted[NOT_LOGGED]) == SHOWN[run]
    assert counted[DIFFER] == counted[NOT_BUILT] == 0


def test_a_request_that_nobody_logged_is_excused_only_if_a_broker_ended() -> None:
    """Without the first sessions' ends, what was lost with them differs."""
    recording = load(RUNS / "ibp-2.6")
    player = Player(recording)
    list(player.play())
    excused = Counter(one.verdict for one in compare_sent(player.all_controllers, recording))
    assert excused[NOT_LOGGED] == 4 and excused[DIFFER] == 0
    kept = [one for one in recording.transactions if one.kind != "close_session"]
    recording.transactions[:] = kept
    left = Counter(one.verdict for one in compare_sent(player.all_controllers, recording))
    assert left[DIFFER] == 1 and left[NOT_LOGGED] == 3  # those at the end of the recording


def test_a_folder_that_is_no_run_gets_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["zookeeper", str(tmp_path)]) == 64
    message = capsys.readouterr().err
    assert "no zookeeper transcript" in message and message.count("\n") == 1


def test_the_requests_of_an_administrator_and_what_is_wrong_with_them() -> None:
    recording = load(RUNS / "ibp-2.6")
    first = next(one for one in recording.requests if one.api == "CREATE_TOPICS")
    assert {one.verdict for one in compare_administration(recording)} == {AGREE}
    first.response["topics"][0]["numPartitions"] = 4
    assert [
        one.operation for one in compare_administration(recording) if one.verdict == DIFFER
    ] == ["admin CREATE_TOPICS"]
    first.response["topics"][0]["numPartitions"] = 3
    config = "/config/topics/orders"
    recording.transactions[:] = [
        one for one in recording.transactions if one.entries[0].path != config
    ]
    missing = [one for one in compare_administration(recording) if one.verdict == DIFFER]
    assert "its writes are missing" in [one.detail for one in missing]
