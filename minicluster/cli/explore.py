"""The command ``explore``: one test under the disturbances of many seeds, in child processes.

Each child is a pytest of the test alone, under a fixed hash seed, and plays what it is asked to
through a pipe (``fixtures/exploring.py``). It ends after some plays: what a killed program held is
kept in its process for good.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from minicluster.cli.campaigns import TOLD_EVERY_S, seeds_of
from minicluster.cli.exit_codes import EXIT_INVALID, EXIT_UNKNOWN
from minicluster.cli.terminal import complain, print_line, progress
from minicluster.errors import Stopped, UserError, counted
from minicluster.own_command import command_line

if TYPE_CHECKING:
    from minicluster.actors.play.exploring import Play, Played, Surroundings

PLAYS_OF_A_CHILD = 25
LINES_OF_A_CHILD = 15  # of its output, where it has ended early
ENDED_EARLY = "pytest ended early"


@click.command("explore")
@click.argument("test")
@click.option(
    "--seeds", help="One seed or a range: 7, 1-200. By default as many as the marker has."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    default=1,
    show_default=True,
    help="Play so many seeds at a time, each in a process of its own.",
)
@click.option(
    "--disturbances",
    help="Words of kill, terminate, pause, cut, delay, bounce, instead of the marker's.",
)
@click.option("--calm", help="How long everything runs on, healed, instead of the marker's.")
@click.option("--apps", help="Names of the apps to disturb, instead of the marker's; else all.")
@click.option("--shrink/--no-shrink", default=True, help="Look for the fewest disturbances.")
def explore(
    test: str,
    seeds: str | None,
    jobs: int,
    disturbances: str | None,
    calm: str | None,
    apps: str | None,
    shrink: bool,
) -> int:
    """Play TEST (test_orders.py::test_x) once per seed, with disturbances around it.

    Each seed draws what happens to the apps that the test starts, and to the brokers. The first
    seed that fails is played twice, shrunk, and printed as a test to paste.
    """
    from minicluster.actors.play.exploring import ALONE, Play, Surroundings

    numbers: Iterable[int] = ()
    if seeds is not None:
        numbers, variation = seeds_of(seeds, open_end=False)
        if variation:
            raise UserError(f"--seeds: {seeds!r} is neither a seed nor a range such as 1-200")
    with _children(test, jobs) as children:
        given = children.options
        alone = children.play(Play(seed=ALONE))
        if alone.failure is not None:
            print_line(f"without disturbances it fails already: {alone.failure}")
            _print_text(alone.report)
            return EXIT_INVALID
        if not alone.broker_ids:
            raise UserError(f"{test}: it was skipped, and nothing was explored")
        around = Surroundings.of(
            alone,
            words=disturbances or given["disturbances"],
            calm=calm or given["calm"],
            apps=apps or given["apps"],
        )
        print_line(_begin_line(around))
        given_words = {"--disturbances": disturbances, "--calm": calm, "--apps": apps}
        children.repeat = [test]
        for option, value in given_words.items():
            children.repeat += [option, value] if value is not None else []
        chosen = list(numbers or range(1, given["seeds"] + 1))
        return _explored(children, around, chosen, shrink=shrink)


def _begin_line(around: Surroundings) -> str:
    alone = around.alone
    apps = ", ".join(around.apps) or "no apps"
    return (
        f"without disturbances it passes, in {alone.body_ms / 1_000:g}s of the cluster's time; "
        f"disturbing {apps} and {counted(len(alone.broker_ids), 'broker')}: {around.words}"
    )


def _explored(children: Children, around: Surroundings, numbers: list[int], *, shrink: bool) -> int:
    failed: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], int] = {}
    seeds = unknown = 0
    with _shown(f"{children.test.name}: seed") as show:
        try:
            for played in children.each(map(around.play, numbers)):
                seeds += 1
                show(f"{seeds} of {len(numbers)}, {failed.total()} failed")
                failure = played.failure
                if failure is None:
                    continue
                print_line(f"seed {played.play.seed}: {failure}")
                if failure.is_early:
                    unknown += 1
                    if unknown == 1:
                        from minicluster.actors.play.exploring import early

                        _print_lines(early(around, played))
                    continue
                which = failure.kind, failure.place
                first.setdefault(which, played.play.seed)
                failed[which] += 1
                if failure.kind == ENDED_EARLY:
                    _print_text(played.report)
                elif shrink:
                    shrink = False  # the first one alone
                    _examined(children, played)
        except KeyboardInterrupt:
            raise Stopped(
                f"it was stopped after {counted(seeds, 'seed')}, {failed.total()} failed"
            ) from None
    not_judged = f", {unknown} not judged" if unknown else ""
    print_line(f"{counted(seeds, 'seed')}, {failed.total()} failed{not_judged}")
    for (kind, place), count in failed.most_common():
        print_line(f"  {count:4} {kind} at {place}, first at seed {first[kind, place]}")
    if failed:
        return EXIT_INVALID
    return EXIT_UNKNOWN if unknown else 0


def _examined(children: Children, played: Played) -> None:
    """Shrink a failure, and print what is left of it."""
    from minicluster.actors.play.exploring import examine, pasted, story

    with _shown(f"seed {played.play.seed}: shrinking") as show:

        def on_replay(replays: int, fewest: int) -> None:
            show(f"{counted(replays, 'replay')}, {counted(fewest, 'disturbance')} left")

        found = examine(played, children.play, children.play_elsewhere, on_replay)
    shown = found.shortest or found.first
    _print_text(shown.report)
    _print_lines(story(found))
    if found.shortest is not None:
        print_line("as a test to paste:")
        _print_lines(["", *pasted(children.test, found.shortest), ""])
    words = *children.repeat, "--seeds", played.play.seed
    print_line(f"repeat  {command_line('explore', *words)}")


def _print_text(text: str) -> None:
    _print_lines(text.splitlines())


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(f"    {line}".rstrip())


@contextmanager
def _shown(title: str) -> Iterator[Callable[[str], None]]:
    """A line for how far a search is; in a pipe, a line on standard error now and then."""
    with progress() as bar:
        task = bar.add_task(title)
        told_s = time.monotonic()

        def show(text: str) -> None:
            nonlocal told_s
            if not bar.disable:
                bar.update(task, description=f"{title} {text}")
            elif time.monotonic() - told_s >= TOLD_EVERY_S:
                told_s = time.monotonic()
                complain(f"{title} {text}")

        yield show


# The children.


class Child:
    """A pytest of one test, which plays it as often as it is asked to."""

    def __init__(self, test: str) -> None:
        self.plays = 0
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 (until the child ends)
        here_reads, child_tells = os.pipe()
        child_reads, here_tells = os.pipe()
        words = [test, f"--mini-cluster-explore-child={child_reads},{child_tells}"]
        words += ["-p", "no:cacheprovider", *(["-n", "0"] if find_spec("xdist") else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", *words],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            pass_fds=(child_reads, child_tells),
            start_new_session=True,  # Ctrl-C is for the parent, which ends its children
        )
        os.close(child_reads)
        os.close(child_tells)
        self._told, self._asked = os.fdopen(here_reads), os.fdopen(here_tells, "w")
        try:
            self.hello = self._next()
        except EOFError:
            why = self._why_it_ended()
            self.close()
            raise UserError(f"{test}: {why} (python -m pytest {test} shows more)") from None
        except BaseException:
            self.close()
            raise

    def play(self, play: Play) -> Played:
        """Play it once more; it has failed where the process ends meanwhile."""
        from minicluster.actors.play.exploring import Failure, Played

        self.plays += 1
        try:
            self._asked.write(json.dumps(play.to_dict()) + "\n")
            self._asked.flush()
            return Played.of_dict(self._next())
        except (BrokenPipeError, EOFError):
            self.plays = PLAYS_OF_A_CHILD  # another one takes its place
            place, last = f"exit code {self._process.wait()}", self._last_lines()
            failure = Failure(kind=ENDED_EARLY, place=place, text="")
            return Played(play=play, failure=failure, report=last)

    def _next(self) -> dict[str, Any]:
        line = self._told.readline()
        if not line:
            raise EOFError
        told: dict[str, Any] = json.loads(line)
        return told

    def _why_it_ended(self) -> str:
        """The line in which pytest says why there is no test to play."""
        code = self._process.wait()  # until then its output is not whole
        lines = self._last_lines().splitlines()
        errors = [line[1:].strip() for line in lines if line.startswith("E  ")]
        errors += [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
        return errors[-1] if errors else f"{ENDED_EARLY}, with {code}"

    def _last_lines(self) -> str:
        self._output.seek(0)
        return "\n".join(self._output.read().strip().splitlines()[-LINES_OF_A_CHILD:])

    def close(self) -> None:
        """End the process."""
        for pipe in (self._asked, self._told):
            with suppress(BrokenPipeError):
                pipe.close()
        self._process.kill()
        self._process.wait()
        self._output.close()


class Children:
    """Several children, each replaced after some plays.

    Shapes:  repeat: the words of the command that explores the test again, but for the seeds.
    """

    def __init__(self, test: str, jobs: int) -> None:
        from minicluster.actors.play.exploring import TestItem

        self.jobs = jobs
        self._idle: queue.LifoQueue[Child | None] = queue.LifoQueue()
        self._all: set[Child] = set()
        for _ in range(jobs):
            self._idle.put(None)
        self._test, self.repeat = test, [test]
        first = self._begin()
        self._idle.get()
        self._idle.put(first)
        hello = first.hello
        if "mistake" in hello:
            raise UserError(hello["mistake"])
        if len(hello["tests"]) != 1:
            names = ", ".join(hello["tests"][:5])
            raise UserError(f"{test} is {counted(len(hello['tests']), 'test')}; name one: {names}")
        self.options: dict[str, Any] = hello["options"]
        self.test = TestItem(**hello["described"])

    def _begin(self) -> Child:
        child = Child(self._test)
        self._all.add(child)
        return child

    def _end(self, child: Child) -> None:
        self._all.discard(child)
        child.close()

    def play(self, play: Play) -> Played:
        """Play in the next child that is idle."""
        child = self._idle.get()
        try:
            if child is not None and child.plays >= PLAYS_OF_A_CHILD:
                self._end(child)
                child = None
            child = child or self._begin()
            played = child.play(play)
        except BaseException:
            if child is not None:
                self._end(child)
            child = None
            raise
        finally:
            self._idle.put(child)
        return played

    def play_elsewhere(self, play: Play) -> Played:
        """Play in a process of its own."""
        child = self._begin()
        try:
            return child.play(play)
        finally:
            self._end(child)

    def each(self, plays: Iterable[Play]) -> Iterator[Played]:
        """Play several at a time; they come in their order."""
        with ThreadPoolExecutor(self.jobs) as pool:
            waiting: deque[Future[Played]] = deque()
            try:
                for play in plays:
                    waiting.append(pool.submit(self.play, play))
                    if len(waiting) == 2 * self.jobs:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.close()  # what they play is of no use any more
                raise

    def close(self) -> None:
        """End all processes."""
        for child in list(self._all):
            self._end(child)


@contextmanager
def _children(test: str, jobs: int) -> Iterator[Children]:
    children = Children(test, jobs)
    try:
        yield children
    finally:
        children.close()
