"""Progress of a verification: phases, tasks as Spark counts them, an estimate from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.cli import terminal
from minicluster.verify import verify
from minicluster.verify.spark import progress
from minicluster.verify.spark.progress import Progress, estimate
from tests.verify.examples.controller import c6_near


def test_a_state_is_one_phrase() -> None:
    assert str(Progress("starting Spark")) == "starting Spark"
    assert str(Progress("judging 9 runs", 3, 8, 0.4, 11.6)) == (
        "judging 9 runs: 3 of 8 tasks, 40 %, about 12 s left"
    )
    assert str(Progress("judging 1 run", 0, 2, 0.25, 600.0)).endswith("about 10 min left")


def test_an_estimate_needs_work_that_was_done() -> None:
    assert estimate(10.0, 0.0) is None
    assert estimate(10.0, 0.01) is None
    assert estimate(10.0, 0.25) == 30.0
    assert estimate(10.0, 1.0) == 0.0


def test_the_display_of_a_command_moves() -> None:
    display = terminal.progress()

    with terminal.shown_verification(display) as show:
        assert display.tasks[0].description == "verifying"
        show(Progress("judging 2 runs", 1, 2, 0.5, 3.0))

    assert display.tasks[0].description == (
        "verifying: judging 2 runs: 1 of 2 tasks, 50 %, about 3 s left"
    )


@pytest.mark.spark
def test_phases_and_tasks_are_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    monkeypatch.setattr(progress, "POLL_S", 0.01)
    seen: list[Progress] = []

    verify(c6_near().write(tmp_path / "run"), on_progress=seen.append)

    assert list(dict.fromkeys(one.phase for one in seen)) == ["starting Spark", "judging 1 run"]
    assert seen[-1].tasks == 2, "one reads, one judges"
    fractions = [one.fraction for one in seen]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
