"""The seeds of a campaign: one after the other or several at a time, within a budget of time.

With variations a campaign goes in rounds. A round has some seeds in order; after it come variations
of those that saw something new, and of their variations in turn. The rounds do not depend on the
number of processes, so the same campaign plays the same scenarios however many there are.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from threading import Thread

from minicluster import own_folders
from minicluster.actors.play.campaign import Draw, Outcome, play_seed
from minicluster.actors.runtime import garbage
from minicluster.scenario.coverage import Coverage
from minicluster.scenario.nemesis import generate

ROUND = 8  # seeds, and at most as many variations after them
Drawn = tuple[int, tuple[int, ...]]  # a seed and its variation
Play = Callable[[Iterator[Drawn]], Iterator[Outcome]]


def campaign(
    seeds: Iterable[int],
    faults: Sequence[str] = (),
    *,
    variation: tuple[int, ...] = (),
    runs: Path | None = None,
    jobs: int = 1,
    in_time: Callable[[], bool] = lambda: True,
    vary: int = 0,
    draw: Draw = generate,
) -> Iterator[Outcome]:
    """Play many seeds; their outcomes come in the order of the seeds.

    Shapes:  jobs: so many processes play seeds, also while the caller shrinks an outcome;
             variation: of each of the seeds; vary: so many variations of each seed that saw
             something new; in_time: False when no further seed is to begin; draw: the
             scenario of a seed and a variation.
    """
    drawn = ((seed, variation) for seed in seeds)
    with _player(partial(play_seed, faults=tuple(faults), runs=runs, draw=draw), jobs) as play:
        if vary == 0:
            yield from play(takewhile(lambda _: in_time(), drawn))
        else:
            yield from _in_rounds(drawn, play, in_time, vary)


def _in_rounds(
    seeds: Iterator[Drawn], play: Play, in_time: Callable[[], bool], vary: int
) -> Iterator[Outcome]:
    coverage = Coverage()
    kept: deque[Drawn] = deque()
    while True:
        round_ = [*islice(seeds, ROUND), *(kept.popleft() for _ in range(min(ROUND, len(kept))))]
        if not round_ or not in_time():
            return
        for outcome in play(takewhile(lambda _: in_time(), round_)):
            if coverage.add(outcome.name, outcome.observations):
                number, variation = outcome.seed, outcome.variation
                kept.extend((number, (*variation, n)) for n in range(1, vary + 1))
            yield outcome


@contextmanager
def _player(play_one: Callable[..., Outcome], jobs: int) -> Iterator[Play]:
    """A function that plays seeds in order, here or in processes."""
    if jobs == 1:
        yield lambda drawn: (play_one(seed, variation=variation) for seed, variation in drawn)
        return
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),  # no copy of this process's threads
        initializer=_begin_process,
    )
    try:
        yield partial(_in_processes, pool, play_one, jobs)
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Around the start of a process, which no Ctrl-C is to reach: it ends the campaign."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process() -> None:
    garbage.set_aside()  # modules stay: each collection looks at a cluster alone
    Thread(target=_end_with_campaign, daemon=True).start()


def _end_with_campaign() -> None:
    """End this process with the one that asks for seeds, which SIGTERM may end without a word.

    It would wait for the next seed for ever: it holds the other end of its queue itself.
    """
    campaign_process = multiprocessing.parent_process()
    assert campaign_process is not None
    campaign_process.join()
    try:
        own_folders.remove_all()
    finally:
        os._exit(1)


def _in_processes(
    pool: ProcessPoolExecutor,
    play_one: Callable[..., Outcome],
    jobs: int,
    drawn: Iterator[Drawn],
) -> Iterator[Outcome]:
    """Keep each process busy with one seed, and one more in store for it."""
    waiting: deque[Future[Outcome]] = deque()
    for seed, variation in drawn:
        with _uninterrupted():
            waiting.append(pool.submit(play_one, seed, variation=variation))
        if len(waiting) == 2 * jobs:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
