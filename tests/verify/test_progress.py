"""Progress of a verification: phases, tasks as Spark counts them, an estimate from work done."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from minicluster.cli import terminal
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify import verify
from minicluster.verify.rules.every import RULES
from minicluster.verify.spark import judging_worker, progress
from minicluster.verify.spark.evidence_source import Item
from minicluster.verify.spark.judging_worker import Task
from minicluster.verify.spark.progress import Meter, Progress, Watch, estimate
from tests.verify import in_pipeline
from tests.verify.examples.requests import c6_near
from tests.verify.in_pipeline import rows_here


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


def test_a_worker_leaves_the_part_of_a_run_that_it_has_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[float] = []
    done = Meter.done
    monkeypatch.setattr(
        Meter,
        "done",
        lambda meter, part: left.append(part) or done(meter, part),  # type: ignore[func-returns-value]
    )
    monkeypatch.setattr(judging_worker, "_METER_ROWS", 5)
    monkeypatch.setattr(in_pipeline, "BATCH_ROWS", 6)
    path = c6_near().write(tmp_path / "run")

    rows_here([Item(str(path), "run", None, 0)], Task(RULES, meters=tmp_path), DEFAULT_LIMITS)

    assert left == sorted(left) and len(left) > 2 and left[-1] == 1.0
    assert (tmp_path / "0").read_text() == "1.0000"
    assert not list(tmp_path.glob("0.*"))


def test_a_meter_of_another_machine_is_no_error(tmp_path: Path) -> None:
    Meter(None).done(0.5)
    Meter(tmp_path / "nowhere" / "0").done(0.5)


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


def test_the_work_that_workers_leave_is_seen_while_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "POLL_S", 0.01)
    seen: list[Progress] = []
    came = threading.Event()

    def show(one: Progress) -> None:
        seen.append(one)
        came.set()

    watch = Watch("judging 1 run", show, places=2)
    with watch.over(object()):  # type: ignore[arg-type]  # no Spark counts tasks here
        for place, done, fraction in ((0, 0.5, 0.25), (1, 0.5, 0.5), (0, 1.0, 0.75)):
            Meter(watch.meter_file(place)).done(done)
            while not seen or seen[-1].fraction != fraction:
                came.clear()
                assert came.wait(60)
        Meter(watch.meter_file(1)).done(1.0)

    assert list(dict.fromkeys(one.fraction for one in seen))[-4:] == [0.25, 0.5, 0.75, 1.0]
    assert seen[-1].tasks == 0 and seen[-1].seconds_left == 0.0
