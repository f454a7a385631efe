"""Progress of a Spark job: its tasks as Spark counts them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from minicluster.values import Value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.2
_ENOUGH = 0.05  # of the work, before anything is estimated from it
_number = itertools.count(1)


class Progress(Value):
    """The state of a verification.

    Units:   fraction from 0 to 1; seconds, None before an estimate can be made.
    Shapes:  tasks of Spark, 0 in a phase without any.
    """

    phase: str
    tasks_done: int = 0
    tasks: int = 0
    fraction: float = 0.0
    seconds_left: float | None = None

    def __str__(self) -> str:
        counted = f": {self.tasks_done} of {self.tasks} tasks" if self.tasks else ""
        done = f", {100 * self.fraction:.0f} %" if self.fraction else ""
        left = self.seconds_left
        return f"{self.phase}{counted}{done}" + (
            "" if left is None else f", about {_seconds(left)} left"
        )


OnProgress = Callable[[Progress], None]


def _seconds(seconds: float) -> str:
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 120 else f"{round(whole / 60)} min"


def estimate(elapsed_s: float, fraction: float) -> float | None:
    """The seconds that are left if the work continues as before; None while too little is done."""
    if fraction < _ENOUGH:
        return None
    return elapsed_s * (1 - fraction) / fraction


@contextmanager
def watched(spark: SparkSession, phase: str, on_progress: OnProgress | None) -> Iterator[None]:
    """Watch from another thread what this one runs in Spark meanwhile; pass on how far it is."""
    context: Any = spark.sparkContext if hasattr(spark, "_jsc") else None
    if on_progress is None or context is None:
        yield
        return
    group = f"minicluster-{os.getpid()}-{next(_number)}"
    context.setJobGroup(group, phase)
    ended = threading.Event()
    thread = threading.Thread(
        target=_poll, args=(context, group, phase, on_progress, ended), name="progress", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        context.setLocalProperty("spark.jobGroup.id", None)


def _poll(
    context: Any, group: str, phase: str, on_progress: OnProgress, ended: threading.Event
) -> None:
    begun = time.monotonic()
    is_over = False
    while not is_over:  # a job that is over is looked at once more
        is_over = ended.wait(POLL_S)
        stages: list[tuple[int, int]] = []
        with suppress(Exception):  # Spark is being stopped
            stages = _counted(context.statusTracker(), group)
        fraction = sum(done / tasks for done, tasks in stages if tasks) / max(1, len(stages))
        left = estimate(time.monotonic() - begun, fraction)
        done, tasks = (sum(each) for each in zip((0, 0), *stages, strict=True))
        on_progress(Progress(phase, done, tasks, fraction, left))


def _counted(tracker: Any, group: str) -> list[tuple[int, int]]:
    """The tasks of each stage of a group's jobs: done, and all, 0 while the stage is not known."""
    stages: dict[int, tuple[int, int]] = {}
    for job in tracker.getJobIdsForGroup(group):
        job_info = tracker.getJobInfo(job)
        for stage in job_info.stageIds if job_info is not None else ():
            stage_info = tracker.getStageInfo(stage)
            known = stage_info is not None
            stages[stage] = (stage_info.numCompletedTasks, stage_info.numTasks) if known else (0, 0)
    return list(stages.values())
