"""Progress of a Spark job: its tasks as Spark counts them, and what its workers have done of each.

A worker that shares this machine's files leaves the part that it has done in a small file. So the
time that is left is estimated from the work that was done, and not from another machine's speed.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.own_folders import temporary_folder
from minicluster.values import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.2
_ENOUGH = 0.05  # of the work, before anything is estimated from it
_number = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Progress:
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


class Meter:
    """The place where one worker's task leaves the part that it has done."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def done(self, fraction: float) -> None:
        """Leave the part of the work that is done; a reader sees a whole number."""
        if self._file is None:
            return
        with suppress(OSError):  # the folder is on another machine, or gone
            new = self._file.with_suffix(f".{os.getpid()}")
            new.write_text(f"{fraction:.4f}")
            new.replace(self._file)


class Watch:
    """Watches one job from another thread and passes on how far it is.

    Shapes:  places: of the meters that workers leave. weights: of the job's stages, the part of the
             work that each is; the last is the one that the meters measure.
    """

    def __init__(
        self,
        phase: str,
        on_progress: OnProgress | None,
        places: int = 0,
        weights: Sequence[float] = (),
    ) -> None:
        self._phase = phase
        self._on_progress = on_progress
        self._places = places
        self._weights = weights
        self._folder: Path | None = None

    @property
    def folder(self) -> Path | None:
        """The folder of all meters; None where nobody watches."""
        return self._folder

    def meter_file(self, place: int) -> Path | None:
        """The file of a worker's meter; None where nobody watches."""
        return None if self._folder is None else self._folder / str(place)

    @contextmanager
    def over(self, spark: SparkSession) -> Iterator[None]:
        """Watch what this thread runs in Spark meanwhile."""
        if self._on_progress is None:
            yield
            return
        with temporary_folder("progress") as folder:
            self._folder = folder.path
            group = f"minicluster-{os.getpid()}-{next(_number)}"
            context: Any = spark.sparkContext if hasattr(spark, "_jsc") else None
            if context is not None:
                context.setJobGroup(group, self._phase)
            ended = threading.Event()
            thread = threading.Thread(
                target=self._poll, args=(context, group, ended), name="progress", daemon=True
            )
            thread.start()
            try:
                yield
            finally:
                ended.set()
                thread.join()
                self._folder = None
                if context is not None:
                    context.setLocalProperty("spark.jobGroup.id", None)

    def _poll(self, context: Any, group: str, ended: threading.Event) -> None:
        begun = time.monotonic()
        is_over = False
        while not is_over:  # a job that is over is looked at once more
            is_over = ended.wait(POLL_S)
            stages: list[tuple[int, int]] = []
            if context is not None:
                with suppress(Exception):  # Spark is being stopped
                    stages = _counted(context.statusTracker(), group)
            done, tasks = (sum(each) for each in zip(*stages, strict=True)) if stages else (0, 0)
            fraction = self._fraction(stages)
            left = estimate(time.monotonic() - begun, fraction)
            assert self._on_progress is not None
            self._on_progress(Progress(self._phase, done, tasks, fraction, left))

    def _fraction(self, stages: Sequence[tuple[int, int]]) -> float:
        """The part that is done: by tasks, or by what workers have measured where that is more."""
        measured = self._measured()
        if not self._weights:
            done, tasks = (sum(each) for each in zip(*stages, strict=True)) if stages else (0, 0)
            return max(measured, done / tasks if tasks else 0.0)
        *before, last = self._weights
        total = 0.0
        for weight, (done, tasks) in zip(before, stages, strict=False):
            total += weight * done / tasks if tasks else 0.0
        return min(1.0, max(total, (1 - last) if measured else 0.0) + last * measured)

    def _measured(self) -> float:
        total = 0.0
        for place in range(self._places):
            file = self.meter_file(place)
            with suppress(OSError, ValueError):
                total += float(file.read_text()) if file is not None else 0.0
        return total / self._places if self._places else 0.0


def _counted(tracker: Any, group: str) -> list[tuple[int, int]]:
    """The tasks of each stage of a group's jobs, in the order of the stages: done, all."""
    stages: dict[int, tuple[int, int]] = {}
    for job in tracker.getJobIdsForGroup(group):
        job_info = tracker.getJobInfo(job)
        for stage in job_info.stageIds if job_info is not None else ():
            stage_info = tracker.getStageInfo(stage)
            if stage_info is not None:
                stages[stage] = stage_info.numCompletedTasks, stage_info.numTasks
    return [stages[stage] for stage in sorted(stages)]
