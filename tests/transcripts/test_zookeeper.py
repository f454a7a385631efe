"""Runs of real brokers on a real ZooKeeper: every znode, write, request and response agrees."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.transcripts.__main__ import main
from tests.transcripts.report import AGREE, DIFFER, NOT_BUILT
from tests.transcripts.zookeeper.play import play

RUNS = Path(__file__).parents[1] / "data" / "zookeeper-runs"

LEAST = {
    "ibp-2.6": 700,
    "ibp-2.7": 2_600,
    "ibp-3.9": 3_000,
    "release-3.0": 2_300,
    "release-3.2": 2_900,
}
"""So many comparisons agree at least."""


def verdicts(run: str) -> Counter[str]:
    return Counter(outcome.verdict for outcome in play(RUNS / run))


@pytest.mark.parametrize(
    "run",
    [pytest.param(run, marks=() if run == "ibp-2.6" else pytest.mark.slow) for run in LEAST],
)
def test_a_run_agrees(run: str) -> None:
    counted = verdicts(run)
    assert counted[DIFFER] == counted[NOT_BUILT] == 0
    assert counted[AGREE] >= LEAST[run]


@pytest.mark.slow
def test_the_second_run_of_3_9_differs_in_the_order_of_one_event() -> None:
    """A response of a broker that had lost a directory crossed two AlterPartitions."""
    counted = verdicts("ibp-3.9-again")
    assert counted[AGREE] >= 3_200 and counted[DIFFER] <= 6


def test_a_folder_that_is_no_run_gets_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["zookeeper", str(tmp_path)]) == 64
    message = capsys.readouterr().err
    assert "no zookeeper transcript" in message and message.count("\n") == 1
