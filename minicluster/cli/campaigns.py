"""The command ``chaos``: many random scenarios, each from its seed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from minicluster.cli.exit_codes import EXIT_FILES
from minicluster.cli.options import TEXT, runs_option
from minicluster.cli.reports import command_name, leave_report, show_report
from minicluster.cli.terminal import print_line, progress, shown_verification
from minicluster.errors import UserError

if TYPE_CHECKING:
    from minicluster.actors.play.campaign import Outcome
    from minicluster.scenario import Step
    from minicluster.scenario.shrink import Shrunk


@click.command("chaos")
@click.option(
    "--seeds",
    help="One seed or a range: 7, 1-200; with --minutes also 7-. "
    "By default 1-20, with --minutes 1- without an end.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Take up no seed after so many minutes.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    default=1,
    show_default=True,
    help="Play so many seeds at a time, each in a process of its own.",
)
@click.option("--fault", "faults", multiple=True, help="Plant a fault of the zoo (repeatable).")
@click.option("--shrink/--no-shrink", default=True, help="Look for the shortest failing script.")
@click.option(
    "--verify",
    "in_spark",
    is_flag=True,
    help="Keep every run and its report; Spark judges them all.",
)
@runs_option
def chaos(
    seeds: str | None,
    minutes: float | None,
    jobs: int,
    faults: tuple[str, ...],
    shrink: bool,
    in_spark: bool,
    runs: Path,
) -> int:
    """Draw a scenario from each seed, play it under the online rules, and shrink what fails."""
    from minicluster.actors.play.campaign import Tally, keep, outcome_line
    from minicluster.actors.play.many_seeds import campaign
    from minicluster.actors.recording.run_place import check_writable
    from minicluster.verify.rules.model import Verdict, exit_code, gravest

    check_writable(runs)
    tally = Tally()
    whole: list[Path] = []
    played = campaign(
        _seeds(seeds or ("1-20" if minutes is None else "1-"), open_end=minutes is not None),
        faults,
        runs=runs if in_spark else None,
        jobs=jobs,
        budget_s=None if minutes is None else 60 * minutes,
    )
    for outcome in played:
        tally.count(outcome)
        print_line(outcome_line(outcome))
        if outcome.path is not None:
            whole.append(outcome.path)
        if outcome.failure is None:
            continue
        shrunk = _shrunk(outcome) if shrink else None
        kept = keep(outcome, shrunk, runs)
        for step in () if shrunk is None else shrunk.steps:
            print_line(f"    {step.text}")
        print_line(f"repeat  {command_name()} replay {kept}")
    for line in tally.lines():
        print_line(line)
    if not tally.seeds:
        print_line("nothing was judged: the time was over before the first seed")
        return exit_code(Verdict.UNKNOWN)
    if not in_spark:
        print_line("looked with the online rules alone; with --verify Spark judges every run")
        return exit_code(tally.verdict)
    from minicluster.verify import verify

    with shown_verification() as show:
        report = verify(*whole, on_progress=show)
    show_report(report, TEXT, every_rule=False)
    written = [leave_report(path, one) for path, one in zip(whole, report.each, strict=True)]
    if not all(written):
        return EXIT_FILES
    return exit_code(gravest([tally.verdict, report.verdict]))


def _shrunk(outcome: Outcome) -> Shrunk[Step]:
    """The shortest failing script, with the number of replays on the terminal meanwhile."""
    from minicluster.actors.play.campaign import shortest

    with progress() as bar:
        task = bar.add_task(f"seed {outcome.seed}: shrinking")
        return shortest(
            outcome,
            lambda replays: bar.update(
                task, description=f"seed {outcome.seed}: shrinking, {replays} replays"
            ),
        )


def _seeds(text: str, *, open_end: bool) -> Iterable[int]:
    """The seeds that a text names, which may have no end where a budget of time ends them.

    Errors:  UserError for anything but a number or two with a dash.
    """
    first, dash, last = text.partition("-")
    if first.isdecimal() and dash and not last:
        if open_end:
            return count(int(first))
        raise UserError(f"--seeds: {text!r} has no end; --minutes would be one")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise UserError(f"--seeds: {text!r} is neither a seed nor a range such as 1-200")
    seeds = range(int(first), int(last if dash else first) + 1)
    if not seeds:
        raise UserError(f"--seeds: {text!r} names no seed: the first is above the last")
    return seeds
