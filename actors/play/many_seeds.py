"""The seeds of a campaign: one after the other or several at a time, within a budget of time."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import takewhile
from pathlib import Path

from minicluster.actors.play.campaign import Outcome, play_seed


def campaign(
    seeds: Iterable[int],
    faults: Sequence[str] = (),
    *,
    runs: Path | None = None,
    jobs: int = 1,
    budget_s: float | None = None,
) -> Iterator[Outcome]:
    """Play many seeds; their outcomes come in the order of the seeds.

    Shapes:  jobs: so many processes play seeds, also while the caller shrinks an outcome.
    Units:   budget_s: seconds of this machine after which no seed is taken up; may be fewer than
             one seed needs.
    """
    end_s = None if budget_s is None else time.monotonic() + budget_s
    begun = takewhile(lambda _: end_s is None or time.monotonic() < end_s, seeds)
    if jobs == 1:
        for seed in begun:
            yield play_seed(seed, faults, runs=runs)
    else:
        yield from _in_processes(begun, tuple(faults), runs, jobs)


def _in_processes(
    seeds: Iterator[int], faults: tuple[str, ...], runs: Path | None, jobs: int
) -> Iterator[Outcome]:
    """Keep each process busy with one seed, and one more in store for it."""
    waiting: deque[Future[Outcome]] = deque()
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),  # no copy of this process's threads
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),  # an interruption ends the campaign, not a seed
    )
    try:
        for seed in seeds:
            waiting.append(pool.submit(play_seed, seed, faults, runs=runs))
            if len(waiting) == 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
