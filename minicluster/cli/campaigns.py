"""The command ``chaos``: many random scenarios, each from its seed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from minicluster.cli.exit_codes import EXIT_FILES, EXIT_INTERNAL
from minicluster.cli.options import TEXT, runs_option
from minicluster.cli.reports import leave_report, show_report
from minicluster.cli.terminal import (
    complain,
    print_line,
    progress,
    report_crash,
    shown_verification,
)
from minicluster.errors import Crash, MiniclusterError, Stopped, UserError, counted
from minicluster.own_command import command_line

if TYPE_CHECKING:
    from minicluster.actors.play.campaign import Draw, Outcome
    from minicluster.actors.recording.runs_place import RunsPlace
    from minicluster.scenario import Step
    from minicluster.scenario.coverage import Coverage
    from minicluster.scenario.shrink import Shrunk
    from minicluster.verify.model import Verdict

TOLD_EVERY_S = 10  # of a search in a pipe


@click.command("chaos")
@click.option(
    "--seeds",
    help="One seed, a variation of it or a range: 7, 7.2, 1-200; with --minutes also 7-. "
    "By default 1-20, with --minutes 1- without an end.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Start no further seed after so many minutes, and stop shrinking then.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    default=1,
    show_default=True,
    help="Play so many seeds at a time, each in a process of its own.",
)
@click.option(
    "--mode",
    type=click.Choice(["kraft", "zookeeper"]),
    default="kraft",
    show_default=True,
    help="Controllers of their own, or brokers on ZooKeeper.",
)
@click.option(
    "--inter-broker-protocol",
    "protocol",
    metavar="LEVEL",
    help="With --mode zookeeper, such as 2.7-IV2; by default each seed draws one from 2.6 to 3.9.",
)
@click.option("--fault", "faults", multiple=True, help="Plant a fault of the zoo (repeatable).")
@click.option(
    "--as-shipped",
    is_flag=True,
    help="Plant the bugs that Kafka 4.3.0 shipped with (Z52 to Z61), and name those found.",
)
@click.option(
    "--vary",
    type=click.IntRange(min=0, max=100),
    default=0,
    show_default=True,
    help="Play so many variations of each seed, or variation, that saw something new.",
)
@click.option(
    "--coverage",
    "coverage_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write what the seeds went through as JSON.",
)
@click.option("--shrink/--no-shrink", default=True, help="Look for the shortest failing script.")
@click.option(
    "--verify",
    "in_spark",
    is_flag=True,
    help="Keep every run and its report; Spark judges them all once more.",
)
@runs_option
def chaos(
    seeds: str | None,
    minutes: float | None,
    jobs: int,
    mode: str,
    protocol: str | None,
    faults: tuple[str, ...],
    as_shipped: bool,
    vary: int,
    coverage_file: Path | None,
    shrink: bool,
    in_spark: bool,
    runs: Path,
) -> int:
    """Draw a scenario from each seed, play and judge it, and shrink what fails.

    Every rule judges each seed. With a planted fault the scenarios have what it needs to act; one
    that acts and that no rule notices has survived, and the exit code is 2.
    """
    from minicluster.actors.play.campaign import Tally, outcome_line
    from minicluster.actors.play.many_seeds import campaign
    from minicluster.actors.play.observations import KNOWN
    from minicluster.actors.recording.runs_place import runs_place
    from minicluster.faults import Faults
    from minicluster.rules import Rules
    from minicluster.scenario.coverage import Coverage
    from minicluster.verify.model import Verdict, exit_code

    Faults.of(fault for fault in faults if fault not in Rules.zoo())  # an unknown one ends it here
    tally, coverage = Tally(), Coverage(KNOWN[mode])
    whole: list[Path] = []
    draw = _draw(mode, protocol, faults)
    if as_shipped:
        shipped = Rules.KAFKA_4_3.shipped_zoo()
        faults = (*faults, *(bug for bug in shipped if bug not in faults))
    seeds = seeds or ("1-20" if minutes is None else "1-")
    numbers, variation = seeds_of(seeds, open_end=minutes is not None)
    print_line(_begin_line(seeds, minutes, faults))
    end_s = None if minutes is None else time.monotonic() + 60 * minutes
    in_time = partial(_is_before, end_s)
    with runs_place(runs) as place:
        played = campaign(
            numbers,
            faults,
            variation=variation,
            vary=vary,
            runs=place.folder if in_spark else None,
            jobs=jobs,
            in_time=in_time,
            draw=draw,
        )
        stopped = False
        try:
            for outcome in played:
                tally.count(outcome)
                new = coverage.add(outcome.name, outcome.observations)
                print_line(outcome_line(outcome) + (f" ({new} new)" if new else ""))
                if outcome.path is not None:
                    whole.append(outcome.path)
                    place.publish(outcome.path)
                words = _words(outcome, mode, protocol)
                if outcome.failure is not None:
                    shrunk = _shrunk(outcome, in_time, words) if shrink else None
                    _keep(outcome, shrunk, place, name_faults=as_shipped)
                if outcome.crash is not None:
                    report_crash(outcome.crash, words)
        except KeyboardInterrupt:
            stopped = True  # what hours of seeds have shown is told all the same
        for line in [*tally.lines(), *coverage.lines()]:
            print_line(line)
        if coverage_file is not None:
            _write(coverage_file, coverage)
        if stopped:
            raise Stopped(f"the campaign was stopped after {counted(tally.seeds, 'seed')}")
        if not tally.seeds:
            print_line("nothing was judged: the time was over before the first seed")
            return exit_code(Verdict.UNKNOWN)
        code = _judged(whole, tally.verdict, place) if whole else exit_code(tally.verdict)
        return EXIT_INTERNAL if tally.crashed else code


def _words(outcome: Outcome, mode: str, protocol: str | None) -> list[str]:
    """The words of the command that plays one seed of a campaign."""
    level = () if protocol is None else ("--inter-broker-protocol", protocol)
    planted = [word for fault in outcome.scenario.faults for word in ("--fault", fault)]
    return ["chaos", "--seeds", outcome.name, "--mode", mode, *level, *planted]


def _judged(runs: list[Path], played: Verdict, place: RunsPlace) -> int:
    """Let Spark judge the runs in one job, and leave each its report."""
    from minicluster.verify import verify
    from minicluster.verify.model import exit_code, gravest

    with shown_verification() as show:
        report = verify(*runs, on_progress=show)
    show_report(report, TEXT, every_rule=False)
    written = [leave_report(run, judged) for run, judged in zip(runs, report.each, strict=True)]
    for run in runs:
        place.publish(run)
    if not all(written):
        return EXIT_FILES
    return exit_code(gravest([played, report.verdict]))


def _is_before(end_s: float | None) -> bool:
    return end_s is None or time.monotonic() < end_s


def _keep(
    outcome: Outcome, shrunk: Shrunk[Step] | None, place: RunsPlace, *, name_faults: bool
) -> None:
    """Leave the run folder of a failed seed, and print how it failed and what repeats it."""
    from minicluster.actors.play.campaign import culprits, keep

    kept = place.publish(keep(outcome, shrunk, place.folder))
    for step in () if shrunk is None else shrunk.steps:
        print_line(f"    {step.text}")
    print_line(f"repeat  {command_line('replay', kept)}")
    if name_faults:
        alone = ", ".join(culprits(outcome)) or "only several together"
        print_line(f"found   {alone}")


def _begin_line(seeds: str, minutes: float | None, faults: tuple[str, ...]) -> str:
    """The line before the first seed: which scenarios the campaign plays."""
    which = f"seed{'s' * ('-' in seeds)} {seeds}"
    planted = f" with {', '.join(faults)}" if faults else ""
    time = "some seconds each" if minutes is None else f"for {minutes:g} min"
    return f"playing {which}{planted}, {time} (--seeds, --minutes)"


def _draw(mode: str, protocol: str | None, faults: tuple[str, ...]) -> Draw:
    """The function that makes the scenario of a seed, with what planted faults need.

    Errors:  UserError for a level of brokers that are not on ZooKeeper, or none.
    """
    from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
    from minicluster.scenario.nemesis import NOTHING, generate
    from minicluster.zookeeper.nemesis import generate_on_zookeeper

    if protocol is not None and mode != "zookeeper":
        raise UserError("--inter-broker-protocol: only with --mode zookeeper")
    needs = NOTHING
    if faults:  # the zoo is loaded where a fault is planted, and nowhere else
        from minicluster.zoo.needs import needs_of

        needs = needs_of(faults)
    if mode == "zookeeper":
        level = None if protocol is None else str(InterBrokerProtocol.parse(protocol))
        return partial(generate_on_zookeeper, needs=needs, protocol=level)
    return partial(generate, needs=needs)


def _shrunk(
    outcome: Outcome, in_time: Callable[[], bool], words: Sequence[str]
) -> Shrunk[Step] | None:
    """The shortest failing script that was found in time, and meanwhile how far it is.

    Shapes:  words: of the command that plays the seed again. None where a fault of this program
             ended the search.
    """
    from minicluster.actors.play.campaign import shortest

    with progress() as bar:
        title = f"seed {outcome.name}: shrinking"
        task = bar.add_task(title)
        told_s = time.monotonic()

        def show(replays: int, fewest: int) -> None:
            nonlocal told_s
            text = f"{title}, {counted(replays, 'replay')}, {counted(fewest, 'step')} left"
            if not bar.disable:
                bar.update(task, description=text)
            elif time.monotonic() - told_s >= TOLD_EVERY_S:
                told_s = time.monotonic()
                complain(text)

        try:
            return shortest(outcome, show, in_time)
        except (MiniclusterError, OSError):
            raise
        except Exception as error:
            report_crash(Crash(error), words)
            return None


def _write(path: Path, coverage: Coverage) -> None:
    from minicluster.actors.recording.run_place import Unwritable

    try:
        path.write_text(json.dumps(coverage.to_dict(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        why = f"--coverage: {path}: cannot be written: {error.strerror}"
        raise Unwritable(why) from None


def seeds_of(text: str, *, open_end: bool) -> tuple[Iterable[int], tuple[int, ...]]:
    """The seeds that a text names, without an end only under a budget of time; their variation.

    Errors:  UserError for anything but a number, a variation, or two numbers with a dash.
    """
    number, *variation = text.split(".")
    if variation and all(part.isdecimal() for part in (number, *variation)):
        return (int(number),), tuple(map(int, variation))
    first, dash, last = text.partition("-")
    if first.isdecimal() and dash and not last:
        if open_end:
            return count(int(first)), ()
        raise UserError(f"--seeds: {text!r} has no end; --minutes would be one")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise UserError(f"--seeds: {text!r} is neither a seed nor a range such as 1-200")
    seeds = range(int(first), int(last if dash else first) + 1)
    if not seeds:
        raise UserError(f"--seeds: {text!r} names no seed: the first is above the last")
    return seeds, ()
